"""How the provider applies, waits and deletes."""

from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import KubeError
from pulumi_holdfast.rehearsal.kubernetes_provider.apply import is_managed_by, manager_for
from pulumi_holdfast.rehearsal.kubernetes_provider.deletion import deletion_blockers
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import (
    ObjectKind,
    ProviderSettings,
    is_patch,
    kind_of,
    propagation,
    timeout_seconds,
    unsupported_settings,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.waits import pod_problem

ONE = "urn:pulumi:test::test::kubernetes:core/v1:ConfigMap::one"


def test_each_resource_has_one_manager_in_every_run() -> None:
    assert manager_for(ONE) == manager_for(ONE), "the next run must find an interrupted create"
    assert manager_for(ONE) != manager_for(f"{ONE}s"), "a deletion must keep the fields of the new one"
    obj: Json = {
        "metadata": {
            "managedFields": [{"manager": "a", "operation": "Apply"}, {"manager": "b", "operation": "Update"}]
        }
    }
    assert is_managed_by(obj, "a"), "the interrupted run created it"
    assert not is_managed_by(obj, "b"), "an update of the status is no apply"


def test_token_maps_to_its_kind() -> None:
    for token, api_version, kind in (
        ("kubernetes:core/v1:ConfigMap", "v1", "ConfigMap"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:karpenter.sh/v1:NodePool", "karpenter.sh/v1", "NodePool"),
    ):
        assert kind_of(token) == ObjectKind(api_version=api_version, kind=kind), f"{token} has another kind"
    for invalid in ("kubernetes:v1:Pod", "aws:s3/bucket:Bucket", "kubernetes:helm:"):
        with pytest.raises(RehearsalError, match=invalid):
            kind_of(invalid)
    assert not is_patch("kubernetes:x.io/v1:SourcePatch", "SourcePatch"), "its object must be deleted"
    assert is_patch("kubernetes:core/v1:ConfigMapPatch", "ConfigMap"), "a deletion keeps the object"


def annotated(name: str, value: str) -> Json:
    return {"metadata": {"annotations": {f"pulumi.com/{name}": value}}}


def test_timeout_and_propagation_are_read_from_annotations_and_have_defaults() -> None:
    for custom, value, seconds in ((30, "20", 30), (0, "20", 20), (0, "soon", 600), (0, "", 600)):
        found = timeout_seconds(annotated("timeoutSeconds", value), custom)
        assert found == seconds, "a custom timeout precedes the annotation and the default"
    for value, policy in (("orphan", "Orphan"), ("Background", "Background"), ("", "Foreground")):
        found = propagation(annotated("deletionPropagationPolicy", value))
        assert found == policy, "pods are deleted first unless annotated"


def test_settings_have_the_defaults_of_the_plugin_and_unsupported_ones_a_fix() -> None:
    for value in (True, "true"):
        assert ProviderSettings.of({"upsertExistingObjects": value}).upserts, f"{value!r} is true"
    assert not ProviderSettings.of({"upsertExistingObjects": "false"}).upserts, "the text false is not true"
    assert ProviderSettings.of({}) == ProviderSettings(), "the simulator must behave like the plugin"
    found = unsupported_settings(
        {"enableServerSideApply": "false", "renderYamlToDirectory": "out", "namespace": "a"}
    )
    assert set(found) == {"enableServerSideApply", "renderYamlToDirectory"}, "only these two"
    assert "leave it unset" in found["renderYamlToDirectory"], "the message must contain the fix"
    assert unsupported_settings({"kubeconfig": "x", "enableServerSideApply": "true"}) == {}, "all supported"


WAITING = {"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}


TERMINATED = {"name": "c", "state": {"terminated": {"reason": "Error"}}}


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"conditions": [UNSCHEDULED]}, "pod p: 0/1 nodes are available"),
        ({"containerStatuses": [WAITING]}, "pod p: container c: ErrImagePull no"),
        ({"containerStatuses": [TERMINATED]}, "pod p: container c: Error"),
        ({"phase": "Running"}, "pod p: is Running"),
        ({"phase": "Succeeded"}, None),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, None),
    ],
)
def test_pod_problem_is_reported_unless_the_pod_is_fine(status: Json, problem: str | None) -> None:
    pod: Json = {"metadata": {"name": "p"}, "status": {"phase": "Pending", **status}}
    assert pod_problem(pod) == problem, "the message must name the cause"


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
