"""Trims each kind of object to the fields that the controller reads, before it is cached.

A pod is some 10 KB of text and over 30 KB as Python objects; a trimmed one is a tenth. Its author chooses how much it has of
what is read, too: what is kept of a pod does not grow with its containers, nor does any part with its text.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Final, TypeAlias

from pulumi_holdfast.controller.kube.objects import moment, namespace_of, objects, text
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import (
    CAPACITY_KEYS,
    CHECKPOINTED,
    INSTANCE_TYPE,
    POOL,
    PROGRESS,
    REPLICATED_JOB,
    RESERVATION_NAMESPACE,
    RESERVED_FOR,
    RESTART_ATTEMPT,
    ZONE,
)
from pulumi_holdfast.ladder.quantities import format_quantity, remembered_requests

Fields: TypeAlias = Mapping[str, "Fields | None"]
"""The fields of an object to keep; None keeps a field completely. Applies to each element of a list."""

_OWNERS: Final[Fields] = {"apiVersion": None, "kind": None, "name": None, "uid": None, "controller": None}
_METADATA: Final[Fields] = {
    "name": None,
    "namespace": None,
    "uid": None,
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "deletionGracePeriodSeconds": None,
    "ownerReferences": _OWNERS,
}
# The labels that identify a pod's job and part. A JobSet's pod has some fifteen labels.
_POD_LABELS: Final[Fields] = dict.fromkeys(
    (
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/jobset-uid",
        "jobset.sigs.k8s.io/replicatedjob-name",
        "ray.io/cluster",
        "ray.io/node-type",
        "ray.io/group",
        "batch.kubernetes.io/job-name",
        RESERVED_FOR,
        POOL,
    )
)
_NODE_LABELS: Final[Fields] = dict.fromkeys(
    ("karpenter.sh/nodepool", RESERVED_FOR, POOL, INSTANCE_TYPE, ZONE, *CAPACITY_KEYS)
)
_CONDITIONS: Final[Fields] = dict.fromkeys(("type", "status", "reason", "lastTransitionTime"))
_TEMPLATE: Final[Fields] = {"spec": {"nodeSelector": None, "tolerations": None}}

# The API server fills in requests from limits.
_REQUESTS: Final[Fields] = {"resources": {"requests": None}}

_STATES: Final[Fields] = {"state": {"terminated": {"finishedAt": None}}}
_CONTAINERS: Final = frozenset({"containers", "initContainers", "overhead", "resources"})
_STATUSES: Final = frozenset({"containerStatuses", "initContainerStatuses"})

POD_FIELDS: Final[Fields] = {
    "metadata": {**_METADATA, "labels": _POD_LABELS, "annotations": {CHECKPOINTED: None, PROGRESS: None}},
    "spec": {
        "nodeName": None,
        "nodeSelector": {POOL: None},
        "terminationGracePeriodSeconds": None,
        "containers": _REQUESTS,
        "initContainers": {**_REQUESTS, "restartPolicy": None},
        "overhead": None,
        **_REQUESTS,
    },
    "status": {
        "phase": None,
        "reason": None,
        "startTime": None,
        "conditions": _CONDITIONS,
        "containerStatuses": _STATES,
        "initContainerStatuses": _STATES,
    },
}
NODE_FIELDS: Final[Fields] = {
    "metadata": {**_METADATA, "labels": _NODE_LABELS},
    "spec": {"taints": None},
    "status": {"conditions": {**_CONDITIONS, "message": None}, "allocatable": None},
}
CLAIM_FIELDS: Final[Fields] = {"metadata": _METADATA, "status": {"nodeName": None}}
NODE_POOL_FIELDS: Final[Fields] = {
    "metadata": {"name": None},
    "spec": {"limits": None, "template": {"metadata": {"labels": None}, "spec": {"requirements": None}}},
}
CHILD_FIELDS: Final[Fields] = {
    "metadata": {
        **_METADATA,
        "resourceVersion": None,
        "labels": {REPLICATED_JOB: None, RESTART_ATTEMPT: None},
    },
    "spec": {"suspend": None, "completions": None, "template": _TEMPLATE},
    "status": {"succeeded": None, "conditions": {"type": None, "status": None}},
}
WORKLOAD_FIELDS: Final[Fields] = {"metadata": {"name": None, "namespace": None, "ownerReferences": _OWNERS}}

# A kubelet writes five conditions of a node; only this one is about whether it answers.
_NODE_CONDITIONS: Final = frozenset({"Ready"})
_POD_CONDITIONS: Final = frozenset({"PodScheduled", "DisruptionTarget", "Ready"})


#: How many containers of a pod, and how many elements of any other list or mapping, are read.
MOST_CONTAINERS: Final = 300
#: How many resources a pod requests, and how long a text of it is, as far as they are read.
_MOST_RESOURCES: Final = 32
_MOST_CHARACTERS: Final = 4096


def trim(value: JsonValue, fields: Fields) -> JsonValue:
    """Return the parts of a value that `fields` names; missing fields stay missing, and the rest of long parts is dropped."""
    if isinstance(value, Mapping):
        found: dict[str, JsonValue] = {}
        for name, within in fields.items():
            if name in value:
                found[name] = _bounded(value[name]) if within is None else trim(value[name], within)
        return found
    if isinstance(value, list):
        return [trim(each, fields) for each in value[:MOST_CONTAINERS]]
    return _bounded(value)


def _bounded(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return value[:_MOST_CHARACTERS]
        case Mapping():
            return {name: _bounded(value[name]) for name in islice(value, MOST_CONTAINERS)}
        case list():
            return [_bounded(each) for each in value[:MOST_CONTAINERS]]
        case _:
            return value


def trim_pod(pod: Json) -> Json:
    """Return a trimmed pod, without conditions that are written while it starts and not read."""
    return _with_conditions(trim_current_pod(pod), _POD_CONDITIONS)


def trim_current_pod(pod: Json) -> Json:
    """Return a trimmed pod with all its conditions: a patch replaces them.

    Its containers are one, which requests what all of them request and has ended with the last of them.
    """
    trimmed = dict(mapping(trim(pod, POD_FIELDS)))
    if _CONTAINERS & mapping(trimmed.get("spec")).keys():
        spec = mapping(trimmed["spec"])
        amounts = islice(remembered_requests(spec).items(), _MOST_RESOURCES)
        requests: Json = {name: format_quantity(amount) for name, amount in amounts}
        kept = {name: each for name, each in spec.items() if name not in _CONTAINERS}
        trimmed["spec"] = {**kept, "containers": [{"resources": {"requests": requests}}]}
    status = mapping(trimmed.get("status"))
    if _STATUSES & status.keys():
        ends = {name: _last_end(each) if name in _STATUSES else each for name, each in status.items()}
        trimmed["status"] = ends
    return trimmed


def _last_end(statuses: JsonValue) -> JsonValue:
    """Return the status of the container that ended last, as a list; an empty one if none has ended."""
    ended = [each for each in objects(statuses) if "terminated" in mapping(each.get("state"))]
    return sorted(ended, key=_finished_at)[-1:]


def _finished_at(status: Json) -> datetime:
    finished = moment(mapping(mapping(status.get("state")).get("terminated")).get("finishedAt"))
    return finished or datetime.min.replace(tzinfo=UTC)


def trim_placeholder(pod: Json) -> "Json | None":
    """Return a trimmed placeholder, and ignore any other pod with its label: a tenant may label pods at will.

    The controller taints the nodes of placeholders, and deletes placeholders of jobs that do not exist.
    """
    return trim_pod(pod) if namespace_of(pod) == RESERVATION_NAMESPACE else None


def trim_node(node: Json) -> Json:
    """Return a trimmed node, without fields that change with every heartbeat."""
    return _with_conditions(mapping(trim(node, NODE_FIELDS)), _NODE_CONDITIONS)


def _with_conditions(obj: Json, types: frozenset[str]) -> Json:
    """Return an object without the conditions of its status that have other types."""
    status = mapping(obj.get("status"))
    if "conditions" not in status:
        return obj
    read = [each for each in sequence(status["conditions"]) if text(mapping(each).get("type")) in types]
    return {**obj, "status": {**status, "conditions": read}}


def trim_claim(claim: Json) -> Json:
    """Return a trimmed NodeClaim."""
    return mapping(trim(claim, CLAIM_FIELDS))


def trim_node_pool(node_pool: Json) -> Json:
    """Return a trimmed NodePool."""
    return mapping(trim(node_pool, NODE_POOL_FIELDS))


def trim_workload(workload: Json) -> Json:
    """Return a trimmed Kueue Workload."""
    return mapping(trim(workload, WORKLOAD_FIELDS))
