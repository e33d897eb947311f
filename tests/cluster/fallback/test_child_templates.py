"""What the controller asks the API server about is what the real JobSet, Job controller and KubeRay create for the same job."""

import re
from collections.abc import Callable

import pytest

from pulumi_holdfast.controller.jobs.child_templates import ChildTemplate, child_templates, pod_of_job
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import EXCLUSIVE_TOPOLOGY, HOSTNAME, RAY_NODE_TYPE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.fallback import NAMESPACE, LadderCluster
from tests.support.clusters.fallback_jobs import applied, pods_of, real_jobset, real_rayjob
from tests.support.json_objects import obj, objects
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

#: Of an object that exists, or differs between two that are created one after the other.
_OF_THE_SERVER = {
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "uid",
}
#: The API server gives a pod the labels of its node when it is bound.
_OF_ITS_NODE = {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
_AT_RANDOM = re.compile(r"kube-api-access-\w{5}")


def plain(made: Json) -> JsonValue:
    """An object without what the server sets, with one word for each uid and random name."""
    metadata = {key: value for key, value in obj(made["metadata"]).items() if key not in _OF_THE_SERVER}
    spec = {key: value for key, value in obj(made["spec"]).items() if key != "nodeName"}
    if made["kind"] == "Pod":
        kept = {key: value for key, value in obj(metadata["labels"]).items() if key not in _OF_ITS_NODE}
        metadata = {**{key: value for key, value in metadata.items() if key != "name"}, "labels": kept}
    return _plain({"kind": made["kind"], "metadata": metadata, "spec": spec})


def _plain(value: JsonValue, key: str = "") -> JsonValue:
    if isinstance(value, dict):
        return {name: _plain(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, key) for each in value]
    if key.endswith("-uid"):
        return "uid"
    return _AT_RANDOM.sub("kube-api-access", value) if isinstance(value, str) else value


def with_second_job(jobset: Json) -> Json:
    """The JobSet with one job more: with child Jobs apart, a coordinator, a group, and two of its own volume claims' names."""
    spec = obj(jobset["spec"])
    (first,) = objects(spec["replicatedJobs"])
    template = obj(first["template"])
    apart: Json = {"annotations": {EXCLUSIVE_TOPOLOGY: HOSTNAME, "mine": "1"}, "labels": {"team": "a"}}
    one: Json = {**obj(template["spec"]), "parallelism": 1, "completions": 1}
    second: Json = {
        "name": "apart",
        "groupName": "others",
        "replicas": 2,
        "template": {"metadata": apart, "spec": one},
    }
    coordinator: Json = {"replicatedJob": "worker", "jobIndex": 0, "podIndex": 0}
    return {
        **jobset,
        "spec": {
            **spec,
            "coordinator": coordinator,
            "network": {"subdomain": "gang"},
            "replicatedJobs": [first, second],
        },
    }


def as_it_is(jobset: Json) -> Json:
    return jobset


@pytest.mark.parametrize("change", [as_it_is, with_second_job], ids=["one job", "two jobs"])
def test_jobs_and_pods_of_a_jobset_are_those_that_are_created(
    cluster: LadderCluster, change: Callable[[Json], Json]
) -> None:
    client, job = cluster.client, change(real_jobset("mirrored"))
    admitted = client.apply(job, field_manager="test", dry_run=True)
    asked = {each.name: asked_about(client, each) for each in child_templates(admitted)}
    with applied(client, job) as name:
        for template, (child, pod) in asked.items():
            real = created(client, "batch/v1", "Job", f"{name}-{template}-0")
            assert plain(child) == plain(real), f"the Job of {template}"
            first = wait_until_there(lambda made=real: first_pod(client, made))
            assert plain(pod) == plain(first), f"a pod of {template}"


def asked_about(client: KubeClient, template: ChildTemplate) -> tuple[Json, Json]:
    """The Job and the pod of a template, as the API server admits them in a dry run."""
    assert template.job is not None
    job = client.create(template.job, dry_run=True)
    return job, client.create(pod_of_job(job), dry_run=True)


def created(client: KubeClient, api_version: str, kind: str, name: str) -> Json:
    return wait_until_there(lambda: client.get(api_version, kind, name, NAMESPACE))


def wait_until_there(find: Callable[[], Json | None]) -> Json:
    found: list[Json] = []

    def is_there() -> bool:
        each = find()
        found[:] = [] if each is None else [each]
        return bool(found)

    wait_until(is_there, "the operator creates it", seconds=120)
    return found[0]


def first_pod(client: KubeClient, job: Json) -> Json | None:
    name = str(obj(job["metadata"])["name"])
    index = "batch.kubernetes.io/job-completion-index"
    found = client.list("v1", "Pod", namespace=NAMESPACE, label_selector=f"job-name={name}")
    first = [each for each in found if obj(obj(each["metadata"])["labels"]).get(index, "0") == "0"]
    return first[0] if first else None


def judged_parts(pod: Json) -> JsonValue:
    """What admission and the scheduler judge of a pod of Ray; KubeRay adds variables, ports, probes and volumes."""
    metadata, spec = obj(pod["metadata"]), obj(pod["spec"])
    containers = {
        kind: [
            {key: each.get(key) for key in ("name", "image", "resources", "securityContext")}
            for each in objects(spec.get(kind))
        ]
        for kind in ("initContainers", "containers")
    }
    labels = {key: value for key, value in obj(metadata["labels"]).items() if key not in _NAMED}
    kept = ("nodeSelector", "tolerations", "restartPolicy", "serviceAccountName", "affinity")
    return {**containers, "labels": labels, **{key: spec.get(key) for key in kept}}


#: They have the random name of a RayCluster, or differ between the pods of a group.
_NAMED = {"ray.io/cluster", "ray.io/identifier", "ray.io/worker-group-replica-index", *_OF_ITS_NODE}


def test_pods_of_a_rayjob_are_those_that_are_created(cluster: LadderCluster) -> None:
    client, job = cluster.client, real_rayjob("mirrored-ray")
    admitted = client.apply(job, field_manager="test", dry_run=True)
    asked = {each.name: client.create(each.pod, dry_run=True) for each in child_templates(admitted)}
    assert set(asked) == {"head", "worker"}
    with applied(client, job) as name:
        for role, pod in asked.items():
            real = wait_until_there(lambda role=role: pod_of_ray(client, name, role))
            ours, theirs = (obj(obj(each["metadata"])["labels"]) for each in (pod, real))
            assert ours.keys() ^ theirs.keys() <= _OF_ITS_NODE, role
            assert judged_parts(pod) == judged_parts(real), role


def pod_of_ray(client: KubeClient, name: str, role: str) -> Json | None:
    found = [
        each
        for each in pods_of(client, name)
        if obj(obj(each["metadata"])["labels"]).get(RAY_NODE_TYPE) == role
    ]
    return found[0] if found else None


def test_the_job_that_submits_a_rayjob_is_the_one_that_is_created(cluster: LadderCluster) -> None:
    client, job = cluster.client, real_rayjob("submitted", submissionMode="K8sJobMode")
    admitted = client.apply(job, field_manager="test", dry_run=True)
    (template,) = [each for each in child_templates(admitted) if each.name == "submitter"]
    made, _ = asked_about(client, template)
    with applied(client, job) as name:
        real = created(client, "batch/v1", "Job", name)
        for part in (made, real):
            obj(part["metadata"])
        assert obj(made["metadata"])["labels"] == obj(real["metadata"])["labels"]
        ours, theirs = (obj(obj(each["spec"])["template"]) for each in (made, real))
        assert obj(made["spec"])["backoffLimit"] == obj(real["spec"])["backoffLimit"]
        parts = [
            [
                {key: each.get(key) for key in ("name", "image", "resources")}
                for each in objects(obj(pod["spec"])["containers"])
            ]
            for pod in (ours, theirs)
        ]
        assert parts[0] == parts[1]
        assert obj(ours["spec"])["restartPolicy"] == obj(theirs["spec"])["restartPolicy"]
