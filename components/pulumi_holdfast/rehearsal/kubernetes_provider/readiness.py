"""Rules that decide from the status of an object whether it is ready, one for each kind. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.kubernetes_client.objects import condition


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What an object misses, "" if it is ready; `is_final`: it can no longer become ready."""

    reason: str = ""
    is_final: bool = False


Rule: TypeAlias = Callable[[Json], Readiness]
READY = Readiness()


def waiting(reason: str) -> Readiness:
    """Return that the object can still become ready."""
    return Readiness(reason=reason)


def failed(reason: str) -> Readiness:
    """Return that the object can no longer become ready."""
    return Readiness(reason=reason, is_final=True)


def rule_for(obj: Json) -> Rule | None:
    """Return the rule for the kind of an object; None if the object is ready at once."""
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    return _RULES.get(f"{group}/{obj.get('kind')}")


def _is_observed(obj: Json) -> bool:
    """Whether the controller has observed the latest generation, so the status is current."""
    seen = mapping(obj.get("status")).get("observedGeneration")
    return _number(seen) >= _number(mapping(obj.get("metadata")).get("generation"))


def _deployment(obj: Json) -> Readiness:
    progressing = condition(obj, "Progressing")
    if not _is_observed(obj):
        return waiting("the controller has not observed it yet")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return failed(str(progressing.get("message")))
    status, wanted = mapping(obj.get("status")), _replicas(obj)
    updated, available = _number(status.get("updatedReplicas")), _number(status.get("availableReplicas"))
    if updated < wanted:
        return waiting(f"{updated} of {wanted} pods have the latest revision")
    if _number(status.get("replicas")) > updated:
        return waiting(f"{_number(status.get('replicas')) - updated} pods of an older revision remain")
    if available < wanted:
        return waiting(f"{available} of {wanted} pods are available")
    return READY


def _stateful_set(obj: Json) -> Readiness:
    if not _is_observed(obj):
        return waiting("the controller has not observed it yet")
    status, wanted = mapping(obj.get("status")), _replicas(obj)
    strategy = mapping(mapping(obj.get("spec")).get("updateStrategy"))
    ready, updated = _number(status.get("readyReplicas")), _number(status.get("updatedReplicas"))
    if ready < wanted:
        return waiting(f"{ready} of {wanted} pods are ready")
    partition = _number(mapping(strategy.get("rollingUpdate")).get("partition"))
    if strategy.get("type") != "OnDelete" and updated < wanted - partition:
        return waiting(f"{updated} of {wanted - partition} pods have the latest revision")
    return READY


def _daemon_set(obj: Json) -> Readiness:
    if not _is_observed(obj):
        return waiting("the controller has not observed it yet")
    status = mapping(obj.get("status"))
    wanted = _number(status.get("desiredNumberScheduled"))
    strategy = mapping(mapping(obj.get("spec")).get("updateStrategy")).get("type")
    updated, available = _number(status.get("updatedNumberScheduled")), _number(status.get("numberAvailable"))
    if strategy != "OnDelete" and updated < wanted:
        return waiting(f"{updated} of {wanted} pods have the latest revision")
    return READY if available >= wanted else waiting(f"{available} of {wanted} pods are available")


def _pod(obj: Json) -> Readiness:
    status = mapping(obj.get("status"))
    if status.get("phase") == "Failed":
        return failed(str(status.get("message") or status.get("reason") or "the pod failed"))
    if status.get("phase") == "Succeeded" or condition(obj, "Ready").get("status") == "True":
        return READY
    return waiting(f"the pod is {status.get('phase') or 'not scheduled'}")


def _job(obj: Json) -> Readiness:
    end = condition(obj, "Failed")
    if end.get("status") == "True":
        return failed(str(end.get("message") or end.get("reason")))
    return READY if condition(obj, "Complete").get("status") == "True" else waiting("the job is not complete")


def _service(obj: Json) -> Readiness:
    is_balanced = mapping(obj.get("spec")).get("type") == "LoadBalancer"
    return _load_balanced(obj) if is_balanced else READY


def _load_balanced(obj: Json) -> Readiness:
    addresses = sequence(mapping(mapping(obj.get("status")).get("loadBalancer")).get("ingress"))
    return READY if addresses else waiting("it has no load balancer address")


def _phase(*wanted: str) -> Rule:
    def rule(obj: Json) -> Readiness:
        phase = mapping(obj.get("status")).get("phase")
        return READY if phase in wanted else waiting(f"it is {phase}, not {' or '.join(wanted)}")

    return rule


def _crd(obj: Json) -> Readiness:
    """The API server refuses objects of the new kind until it is established."""
    refused = condition(obj, "NamesAccepted")
    if refused.get("status") == "False":
        return failed(str(refused.get("message")))
    established = condition(obj, "Established").get("status") == "True"
    return READY if established else waiting("its kind is not served yet")


def _quota(obj: Json) -> Readiness:
    wanted = mapping(mapping(obj.get("spec")).get("hard"))
    counted = mapping(mapping(obj.get("status")).get("hard"))
    return READY if dict(wanted) == dict(counted) else waiting("its limits are not enforced yet")


def _secret(obj: Json) -> Readiness:
    is_token = obj.get("type") == "kubernetes.io/service-account-token"
    return waiting("its token is not issued") if is_token and not obj.get("data") else READY


def _replicas(obj: Json) -> int:
    wanted = mapping(obj.get("spec")).get("replicas")
    return 1 if wanted is None else _number(wanted)


def _number(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0


_RULES: Mapping[str, Rule] = {
    "apps/DaemonSet": _daemon_set,
    "apps/Deployment": _deployment,
    "apps/StatefulSet": _stateful_set,
    "batch/Job": _job,
    "networking.k8s.io/Ingress": _load_balanced,
    "apiextensions.k8s.io/CustomResourceDefinition": _crd,
    "/PersistentVolume": _phase("Available", "Bound"),
    "/PersistentVolumeClaim": _phase("Bound"),
    "/Pod": _pod,
    "/ResourceQuota": _quota,
    "/Secret": _secret,
    "/Service": _service,
}
