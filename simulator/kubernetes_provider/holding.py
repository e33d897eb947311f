"""What holds an object that is being deleted, and who would let it go."""

from collections.abc import Mapping, Sequence

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from holdfast.simulator.kubernetes_client.objects import identity, mapping, sequence, summarize

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


def held_by(client: KubeClient, live: Json) -> str:
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
