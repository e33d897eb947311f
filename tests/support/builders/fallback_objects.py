"""Builders of jobs, their pods and their nodes as an API server returns them; the defaults are healthy."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack

from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import RESERVATION_NAMESPACE, RESERVED_FOR
from tests.support.json_objects import obj, objects

NAMESPACE = "vision"
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
UID = "0c9d27a2-a545-44b2-bcd1-f407d4244501"


def stamp(at: datetime) -> str:
    """A time in Kubernetes' format."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_spec(selector: Mapping[str, str] | None = None, **fields: JsonValue) -> Json:
    """A pod template's spec that requests one CPU."""
    container: Json = {"name": "train", "image": "train:1", "resources": {"requests": {"cpu": "1"}}}
    selected: Json = {} if selector is None else {"nodeSelector": dict(selector)}
    return {"containers": [container], **selected, **fields}


def replicated_job(
    name: str = "worker",
    *,
    selector: Mapping[str, str] | None = None,
    replicas: int = 1,
    parallelism: int = 2,
    completions: int | None = None,
    template: Json | None = None,
    follows: bool = False,
    **fields: JsonValue,
) -> Json:
    """A JobSet's template of two pods; `template` is its pods' spec, `follows`: admission has labeled it."""
    marks: Json = {"metadata": {"labels": {"holdfast.dev/fallback": "true"}}} if follows else {}
    job_spec: Json = {
        "parallelism": parallelism,
        "completions": parallelism if completions is None else completions,
        "template": {**marks, "spec": pod_spec(selector) if template is None else template},
    }
    return {"name": name, "replicas": replicas, "template": {"spec": job_spec}, **fields}


def jobset(
    *replicated: Json,
    suspend: bool = False,
    status: Json | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: JsonValue,
) -> Json:
    """A JobSet `train` that follows the ladder; its two workers select the pool `spot-a` unless others are given."""
    templates = list(replicated) or [replicated_job(selector={"holdfast.dev/pool": "spot-a"})]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": "train",
            "namespace": NAMESPACE,
            "uid": UID,
            "resourceVersion": "41",
            "creationTimestamp": stamp(EARLIER),
            "labels": {"holdfast.dev/fallback": "true", **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "suspend": suspend,
            "failurePolicy": {"maxRestarts": 5},
            "replicatedJobs": templates,
            **spec,
        },
        "status": {"restarts": 0, **(status or {})},
    }


def child_job(
    jobset: Json,
    *,
    index: int = 0,
    place: int = 0,
    suspend: bool = False,
    status: Json | None = None,
    selector: Mapping[str, str] | None = None,
    attempt: int = 0,
    deleted_at: datetime | None = None,
    **pod_fields: JsonValue,
) -> Json:
    """The Job that JobSet creates from the template at `place`; `selector` and the others override it.

    `suspend`: the Job controller has suspended it. `attempt`: how many restarts came before it.
    """
    template = objects(obj(jobset["spec"])["replicatedJobs"])[place]
    job_spec = obj(obj(template["template"])["spec"])
    selected: Json = {} if selector is None else {"nodeSelector": dict(selector)}
    pods: Json = {**obj(obj(job_spec["template"])["spec"]), **pod_fields, **selected}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"train-{template['name']}-{index}",
            "namespace": NAMESPACE,
            "uid": f"uid-of-{template['name']}-{index}",
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": "train",
                "jobset.sigs.k8s.io/replicatedjob-name": template["name"],
                "jobset.sigs.k8s.io/restart-attempt": str(attempt),
            },
            "ownerReferences": [_controller(jobset)],
            **({} if deleted_at is None else {"deletionTimestamp": stamp(deleted_at)}),
        },
        "spec": {**job_spec, "suspend": suspend, "template": {"spec": pods}},
        "status": ({"conditions": [condition("Suspended")]} if suspend else {}) if status is None else status,
    }


