"""The Jobs and pods that JobSet and KubeRay create for a job: one of each pod template, to ask the API server about in a dry run.

They are written as JobSet v0.12.0 (pkg/controllers/jobset_controller.go), KubeRay v1.6.2 (ray-operator/controllers/ray/common)
and the Job controller write them, without an owner. A cluster test compares them with what the real operators create.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pulumi_holdfast.controller.jobs.jobset import ReplicatedJob, replicated_jobs
from pulumi_holdfast.controller.jobs.rayjob import WorkerGroup, cluster_spec, worker_groups
from pulumi_holdfast.controller.kube.client import JOB, POD
from pulumi_holdfast.controller.kube.objects import (
    annotations_of,
    count,
    labels_of,
    metadata_of,
    name_of,
    objects,
    text,
)
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    EXCLUSIVE_TOPOLOGY,
    JOBSET_NAME,
    RAY_GROUP,
    RAY_NODE_TYPE,
    RAY_WORKER,
    REPLICATED_JOB,
    RESTART_ATTEMPT,
)

_JOBSET: Final = "jobset.sigs.k8s.io"
_BATCH: Final = "batch.kubernetes.io"
#: The annotation with which JobSet selects nodes for each child Job, in place of an affinity.
_BY_NODE_SELECTOR: Final = "alpha.jobset.sigs.k8s.io/node-selector"
_COMPLETE: Final = "Complete"
_INDEXED: Final = "Indexed"
#: In place of the characters that KubeRay and the API server add to a name at random.
_RANDOM: Final = "bcdfg"
_REPLICA: Final = "ray.io/worker-group-replica-index"
_OF_KUBERAY: Final = {"app.kubernetes.io/created-by": "kuberay-operator", "app.kubernetes.io/name": "kuberay"}


@dataclass(frozen=True, kw_only=True)
class ChildTemplate:
    """One of a job's pod templates, with one of the Jobs and one of the pods that are created from it.

    `source` is what its author wrote: the objects of templates with equal ones differ by names alone. `follows`: its pods are placed by the tier. `pods` run at once. `labels` are those that all of them have. `job` is None where
    the operator creates the pods itself. `after` are the templates that end before it begins, `apart_by` a node label of which
    each of so many of its Jobs needs a value for itself; None if they do not.
    """

    name: str
    source: Json
    follows: bool
    pods: int
    labels: Mapping[str, str]
    job: Json | None
    pod: Json
    after: frozenset[str] = frozenset()
    apart_by: tuple[str, int] | None = None


#: Of a job with more pod templates, only so many are judged: a user may write thousands.
MOST_JUDGED: Final = 128


def child_templates(job: Json) -> tuple[ChildTemplate, ...]:
    """Return the first templates of a JobSet or RayJob, as far as it has any; of one that runs no pods, nothing is returned."""
    found = _of_rayjob(job) if text(job.get("kind")) == "RayJob" else _of_jobset(job)
    return tuple(each for each in islice(found, MOST_JUDGED) if each.pods)


def pod_of_job(job: Json) -> Json:
    """Return the first pod that the Job controller creates for a Job."""
    spec = mapping(job.get("spec"))
    template = mapping(spec.get("template"))
    uid, name = text(metadata_of(job).get("uid")), name_of(job)
    labels: dict[str, JsonValue] = {
        **labels_of(template),
        "job-name": name,
        f"{_BATCH}/job-name": name,
        **({"controller-uid": uid, f"{_BATCH}/controller-uid": uid} if uid else {}),
    }
    annotations, pod_spec = dict(annotations_of(template)), dict(mapping(template.get("spec")))
    if spec.get("completionMode") == _INDEXED:
        index = f"{_BATCH}/job-completion-index"
        labels[index] = annotations[index] = "0"
        pod_spec.setdefault("hostname", f"{name}-0")
        number: Json = {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{index}']"}},
        }
        for kind in ("initContainers", "containers"):
            if kind in pod_spec:
                pod_spec[kind] = [_with_variable(each, number) for each in objects(pod_spec[kind])]
        name = f"{name}-0"
    return {
        "apiVersion": POD.api_version,
        "kind": POD.name,
        "metadata": {
            "generateName": f"{name}-",
            "namespace": metadata_of(job).get("namespace"),
            "labels": labels,
            "annotations": annotations,
            "finalizers": [f"{_BATCH}/job-tracking"],
        },
        "spec": pod_spec,
    }


def _with_variable(container: Json, variable: Json) -> Json:
    own = objects(container.get("env"))
    if any(each.get("name") == variable["name"] for each in own):
        return container
    return {**container, "env": [*own, variable]}


def _of_jobset(jobset: Json) -> Iterator[ChildTemplate]:
    ended: dict[str, frozenset[str]] = {}
    every = replicated_jobs(jobset)
    total = sum(each.replicas for each in every)
    in_groups = Counter[str]()
    for each in every:
        in_groups[_group(each)] += each.replicas
    before, before_in_group = 0, Counter[str]()
    for each in every:
        waits = {text(one.get("name")): one.get("status") for one in objects(each.spec.get("dependsOn"))}
        direct = frozenset(name for name, status in waits.items() if status == _COMPLETE)
        ended[each.name] = direct.union(*(ended.get(name, frozenset[str]()) for name in waits))
        numbers = {
            "global-replicas": str(total),
            "job-global-index": str(before),
            "group-replicas": str(in_groups[_group(each)]),
            "job-group-index": str(before_in_group[_group(each)]),
        }
        job = _child_job(jobset, each, numbers)
        before += each.replicas
        before_in_group[_group(each)] += each.replicas
        yield ChildTemplate(
            name=each.name,
            source=mapping(each.spec.get("template")),
            follows=each.follows,
            pods=each.replicas * each.pods_at_once,
            labels={
                **_texts(labels_of(each.template)),
                JOBSET_NAME: name_of(jobset),
                REPLICATED_JOB: each.name,
            },
            job=job,
            pod=pod_of_job(job),
            after=ended[each.name],
            apart_by=_apart_by(each, annotations_of(job)),
        )


def _apart_by(each: ReplicatedJob, annotations: Json) -> tuple[str, int] | None:
    key = text(annotations.get(EXCLUSIVE_TOPOLOGY))
    return (key, each.replicas) if key and _BY_NODE_SELECTOR not in annotations else None


def _group(each: ReplicatedJob) -> str:
    return text(each.spec.get("groupName"))


def _child_job(jobset: Json, each: ReplicatedJob, numbers: Mapping[str, str]) -> Json:
    """Return the first child Job of a replicated job; `numbers` are its place among the others."""
    owner, namespace = name_of(jobset), text(metadata_of(jobset).get("namespace"))
    name = f"{owner}-{each.name}-0"
    spec, template = mapping(jobset.get("spec")), mapping(each.spec.get("template"))
    marks: dict[str, JsonValue] = {
        JOBSET_NAME: owner,
        f"{_JOBSET}/jobset-uid": text(metadata_of(jobset).get("uid")),
        REPLICATED_JOB: each.name,
        RESTART_ATTEMPT: str(count(mapping(jobset.get("status")).get("restarts"))),
        f"{_JOBSET}/replicatedjob-replicas": str(each.replicas),
        f"{_JOBSET}/job-index": "0",
        f"{_JOBSET}/job-key": hashlib.sha1(f"{namespace}/{name}".encode(), usedforsecurity=False).hexdigest(),
        f"{_JOBSET}/group-name": _group(each),
        **{f"{_JOBSET}/{name}": number for name, number in numbers.items()},
    }
    network = mapping(spec.get("network"))
    subdomain = text(network.get("subdomain")) or owner
    if (coordinator := mapping(spec.get("coordinator"))) and "coordinator" in spec:
        place = f"{count(coordinator.get('jobIndex'))}-{count(coordinator.get('podIndex'))}"
        marks[f"{_JOBSET}/coordinator"] = (
            f"{owner}-{text(coordinator.get('replicatedJob'))}-{place}.{subdomain}"
        )
    own = {**annotations_of(jobset), **annotations_of(template)}
    placement = {key: own[key] for key in (EXCLUSIVE_TOPOLOGY, _BY_NODE_SELECTOR) if key in own}
    pod_spec = dict(each.pod_spec)
    if network.get("enableDNSHostnames") is not False:
        pod_spec["subdomain"] = subdomain
    claims = _claims(jobset, pod_spec)
    if claims:
        pod_spec["volumes"] = [*objects(pod_spec.get("volumes")), *claims]
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**labels_of(template), **marks},
            "annotations": {**annotations_of(template), **marks, **placement},
        },
        "spec": {
            **each.job_spec,
            "suspend": spec.get("suspend") is True,
            "template": {
                "metadata": {
                    **metadata_of(each.template),
                    "labels": {**labels_of(each.template), **marks},
                    "annotations": {**annotations_of(each.template), **marks, **placement},
                },
                "spec": pod_spec,
            },
        },
    }


def _claims(jobset: Json, pod_spec: Json) -> list[JsonValue]:
    """Return the volumes that JobSet adds for its own claims that a container mounts."""
    containers = (*objects(pod_spec.get("initContainers")), *objects(pod_spec.get("containers")))
    mounted = {text(mount.get("name")) for each in containers for mount in objects(each.get("volumeMounts"))}
    names = [
        name
        for policy in objects(mapping(jobset.get("spec")).get("volumeClaimPolicies"))
        for template in objects(policy.get("templates"))
        if (name := name_of(template)) in mounted
    ]
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{name_of(jobset)}"}} for name in names
    ]


def _of_rayjob(rayjob: Json) -> Iterator[ChildTemplate]:
    cluster = text(mapping(rayjob.get("status")).get("rayClusterName")) or f"{name_of(rayjob)}-{_RANDOM}"
    head = mapping(cluster_spec(rayjob).get("headGroupSpec"))
    if head:
        made = _ray_pod(rayjob, cluster, mapping(head.get("template")), "head", "headgroup", {})
        yield ChildTemplate(
            name="head",
            source={"head": head.get("template")},
            follows=False,
            pods=1,
            labels={},
            job=None,
            pod=made,
        )
    for group in worker_groups(rayjob):
        yield _of_group(rayjob, cluster, group)
    if head and text(mapping(rayjob.get("spec")).get("submissionMode")) in {"", "K8sJobMode"}:
        job = _submitter(rayjob, head)
        yield ChildTemplate(
            name="submitter", source=job, follows=False, pods=1, labels={}, job=job, pod=pod_of_job(job)
        )


def _of_group(rayjob: Json, cluster: str, group: WorkerGroup) -> ChildTemplate:
    template = mapping(group.spec.get("template"))
    beside = {**_texts(mapping(group.spec.get("labels"))), _REPLICA: "0"}
    own = {RAY_GROUP: group.name, RAY_NODE_TYPE: RAY_WORKER}
    pod = _ray_pod(rayjob, cluster, template, RAY_WORKER, group.name, beside)
    return ChildTemplate(
        name=group.name,
        source={"worker": template, "labels": group.spec.get("labels")},
        follows=group.follows,
        pods=group.pods,
        labels={**_texts(labels_of(template)), **_texts(mapping(group.spec.get("labels"))), **own},
        job=None,
        pod={**pod, "spec": _waiting_for_head(mapping(pod.get("spec")))},
    )


def _ray_pod(
    rayjob: Json, cluster: str, template: Json, role: str, group: str, labels: Mapping[str, str]
) -> Json:
    short = "head" if role == "head" else f"{group}-worker"
    made = {
        RAY_NODE_TYPE: role,
        RAY_GROUP: group,
        "ray.io/cluster": cluster,
        "ray.io/identifier": f"{cluster}-{role}"[-63:],
        "ray.io/is-ray-node": "yes",
    }
    return {
        "apiVersion": POD.api_version,
        "kind": POD.name,
        "metadata": {
            "generateName": f"{cluster}-{short}-",
            "namespace": metadata_of(rayjob).get("namespace"),
            "labels": {**_OF_KUBERAY, **labels_of(template), **labels, **made},
            "annotations": annotations_of(template),
        },
        "spec": mapping(template.get("spec")),
    }


def _waiting_for_head(spec: Json) -> Json:
    """Return the specification of a worker with the init container that KubeRay adds."""
    first = next(iter(objects(spec.get("containers"))), mapping(None))
    kept = ("image", "imagePullPolicy", "securityContext", "env", "volumeMounts")
    amounts = {"cpu": "200m", "memory": "256Mi"}
    waits: Json = {
        "name": "wait-gcs-ready",
        **{field: first[field] for field in kept if field in first},
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {**spec, "initContainers": [*objects(spec.get("initContainers")), waits]}


def _submitter(rayjob: Json, head: Json) -> Json:
    """Return the Job that submits a RayJob to its cluster."""
    spec, name = mapping(rayjob.get("spec")), name_of(rayjob)
    labels = {
        "app.kubernetes.io/created-by": "kuberay-operator",
        "ray.io/originated-from-cr-name": name,
        "ray.io/originated-from-crd": "RayJob",
    }
    config = mapping(spec.get("submitterConfig"))
    template = mapping(spec.get("submitterPodTemplate")) or _default_submitter(head)
    pod_spec = mapping(template.get("spec"))
    if not text(pod_spec.get("restartPolicy")):
        pod_spec = {**pod_spec, "restartPolicy": "Never"}
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "metadata": {"name": name, "namespace": metadata_of(rayjob).get("namespace"), "labels": labels},
        "spec": {
            "backoffLimit": count(config.get("backoffLimit"), 2),
            "template": {**template, "spec": pod_spec},
        },
    }


def _default_submitter(head: Json) -> Json:
    pod = mapping(mapping(head.get("template")).get("spec"))
    first = next(iter(objects(pod.get("containers"))), mapping(None))
    container: Json = {
        "name": "ray-job-submitter",
        **{field: first[field] for field in ("image", "imagePullPolicy") if field in first},
        "resources": {
            "requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    }
    pulls = {"imagePullSecrets": pod["imagePullSecrets"]} if "imagePullSecrets" in pod else {}
    return {"spec": {"containers": [container], "restartPolicy": "Never", **pulls}}


def _texts(labels: Json) -> Mapping[str, str]:
    return {key: text(value) for key, value in labels.items()}
