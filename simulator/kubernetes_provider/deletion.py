"""Deleting objects, and waiting until they are gone."""

from collections.abc import Mapping, Sequence

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError, KubeTimeout, NoSuchKind
from holdfast.simulator.kubernetes_client.objects import identity, mapping, sequence, summarize
from holdfast.simulator.kubernetes_provider.operation import SKIP_AWAIT, is_set, propagation

# The kinds whose deletion the plugin does not wait for when told to skip waits.
_MAY_SKIP_AWAIT = frozenset(
    {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "ReplicationController", "StatefulSet"}
)

# A stack gives pools hours to drain. Here a pod ends at once and a machine in seconds: what has not gone by then
# will not go.
LONGEST_SECONDS = 300.0


class DeletionTimeoutError(RehearsalError):
    """An object is not gone in time: `live` is its last state, `reason` what holds it."""

    def __init__(self, live: Json, seconds: float, reason: str) -> None:
        super().__init__(f"{identity(live)} is still there {seconds:.0f} s after its deletion: {reason}")
        self.live = live


def delete(client: KubeClient, obj: Json, *, seconds: float) -> None:
    """Delete an object and wait until it is gone; one that is not there, or whose kind is gone, is.

    Raises DeletionTimeoutError, which names what holds the object, when it is there after `seconds`, or after the
    longest that a rehearsal waits.
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
    """Wait until an object is gone. Raises DeletionTimeoutError."""
    metadata = mapping(obj.get("metadata"))
    uid = metadata.get("uid")

    def is_gone(found: "Json | None") -> bool:
        # Another object of its name, made by somebody who waited for the same, is not it.
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


# It waits for what the object owns; the garbage collector takes it off.
_FOREGROUND = "foregroundDeletion"
# Who takes a finalizer off, and when: what one wants to know of a deletion that does not come to its end.
_REMOVERS: Mapping[str, str] = {
    "karpenter.sh/termination": "Karpenter takes it off when the node is drained and its machine has ended",
    "karpenter.k8s.aws/termination": "Karpenter takes it off when no NodeClaim uses the node class any more",
    "ray.io/rayjob-finalizer": "KubeRay takes it off when the Ray job is stopped",
    "ray.io/rayservice-finalizer": "KubeRay takes it off when its clusters are gone",
    "ray.io/gcs-ft-redis-cleanup-finalizer": "KubeRay takes it off when Redis is cleared",
    "batch.kubernetes.io/job-tracking": "the Job controller takes it off when it has counted the pod",
    "kubernetes.io/pvc-protection": "the control plane takes it off when no pod mounts the claim",
    "kubernetes.io/pv-protection": "the control plane takes it off when no claim is bound to the volume",
}
_UNKNOWN_REMOVER = "the controller that put it there takes it off"
_MEND = (
    "If that controller was removed first, bring it back; take a finalizer off by hand only if nothing outside "
    "depends on it"
)
# A pool of hundreds of nodes mostly has one trouble, hundreds of times.
_SHOWN = 3


def deletion_blockers(client: KubeClient, live: Json) -> str:
    """Return what keeps an object from going: its finalizers, or those of what it owns or contains."""
    reason = _finalizers(live)
    if reason:
        return f"{reason}. {_MEND}"
    waits_for = _contents(client, live) if live.get("kind") == "Namespace" else _owned(client, live)
    told = [f"{identity(each)}{_why(each)}" for each in waits_for[:_SHOWN]]
    more = f" and {len(waits_for) - _SHOWN} more" if len(waits_for) > _SHOWN else ""
    if not told:
        return summarize(live)
    word = "contains" if live.get("kind") == "Namespace" else "owns"
    return f"it {word} {'; '.join(told)}{more}. {_MEND}"


def _why(live: Json) -> str:
    reason = _finalizers(live)
    return f": {reason}" if reason else ""


def _finalizers(live: Json) -> str:
    names = [str(each) for each in sequence(mapping(live.get("metadata")).get("finalizers"))]
    return ", ".join(
        f"finalizer {name} holds it ({_REMOVERS.get(name, _UNKNOWN_REMOVER)})"
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
    return _most_telling([one for one in found if is_owned(one)])


def _contents(client: KubeClient, namespace: Json) -> Sequence[Json]:
    name = str(mapping(namespace["metadata"])["name"])
    found = _every_object(client, name)
    return _most_telling([one for one in found if mapping(one.get("metadata")).get("namespace") == name])


def _most_telling(found: list[Json]) -> list[Json]:
    """Return those with finalizers, where there are any: what merely has not gone yet waits for them."""
    return [one for one in found if _finalizers(one)] or found


def _every_object(client: KubeClient, namespace: str | None) -> list[Json]:
    found: list[Json] = []
    for api_version, kind in client.listable_kinds():
        try:
            found += client.list(api_version, kind, namespace=namespace)
        except KubeError:
            # A kind whose API went meanwhile, or that may not be listed.
            continue
    return found