def rayjob(
    *groups: Json,
    status: str = "Running",
    head: Json | None = None,
    annotations: Mapping[str, str] | None = None,
    cluster: Json | None = None,
    more_status: Json | None = None,
    metadata: Json | None = None,
    **spec: JsonValue,
) -> Json:
    """A RayJob `train` that follows the ladder and runs; its two workers select the pool `spot-a`."""
    workers = list(groups) or [worker_group(selector={"holdfast.dev/pool": "spot-a"})]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": "train",
            "namespace": NAMESPACE,
            "uid": UID,
            "resourceVersion": "41",
            "creationTimestamp": stamp(EARLIER),
            "labels": {"holdfast.dev/fallback": "true"},
            "annotations": dict(annotations or {}),
            **(metadata or {}),
        },
        "spec": {
            "entrypoint": "python -m train",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "headGroupSpec": {"template": {"spec": head or pod_spec()}},
                "workerGroupSpecs": workers,
                **(cluster or {}),
            },
            **spec,
        },
        "status": {
            "jobDeploymentStatus": status,
            "rayClusterName": "train-bcdfg",
            "failed": 0,
            **(more_status or {}),
        },
    }


def worker_group(
    name: str = "worker",
    *,
    selector: Mapping[str, str] | None = None,
    replicas: int = 2,
    template: Json | None = None,
    **fields: JsonValue,
) -> Json:
    """A worker group of two."""
    return {
        "groupName": name,
        "replicas": replicas,
        "minReplicas": 0,
        "maxReplicas": 10,
        "numOfHosts": 1,
        "template": {"spec": pod_spec(selector) if template is None else template},
        **fields,
    }


class PodFields(TypedDict, total=False):
    """The fields of a pod. `deleted_at`: when its deletion was requested, with `grace` seconds. `owner`: its Job."""

    node: str
    pool: str | None
    phase: str
    conditions: Sequence[Json]
    deleted_at: datetime
    grace: int
    ended_at: datetime
    exit_code: int
    reason: str
    annotations: Mapping[str, str]
    created: datetime
    uid: str
    owner: Json


def pod(name: str, labels: Mapping[str, str], **fields: Unpack[PodFields]) -> Json:
    """A pod that selects `spot-a`; with a node it runs there, unless another phase is given."""
    pool = fields.get("pool", "spot-a")
    selector: Json = {"holdfast.dev/pool": pool} if pool else {}
    spec: Json = {"nodeSelector": selector, **({"nodeName": fields["node"]} if "node" in fields else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": fields.get("uid", f"uid-of-{name}"),
            "creationTimestamp": stamp(fields.get("created", EARLIER)),
            "labels": dict(labels),
            "annotations": dict(fields.get("annotations", {})),
            **({"ownerReferences": [_controller(fields["owner"])]} if "owner" in fields else {}),
            **_deletion(fields),
        },
        "spec": spec,
        "status": _status(fields),
    }


def _controller(owner: Json) -> Json:
    metadata = obj(owner["metadata"])
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def _deletion(fields: PodFields) -> Json:
    if "deleted_at" not in fields:
        return {}
    grace = fields.get("grace", 30)
    over = fields["deleted_at"] + timedelta(seconds=grace)
    return {"deletionTimestamp": stamp(over), "deletionGracePeriodSeconds": grace}


def _status(fields: PodFields) -> Json:
    ended = fields.get("ended_at")
    terminated: Json = {"exitCode": fields.get("exit_code", 1), "finishedAt": stamp(ended)} if ended else {}
    states: list[Json] = [{"name": "train", "state": {"terminated": terminated}}] if ended else []
    return {
        "phase": fields.get("phase", "Running" if "node" in fields else "Pending"),
        "conditions": list(fields.get("conditions", ())),
        "containerStatuses": states,
        **({"reason": fields["reason"]} if "reason" in fields else {}),
    }


