"""A change of the cluster replaces a provider instance; an unreachable cluster refuses operations."""

from typing import cast

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_provider.instances import (
    DELETE_UNREACHABLE,
    ClusterUnreachableError,
    UnreachableResources,
    replacing,
)
from holdfast.simulator.kubernetes_provider.objects import Objects
from holdfast.simulator.kubernetes_provider.operation import GONE, RELEASE, Operation, ProviderSettings
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value


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


def _replacing(old: Properties, new: Properties) -> list[str]:
    return [change.top for change in replacing(old, new)]


def test_another_cluster_replaces_the_instance() -> None:
    old = _settings()
    elsewhere = "https://two.example"
    assert _replacing(old, _settings(elsewhere)) == ["kubeconfig"], "the objects are in the old cluster"
    assert _replacing(old, {"kubeconfig": UNKNOWN}) == ["kubeconfig"], "it may select another cluster"
    secret: Properties = {"kubeconfig": Secret(old["kubeconfig"])}
    for same in (_settings(), secret, _settings(arguments=("--profile", "x")), _settings(namespace="a")):
        assert _replacing(old, same) == [], "a replacement recreates every object"
    named = _settings(clusterIdentifier="a")
    assert _replacing(named, _settings(elsewhere, clusterIdentifier="a")) == [], "the same at another address"
    other = _replacing(named, _settings(clusterIdentifier="b"))
    assert other == ["clusterIdentifier"], "it is another cluster at the same address"


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
        settings=ProviderSettings(),
    )


def test_plan_for_an_unreachable_cluster_returns_the_inputs() -> None:
    inputs = {"metadata": {"name": "a"}}
    assert _unreachable().plan_create(_operation(), inputs) == inputs, "a first preview would fail"
    assert _unreachable().plan_update(_operation(), inputs, {}) == inputs, "a later preview would fail"


def test_operations_on_an_unreachable_cluster_are_refused_with_the_reason() -> None:
    resources, obj, release = _unreachable(), _operation(), _operation(RELEASE)
    unreachable = f"^configured Kubernetes cluster is unreachable: {_REASON}$"
    with pytest.raises(ClusterUnreachableError, match=unreachable):
        resources.create(obj, {})
    with pytest.raises(ClusterUnreachableError, match=unreachable):
        resources.update(obj, "default/one", {}, {}, ())
    with pytest.raises(ClusterUnreachableError, match="can't create Helm Release with unreachable cluster"):
        resources.create(release, {})
    with pytest.raises(ClusterUnreachableError, match="can't delete Helm Release with unreachable cluster"):
        resources.remove(release, "default/one", {})
    with pytest.raises(ClusterUnreachableError, match=f"{_REASON}.*{DELETE_UNREACHABLE}"):
        resources.read(obj, "default/one", {}, {})
    with pytest.raises(ClusterUnreachableError, match=f"{_REASON}.*{DELETE_UNREACHABLE}"):
        resources.remove(obj, "default/one", {})


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
