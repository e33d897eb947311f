"""The message about a blocked deletion names the finalizer and the component that removes it."""

from typing import cast

from holdfast.scheduling.json import Json, JsonValue, mapping
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from holdfast.simulator.kubernetes_provider.deletion import deletion_blockers


class Server:
    """An API server with some objects; listing the kind Broken fails."""

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


def _blockers(live: Json, *others: Json) -> str:
    return deletion_blockers(cast("KubeClient", Server(*others)), live)


def test_finalizer_is_reported_with_its_controller_also_in_a_namespace() -> None:
    message = _blockers(_object("NodeClaim", "a", "karpenter.sh/termination"))
    assert (
        "finalizer karpenter.sh/termination blocks it (Karpenter removes it when the node is drained"
        in message
    )
    assert "restore it" in message, "the message must say what to do"
    assert "finalizer a.b/c blocks it (the controller that added it" in _blockers(
        _object("X", "a", "a.b/c")
    ), "an unknown finalizer blocks, too"
    assert "X a" in _blockers(_object("X", "a")), "its state is the only information"
    space: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}}
    job = _object("RayJob", "train", "ray.io/rayjob-finalizer", namespace="vision")
    elsewhere = _object("RayJob", "other", "ray.io/rayjob-finalizer", namespace="tabular")
    message = _blockers(space, job, elsewhere)
    assert (
        "it contains RayJob vision/train: finalizer ray.io/rayjob-finalizer blocks it (KubeRay" in message
    ), message
    assert "other" not in message, "it is in another namespace"


def test_first_owned_objects_with_a_finalizer_are_reported() -> None:
    pool = _object("NodePool", "pool", "foregroundDeletion")
    claim = _object("NodeClaim", "claim", "karpenter.sh/termination", ownerReferences=[_owned_by(pool)])
    other = _object("Lease", "lease", ownerReferences=[_owned_by(pool)])
    strange = _object("NodeClaim", "strange", "karpenter.sh/termination")
    message = _blockers(pool, other, claim, strange)
    assert message.startswith("it owns NodeClaim claim: finalizer karpenter.sh/termination blocks it"), (
        message
    )
    assert "lease" not in message, "an object without a finalizer does not block"
    assert "strange" not in message, "another pool owns this claim"
    claims = [_object("NodeClaim", f"claim-{n}", ownerReferences=[_owned_by(pool)]) for n in range(9)]
    assert "NodeClaim claim-2 and 6 more" in _blockers(pool, *claims), "others have the same problem"
