"""What holds an object that is being deleted is named, with who lets it go."""

from typing import TYPE_CHECKING, cast

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.errors import KubeError
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.deletion import deletion_blockers

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient


class Server:
    """An API server that holds some objects; a kind named Broken cannot be listed."""

    def __init__(self, *objects: Json) -> None:
        self.objects = objects

    def listable_kinds(self) -> list[tuple[str, str]]:
        kinds = {(str(one["apiVersion"]), str(one["kind"])): None for one in self.objects}
        return [("v1", "Broken"), *kinds]

    def list(self, api_version: str, kind: str, *, namespace: str | None = None) -> list[Json]:
        if kind == "Broken":
            raise KubeError(405, "MethodNotAllowed", "")
        return [
            one
            for one in self.objects
            if (one["apiVersion"], one["kind"]) == (api_version, kind)
            and (namespace is None or mapping(one["metadata"]).get("namespace") == namespace)
        ]


def _object(kind: str, name: str, *finalizers: str, **metadata: JsonValue) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "finalizers": list(finalizers), **metadata},
    }


def _owned_by(owner: Json) -> Json:
    return {"uid": mapping(owner["metadata"])["uid"], "kind": owner["kind"], "name": "owner"}


def _held_by(live: Json, *others: Json) -> str:
    return deletion_blockers(cast("KubeClient", Server(*others)), live)


def test_a_finalizer_is_named_with_who_takes_it_off() -> None:
    told = _held_by(_object("NodeClaim", "a", "karpenter.sh/termination"))
    assert (
        "finalizer karpenter.sh/termination holds it (Karpenter takes it off when the node is drained" in told
    )
    assert "bring it back" in told, "nobody learns what to do"


def test_of_a_finalizer_nobody_knows_the_owner_is_named_in_general() -> None:
    assert "finalizer a.b/c holds it (the controller that put it there" in _held_by(
        _object("X", "a", "a.b/c")
    ), "it would be passed over"


def test_what_an_object_owns_is_named_those_with_finalizers_first() -> None:
    pool = _object("NodePool", "pool", "foregroundDeletion")
    claim = _object("NodeClaim", "claim", "karpenter.sh/termination", ownerReferences=[_owned_by(pool)])
    other = _object("Lease", "lease", ownerReferences=[_owned_by(pool)])
    strange = _object("NodeClaim", "strange", "karpenter.sh/termination")
    told = _held_by(pool, other, claim, strange)
    assert told.startswith("it owns NodeClaim claim: finalizer karpenter.sh/termination holds it"), told
    assert "lease" not in told, "what only waits hides what is waited for"
    assert "strange" not in told, "another pool's claim is none of its business"


def test_of_many_only_the_first_are_named() -> None:
    pool = _object("NodePool", "pool", "foregroundDeletion")
    claims = [_object("NodeClaim", f"claim-{n}", ownerReferences=[_owned_by(pool)]) for n in range(9)]
    assert "NodeClaim claim-2 and 6 more" in _held_by(pool, *claims), "hundreds of nodes have one trouble"


def test_of_a_namespace_its_contents_are_named() -> None:
    space: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}}
    job = _object("RayJob", "train", "ray.io/rayjob-finalizer", namespace="vision")
    elsewhere = _object("RayJob", "other", "ray.io/rayjob-finalizer", namespace="tabular")
    told = _held_by(space, job, elsewhere)
    assert "it contains RayJob vision/train: finalizer ray.io/rayjob-finalizer holds it (KubeRay" in told, (
        told
    )
    assert "other" not in told, "it is in another namespace"


def test_an_object_that_nothing_holds_shows_its_state() -> None:
    assert "X a" in _held_by(_object("X", "a")), "there is nothing else to tell"
