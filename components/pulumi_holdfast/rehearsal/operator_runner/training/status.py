"""The status of a training pod from the states of its containers, and why a node rejects a pod. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from pulumi_holdfast.controller.kube.objects import labels_of, metadata_of, name_of, objects
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.quantities import parse_quantity

_READY: Final = ("ContainersReady", "Ready")
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", *_READY)
#: How many training pods run beside each other for each core of this machine.
_PODS_PER_CORE: Final = 16
_JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
_RAY_CLUSTER: Final = "ray.io/cluster"
_STORAGE: Final = "ephemeral-storage"
#: Of a pod that sets no limit: the disk is this machine's.
_MOST_STORAGE: Final = "2Gi"
_REASONS: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


@dataclass(frozen=True, kw_only=True)
class ContainerState:
    """A container at one moment: it waits for a `reason`, runs since `started_at`, or has an `exit_code`.

    `last` is the terminated state of its process before the current one.
    """

    name: str
    image: str
    reason: str = "ContainerCreating"
    message: str = ""
    started_at: str = ""
    exit_code: int | None = None
    finished_at: str = ""
    restarts: int = 0
    is_started: bool = False
    is_ready: bool = False
    last: Json = field(default_factory=dict[str, "Json"])

    @property
    def terminated(self) -> Json:
        """Its terminated state in the API; empty if it has not ended."""
        if self.exit_code is None:
            return {}
        ended: Json = {"exitCode": self.exit_code, "reason": self.reason, "finishedAt": self.finished_at}
        return {**ended, "startedAt": self.started_at or self.finished_at, "message": self.message}

    def shown(self) -> Json:
        """Its status in the API."""
        state: Json
        if self.exit_code is not None:
            state = {"terminated": self.terminated}
        elif self.started_at:
            state = {"running": {"startedAt": self.started_at}}
        else:
            state = {"waiting": {"reason": self.reason, "message": self.message}}
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.is_ready,
            "started": self.is_started,
            "restartCount": self.restarts,
            "state": state,
            **({"lastState": {"terminated": self.last}} if self.last else {}),
        }


@dataclass(frozen=True, kw_only=True)
class PodOutcome:
    """The phase of a pod with its reason and message, empty without one."""

    phase: str
    reason: str = ""
    message: str = ""


def pod_status(
    pod: Json,
    outcome: PodOutcome,
    inits: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    address: str,
    at: str,
) -> Json:
    """The fields of a pod's status that a kubelet writes, as a strategic patch."""
    before = mapping(pod.get("status"))
    ready = outcome.phase == "Running" and all(each.is_ready for each in containers)
    known = {str(each.get("type")): each for each in objects(before.get("conditions"))}
    conditions: list[Json] = []
    for kind in _CONDITIONS:
        is_true = ready if kind in _READY else outcome.phase != "Pending"
        status = "True" if is_true else "False"
        same = known.get(kind, {}).get("status") == status
        reason = _REASONS.get(outcome.phase) if kind in _READY else None
        since = known[kind].get("lastTransitionTime") if same else at
        conditions.append({"type": kind, "status": status, "reason": reason, "lastTransitionTime": since})
    shown: Json = {
        "phase": outcome.phase,
        "startTime": before.get("startTime") or at,
        "conditions": conditions,
        "containerStatuses": [each.shown() for each in containers],
        "initContainerStatuses": [each.shown() for each in inits],
        "reason": outcome.reason or None,
        "message": outcome.message or None,
    }
    # A strategic patch adds to the addresses, and the API server accepts one of each family.
    is_known = before.get("podIP") or not address
    return shown if is_known else {**shown, "podIP": address, "podIPs": [{"ip": address}]}