def worker(name: str, *, of: str = UID, job: str = "worker", **fields: Unpack[PodFields]) -> Json:
    """A pod of the JobSet `train`."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/jobset-uid": of,
        "jobset.sigs.k8s.io/replicatedjob-name": job,
    }
    return pod(name, labels, **fields)


def renamed(thing: Json, name: str) -> Json:
    """A JobSet, or a pod of one, as of another JobSet with a name and a uid of its own."""
    metadata = obj(thing["metadata"])
    labels: Json = {**obj(metadata.get("labels", {})), "jobset.sigs.k8s.io/jobset-name": name}
    return {**thing, "metadata": {**metadata, "name": name, "uid": f"uid-of-{name}", "labels": labels}}


def with_metadata(thing: Json, **fields: JsonValue) -> Json:
    """The same object with other fields in its metadata."""
    return {**thing, "metadata": {**obj(thing["metadata"]), **fields}}


def ray_worker(
    name: str, *, group: str = "worker", cluster: str = "train-bcdfg", **fields: Unpack[PodFields]
) -> Json:
    """A pod of a worker group of the RayJob `train`."""
    return pod(
        name, {"ray.io/cluster": cluster, "ray.io/node-type": "worker", "ray.io/group": group}, **fields
    )


def ray_head(name: str = "train-head", *, ready: bool = True, **fields: Unpack[PodFields]) -> Json:
    """The head of the RayJob `train`, on its own node."""
    labels = {"ray.io/cluster": "train-bcdfg", "ray.io/node-type": "head", "ray.io/group": "headgroup"}
    given: PodFields = {
        "node": "head-node",
        "pool": None,
        "conditions": [condition("Ready", status="True" if ready else "False")],
    }
    return pod(name, labels, **{**given, **fields})


def condition(
    kind: str, *, status: str = "True", at: datetime = EARLIER, reason: str = "", message: str = ""
) -> Json:
    """A condition of an object's status."""
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": stamp(at),
        "reason": reason,
        "message": message,
    }


def disrupted(at: datetime, reason: str = "EvictionByEvictionAPI") -> Json:
    """The condition of a pod that is evicted from its node."""
    return condition("DisruptionTarget", at=at, reason=reason)


def node(
    name: str,
    *,
    ready: str = "True",
    message: str = "",
    taints: Iterable[str] = (),
    deleted: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Json:
    """A ready node of Karpenter."""
    metadata: Json = {
        "name": name,
        "labels": {"karpenter.sh/nodepool": "spot-a", **(labels or {})},
        **({"deletionTimestamp": stamp(NOW)} if deleted else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {"conditions": [condition("Ready", status=ready, message=message)]},
    }


def by_name(*nodes: Json) -> Mapping[str, Json]:
    """Nodes as a snapshot has them."""
    return {str(obj(each["metadata"])["name"]): each for each in nodes}


def snapshot(
    job: Json,
    *pods: Json,
    now: datetime = NOW,
    nodes: Iterable[Json] = (),
    children: Iterable[Json] = (),
    claims: Mapping[str, Json] | None = None,
    workloads: Iterable[Json] = (),
) -> Snapshot:
    """A job with its surrounding objects."""
    return Snapshot(
        job=job,
        now=now,
        pods=pods,
        children=tuple(children),
        nodes=by_name(*nodes),
        claims=claims,
        workloads=tuple(workloads),
    )


def observed(
    job: Json,
    *pods: Json,
    nodes: Iterable[Json] = (),
    children: Iterable[Json] = (),
    workloads: Iterable[Json] = (),
) -> Observation:
    """What its kind sees of a job that was not seen before."""
    seen = snapshot(job, *pods, nodes=nodes, children=children, workloads=workloads)
    return KINDS[str(job["kind"])].observe(seen, PodHistory())[0]


def placeholder(on: str = "", namespace: str = RESERVATION_NAMESPACE) -> Json:
    """A placeholder of the JobSet."""
    metadata: Json = {"name": "hold", "namespace": namespace, "labels": {RESERVED_FOR: UID}}
    return {"metadata": metadata, "spec": {"nodeName": on} if on else {}}


def named(name: str, *, labels: Json | None = None, **fields: Json) -> Json:
    """Something of the cluster's scope."""
    return {"metadata": {"name": name, "labels": labels or {}}, **fields}
