"""Deletes objects, waits for their removal, and explains what blocks a deletion."""

from collections.abc import Mapping, Sequence

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import KubeError, KubeTimeout, NoSuchKind
from pulumi_holdfast.rehearsal.kubernetes_client.objects import identity, summarize
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import SKIP_AWAIT, is_set, propagation

# With skipAwait, the plugin does not wait for the deletion of these kinds.
_MAY_SKIP_AWAIT = frozenset(
    {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "ReplicationController", "StatefulSet"}
)

# Pools have hours to drain in a real cloud. A simulated pod terminates at once and a machine in seconds, so a longer
# wait cannot succeed.
LONGEST_SECONDS = 300.0


class DeletionTimeoutError(RehearsalError):
    """An object still exists after its deletion timeout; `live` is its last state."""

    def __init__(self, live: Json, seconds: float, reason: str) -> None:
        super().__init__(f"{identity(live)} still exists {seconds:.0f} s after its deletion: {reason}")
        self.live = live


def delete(client: KubeClient, obj: Json, *, seconds: float) -> None:
    """Delete an object and wait for its removal. Does nothing for a missing object or kind.

    Raises DeletionTimeoutError, which names what blocks the deletion, after `seconds` or LONGEST_SECONDS.
    """
    metadata = mapping(obj.get("metadata"))
    api_version, kind, name = str(obj["apiVersion"]), str(obj["kind"]), str(metadata["name"])
    namespace = str(metadata.get("namespace") or "default")
    try:
        was_there = client.delete(api_version, kind, name, namespace=namespace, propagation=propagation(obj))
        if was_there and not (kind in _MAY_SKIP_AWAIT and is_set(obj, SKIP_AWAIT)):
            wait_until_gone(client, obj, seconds=min(seconds, LONGEST_SECONDS))
    except NoSuchKind:
        return


def wait_until_gone(client: KubeClient, obj: Json, *, seconds: float) -> None:
    """Wait for the removal of an object. Raises DeletionTimeoutError."""
    metadata = mapping(obj.get("metadata"))
    uid = metadata.get("uid")

    def is_gone(found: "Json | None") -> bool:
        # A new object with the same name has another uid.
        return found is None or (uid is not None and mapping(found.get("metadata")).get("uid") != uid)

    try:
        client.wait_for(
            str(obj["apiVersion"]),
            str(obj["kind"]),
            str(metadata["name"]),
            namespace=str(metadata.get("namespace") or "default"),
            timeout_seconds=seconds,
            condition=is_gone,
            what=f"{identity(obj)} is gone",
        )
    except KubeTimeout as timeout:
        live = timeout.last or obj
        raise DeletionTimeoutError(live, seconds, deletion_blockers(client, live)) from timeout


# The garbage collector removes this finalizer after the dependents of the object.
_FOREGROUND = "foregroundDeletion"
# The component that removes a finalizer, and when.
_REMOVERS: Mapping[str, str] = {
    "karpenter.sh/termination": "Karpenter removes it when the node is drained and its machine is terminated",
    "karpenter.k8s.aws/termination": "Karpenter removes it when no NodeClaim uses the node class",
    "ray.io/rayjob-finalizer": "KubeRay removes it when the Ray job is stopped",
    "ray.io/rayservice-finalizer": "KubeRay removes it when its clusters are deleted",
    "ray.io/gcs-ft-redis-cleanup-finalizer": "KubeRay removes it when Redis is cleared",
    "batch.kubernetes.io/job-tracking": "the Job controller removes it when it has counted the pod",
    "kubernetes.io/pvc-protection": "the control plane removes it when no pod mounts the claim",
    "kubernetes.io/pv-protection": "the control plane removes it when no claim is bound to the volume",
}
_UNKNOWN_REMOVER = "the controller that added it removes it"
_FIX = (
    "If that controller was deleted first, restore it. Remove a finalizer by hand only if no external resource "
    "depends on it"
)
# The objects of a pool usually have the same problem.
_SHOWN = 3


def deletion_blockers(client: KubeClient, live: Json) -> str:
    """Return what blocks a deletion: finalizers of the object, or of objects that it owns or contains."""
    reason = _finalizers(live)
    if reason:
        return f"{reason}. {_FIX}"
    waits_for = _contents(client, live) if live.get("kind") == "Namespace" else _owned(client, live)
    if not waits_for:
        return summarize(live)
    shown = "; ".join(f"{identity(each)}{_why(each)}" for each in waits_for[:_SHOWN])
    more = f" and {len(waits_for) - _SHOWN} more" if len(waits_for) > _SHOWN else ""
    relation = "contains" if live.get("kind") == "Namespace" else "owns"
    return f"it {relation} {shown}{more}. {_FIX}"


def _why(live: Json) -> str:
    reason = _finalizers(live)
    return f": {reason}" if reason else ""


def _finalizers(live: Json) -> str:
    names = [str(each) for each in sequence(mapping(live.get("metadata")).get("finalizers"))]
    return ", ".join(
        f"finalizer {name} blocks it ({_REMOVERS.get(name, _UNKNOWN_REMOVER)})"
        for name in names
        if name != _FOREGROUND
    )


def _owned(client: KubeClient, live: Json) -> Sequence[Json]:
    metadata = mapping(live.get("metadata"))
    uid, namespace = metadata.get("uid"), metadata.get("namespace")

    def is_owned(one: Json) -> bool:
        owners = map(mapping, sequence(mapping(one.get("metadata")).get("ownerReferences")))
        return any(owner.get("uid") == uid for owner in owners)

    found = _every_object(client, str(namespace) if namespace else None)
    return _blocking([one for one in found if is_owned(one)])


def _contents(client: KubeClient, namespace: Json) -> Sequence[Json]:
    name = str(mapping(namespace["metadata"])["name"])
    found = _every_object(client, name)
    return _blocking([one for one in found if mapping(one.get("metadata")).get("namespace") == name])


def _blocking(found: list[Json]) -> list[Json]:
    """Return the objects with finalizers, or all objects if none has a finalizer."""
    return [one for one in found if _finalizers(one)] or found


def _every_object(client: KubeClient, namespace: str | None) -> list[Json]:
    found: list[Json] = []
    for api_version, kind in client.listable_kinds():
        try:
            found += client.list(api_version, kind, namespace=namespace)
        except KubeError:
            # The kind was deleted meanwhile, or listing it is forbidden.
            continue
    return found