def rejection(pod: Json, node: Json, others: Iterable[Json]) -> PodOutcome | None:
    """Why a node rejects a pod that was bound to it, None if it admits it; `others` are its pods that have not ended.

    The scheduler has checked the same before, but the node or its pods may have changed.
    """
    selected = mapping(mapping(pod.get("spec")).get("nodeSelector"))
    if not selected.items() <= labels_of(node).items():
        return PodOutcome(
            phase="Failed",
            reason="NodeAffinity",
            message="Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        )
    allocatable = mapping(mapping(node.get("status")).get("allocatable"))
    beside = list(others)
    for resource, wanted in _requests(pod).items():
        capacity = parse_quantity(str(allocatable.get(resource, "0")))
        used = sum((_requests(each).get(resource, Fraction(0)) for each in beside), Fraction(0))
        if wanted and used + wanted > capacity:
            return PodOutcome(
                phase="Failed",
                reason=f"OutOf{resource}",
                message=f"Pod was rejected: Node didn't have enough resource: {resource}, requested: {wanted}, "
                f"used: {used}, capacity: {capacity}",
            )
    return None


def shortage(pod: Json, here: Iterable[tuple[Json, bool]], cores: int) -> str:
    """What this machine lacks for a pod now, empty if nothing; a gang that never fits does not begin.

    `here` are the training pods of this machine, the pod among them, and whether each of them runs.
    """
    most, known = _PODS_PER_CORE * cores, list(here)
    gang = sum(_gang_of(each) == _gang_of(pod) for each, _ in known)
    if gang > most:
        return (
            f"its job has {gang} pods, and this machine runs at most {most}, {_PODS_PER_CORE} for each core: use "
            f"{-(-gang // _PODS_PER_CORE)} cores, fewer pods, or leave the label away so that they are simulated"
        )
    if sum(runs for _, runs in known) >= most:
        return f"this machine runs {most} training pods, {_PODS_PER_CORE} for each core: it waits for the end of one"
    return ""


def _gang_of(pod: Json) -> tuple[object, object]:
    metadata, labels = metadata_of(pod), labels_of(pod)
    job = labels.get(_JOBSET) or labels.get(_RAY_CLUSTER)
    return (metadata.get("namespace"), job) if job else (metadata.get("uid"), None)


def storage_limits(pod: Json) -> dict[str, str]:
    """How much a pod may write: to each emptyDir with a limit, and under the name "" to all of its folder."""
    spec = mapping(pod.get("spec"))
    volumes = {str(each.get("name")): mapping(each.get("emptyDir")) for each in objects(spec.get("volumes"))}
    own = {name: str(volume["sizeLimit"]) for name, volume in volumes.items() if "sizeLimit" in volume}
    limits = [
        mapping(mapping(each.get("resources")).get("limits")).get(_STORAGE)
        for each in objects(spec.get("containers"))
    ]
    whole = sum((parse_quantity(each) for each in limits if each), Fraction(0))
    return {**own, "": str(whole) if whole else _MOST_STORAGE}


def storage_eviction(pod: Json, used: Mapping[str, int]) -> PodOutcome | None:
    """How a kubelet evicts a pod that has written more than it may, None if it has not.

    No `DisruptionTarget` condition says so: it is the program's own fault.
    """
    for name, limit in storage_limits(pod).items():
        if used.get(name, 0) > parse_quantity(limit):
            message = (
                f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}".'
                if name
                else f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}."
            )
            return PodOutcome(phase="Failed", reason="Evicted", message=message)
    return None


def _requests(pod: Json) -> dict[str, Fraction]:
    """What a pod requests: the sum of its containers with the sidecars, or its largest init container."""
    spec = mapping(pod.get("spec"))
    inits = objects(spec.get("initContainers"))
    total: dict[str, Fraction] = {}
    sidecars = [each for each in inits if each.get("restartPolicy") == "Always"]
    for each in (*objects(spec.get("containers")), *sidecars):
        for resource, amount in mapping(mapping(each.get("resources")).get("requests")).items():
            total[resource] = total.get(resource, Fraction(0)) + parse_quantity(str(amount))
    for each in inits:
        for resource, amount in mapping(mapping(each.get("resources")).get("requests")).items():
            total[resource] = max(total.get(resource, Fraction(0)), parse_quantity(str(amount)))
    return total


def is_deleted(pod: Json) -> bool:
    """Whether the deletion of a pod has been requested."""
    return metadata_of(pod).get("deletionTimestamp") is not None


def has_ended(pod: Json) -> bool:
    """Whether a pod has succeeded or failed."""
    return mapping(pod.get("status")).get("phase") in ("Succeeded", "Failed")


def described(pod: Json) -> str:
    """The namespace and the name of a pod, for the log."""
    return f"{metadata_of(pod).get('namespace')}/{name_of(pod)}"
