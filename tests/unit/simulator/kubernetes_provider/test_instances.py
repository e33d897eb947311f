"""A change of the cluster replaces a provider instance; an unreachable cluster refuses operations."""

from typing import TYPE_CHECKING, cast

import pytest

from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_provider.instances import (
    DELETE_UNREACHABLE,
    ClusterUnreachableError,
    UnreachableResources,
    replacing,
)
from holdfast.simulator.kubernetes_provider.objects import Objects
from holdfast.simulator.kubernetes_provider.operation import GONE, RELEASE, Operation, Settings
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient


def _settings(
    server: str = "https://one.example", *, arguments: tuple[str, ...] = (), **more: Value
) -> Properties:
    kubeconfig: Properties = {
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
        "users": [{"name": "me", "user": {"exec": {"command": "aws", "args": arguments}}}],
    }
    return {"kubeconfig": kubeconfig, **more}


def test_another_cluster_replaces_the_instance_and_another_address_of_it_does_not() -> None:
    changed = replacing(_settings(), _settings("https://two.example"))
    assert [one.top for one in changed] == ["kubeconfig"], "the objects are in the old cluster"
    changed = replacing(_settings(), {"kubeconfig": UNKNOWN})
    assert [one.top for one in changed] == ["kubeconfig"], "it may select another cluster"
    same = _settings()
    assert replacing(same, {"kubeconfig": Secret(same["kubeconfig"])}) == [], "its value is the same"
    here, moved = (_settings(clusterIdentifier="a"), _settings("https://two.example", clusterIdentifier="a"))
    assert replacing(here, moved) == [], "it is the same cluster at another address"
    changed = replacing(here, _settings(clusterIdentifier="b"))
    assert [one.top for one in changed] == ["clusterIdentifier"], "it is another cluster at the same address"


@pytest.mark.parametrize(
    "new",
    [_settings(), _settings(arguments=("--profile", "x")), _settings(namespace="a")],
    ids=["no change", "another token command", "another setting"],
)
def test_change_that_selects_the_same_cluster_replaces_nothing(new: Properties) -> None:
    assert replacing(_settings(), new) == [], "a replacement recreates every object"


_REASON = "unable to load schema information from the API server: no such host"


def _unreachable(*, configuration: "Json | None" = None, variable: str = "") -> UnreachableResources:
    return UnreachableResources(
        resources=Objects(faults=Faults()),
        reason=_REASON,
        configuration=configuration or {},
        environment={DELETE_UNREACHABLE: variable},
    )


def _operation(token: str = "kubernetes:core/v1:ConfigMap") -> Operation:
    return Operation(
        urn=f"urn:pulumi:test::test::{token}::one",
        token=token,
        # An unreachable cluster is never called.
        client=cast("KubeClient", None),
        cancellation=Cancellation(),
        settings=Settings(),
    )


def test_plan_for_an_unreachable_cluster_returns_the_inputs() -> None:
    inputs = {"metadata": {"name": "a"}}
    assert _unreachable().plan_create(_operation(), inputs) == inputs, "a first preview would fail"
    assert _unreachable().plan_update(_operation(), inputs, {}) == inputs, "a later preview would fail"


def test_operations_on_an_unreachable_cluster_are_refused_with_the_reason() -> None:
    with pytest.raises(
        ClusterUnreachableError, match=f"^configured Kubernetes cluster is unreachable: {_REASON}$"
    ):
        _unreachable().create(_operation(), {})
    with pytest.raises(ClusterUnreachableError, match="configured Kubernetes cluster is unreachable"):
        _unreachable().update(_operation(), "default/one", {}, {}, ())
    with pytest.raises(ClusterUnreachableError, match="can't create Helm Release with unreachable cluster"):
        _unreachable().create(_operation(RELEASE), {})
    with pytest.raises(ClusterUnreachableError, match="can't delete Helm Release with unreachable cluster"):
        _unreachable().remove(_operation(RELEASE), "default/one", {})
    with pytest.raises(ClusterUnreachableError, match=f"{_REASON}.*{DELETE_UNREACHABLE}"):
        _unreachable().read(_operation(), "default/one", {}, {})
    with pytest.raises(ClusterUnreachableError, match=f"{_REASON}.*{DELETE_UNREACHABLE}"):
        _unreachable().remove(_operation(), "default/one", {})


@pytest.mark.parametrize(
    "resources",
    [_unreachable(configuration={"deleteUnreachable": True}), _unreachable(variable="true")],
    ids=["setting", "variable"],
)
def test_unreachable_resource_is_dropped_on_request(resources: UnreachableResources) -> None:
    assert resources.read(_operation(), "default/one", {}, {}) == GONE, "a refresh removes it from the state"
    resources.remove(_operation(), "default/one", {})
    with pytest.raises(ClusterUnreachableError):
        resources.remove(_operation(RELEASE), "default/one", {})
