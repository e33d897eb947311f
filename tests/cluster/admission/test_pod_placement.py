"""Jobs whose pods never share a node are refused where their ladder has fewer nodes than they have pods."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    EXCLUSIVE_TOPOLOGY,
    HOSTNAME,
    JOBSET_NAME,
    RAY_GROUP,
    RAY_NODE_TYPE,
    REPLICATED_JOB,
    ZONE,
)
from tests.support.builders.training_jobs import jobset, rayjob, replicated_job, worker_group
from tests.support.clusters.job_admission import Judging, admitted_job, training
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

#: The ladder `gpus` has four machines of eight GPUs on each tier.
PODS = 5
WHY = "it has room for at most 4 of the 5 pods that have to run together. Raise `maxNodes` to 5 or more"


def template(spec: Json | None = None, labels: Json | None = None, port: Json | None = None) -> Json:
    """A template of pods with one GPU each."""
    found = training(cpu="1", memory="1Gi", gpus="1", spec=spec)
    (container,) = objects(obj(found["spec"])["containers"])
    ports: Json = {"ports": [{"containerPort": 29500, **port}]} if port is not None else {}
    listed: Json = {"containers": [{**container, **ports}]}
    return {"metadata": {"labels": labels or {}}, "spec": {**obj(found["spec"]), **listed}}


def apart(*, key: str = HOSTNAME, labels: Json | None = None, **term: Json | list[Json] | list[str]) -> Json:
    """The specification of pods that run on no node with pods of these labels; `term` is put over the term."""
    selecting: Json = {"topologyKey": key, "labelSelector": {"matchLabels": labels or {}}, **term}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selecting]}}}


def jobset_of(
    pods: Json, *, replicas: int = 1, each: int = PODS, own: Json | None = None, every: str = ""
) -> Json:
    """A JobSet of these pods; `own` are annotations of its job, `every` is its own exclusive topology."""
    job = replicated_job(pods, job={"parallelism": each, "completions": each})
    annotated: Json = {"metadata": {"annotations": own or {}}}
    return jobset(
        {**job, "replicas": replicas, "template": {**obj(job["template"]), **annotated}},
        namespace="gpus",
        annotations={EXCLUSIVE_TOPOLOGY: every} if every else None,
    )


def rayjob_of(pods: Json, labels: Json | None = None) -> Json:
    """A RayJob of these pods, whose group has these labels."""
    size: Json = {"replicas": PODS, "minReplicas": PODS, "maxReplicas": PODS}
    group: Json = {**worker_group(pods), **size, "labels": labels or {}}
    job = rayjob(group)
    return {**job, "metadata": {**obj(job["metadata"]), "namespace": "gpus"}}


EXCLUSIVE: Json = {EXCLUSIVE_TOPOLOGY: HOSTNAME}
MINE: Json = {"app": "train"}


@pytest.mark.parametrize(
    "job",
    [
        jobset_of(template(apart(labels=MINE), MINE)),
        jobset_of(template(apart(labels={JOBSET_NAME: "train", REPLICATED_JOB: "worker"}))),
        jobset_of(template(apart())),
        jobset_of(template(port={"hostPort": 29500})),
        jobset_of(template({"hostNetwork": True}, port={})),
        jobset_of(template(), replicas=PODS, each=1, own=EXCLUSIVE),
        jobset_of(template(), replicas=PODS, each=1, every=HOSTNAME),
        rayjob_of(template(apart(labels=MINE), MINE)),
        rayjob_of(template(apart(labels={RAY_GROUP: "worker", RAY_NODE_TYPE: "worker"}))),
        rayjob_of(template(apart(labels=MINE), {"app": "other"}), MINE),
        rayjob_of(template(port={"hostPort": 29500})),
    ],
    ids=[
        "own labels",
        "labels of JobSet",
        "all pods",
        "host port",
        "host network",
        "a node for each child job",
        "a node for each child job of all",
        "own labels in Ray",
        "labels of KubeRay",
        "labels of the group",
        "host port in Ray",
    ],
)
def test_a_gang_that_needs_a_node_for_each_pod_is_rejected(judging: Judging, job: Json) -> None:
    assert WHY in judging.refusal(job), "eight pods fit on a machine, and it may have one"


@pytest.mark.parametrize(
    "job",
    [
        jobset_of(template()),
        jobset_of(template(apart(labels={"app": "other"}), MINE)),
        jobset_of(template(apart(labels={REPLICATED_JOB: "mine"}), {REPLICATED_JOB: "mine"})),
        jobset_of(template(apart(key=ZONE, labels=MINE), MINE)),
        jobset_of(template(apart(labels=MINE, namespaces=["default"]), MINE)),
        jobset_of(template(apart(labels=MINE, namespaceSelector={}), MINE)),
        jobset_of(template(apart(labels=MINE, matchLabelKeys=["step"]), MINE)),
        jobset_of(template(apart(labels=MINE, mismatchLabelKeys=["step"]), MINE)),
        jobset_of(
            template(apart(labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}), MINE)
        ),
        jobset_of(template(port={})),
        jobset_of(template(), replicas=1, each=PODS, own=EXCLUSIVE),
        jobset_of(template(), replicas=PODS, each=1, own={EXCLUSIVE_TOPOLOGY: ZONE}, every=HOSTNAME),
        rayjob_of(template(apart(labels={RAY_GROUP: "other"}))),
        rayjob_of(template(apart(labels={RAY_GROUP: "mine"}), {RAY_GROUP: "mine"}), {RAY_GROUP: "mine"}),
        rayjob_of(template(apart(labels=MINE), MINE), {"app": "other"}),
    ],
    ids=[
        "side by side",
        "other pods",
        "a label that JobSet replaces",
        "one for each zone",
        "other namespaces",
        "namespaces by labels",
        "pods of the same step",
        "pods of other steps",
        "an expression",
        "a port of its own",
        "all pods in one child job",
        "a zone for each child job",
        "another group",
        "a label that KubeRay replaces",
        "a label that the group replaces",
    ],
)
def test_a_gang_whose_pods_may_share_nodes_is_accepted(judging: Judging, job: Json) -> None:
    assert admitted_job(judging.client, job), "what is not certain rejects nothing"
