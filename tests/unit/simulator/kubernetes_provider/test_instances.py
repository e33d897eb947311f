"""An instance that leads to another cluster is another instance, and with it all that it made."""

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


def test_another_address_is_another_cluster() -> None:
    changed = replacing(_settings(), _settings("https://two.example"))
    assert [one.top for one in changed] == ["kubeconfig"], (
        "objects of the old cluster would be looked for in the new"
    )


@pytest.mark.parametrize(
    "new",
    [_settings(), _settings(arguments=("--profile", "x")), _settings(namespace="a")],
    ids=["no change", "another way to a token", "another setting"],
)
def test_what_leads_to_the_same_cluster_replaces_nothing(new: Properties) -> None:
    assert replacing(_settings(), new) == [], "everything inside would be made anew"


def test_what_is_not_known_yet_may_lead_anywhere() -> None:
    changed = replacing(_settings(), {"kubeconfig": UNKNOWN})
    assert [one.top for one in changed] == ["kubeconfig"], "the plugin plans for the worst"


def test_becoming_a_secret_changes_no_cluster() -> None:
    same = _settings()
    assert replacing(same, {"kubeconfig": Secret(same["kubeconfig"])}) == [], "its value is the same"


def test_an_identifier_alone_tells_clusters_apart_where_there_is_one() -> None:
    here, moved = (
        _settings(clusterIdentifier="a"),
        _settings("https://two.example", clusterIdentifier="a"),
    )
    assert replacing(here, moved) == [], "it is the same cluster at another address"
    changed = replacing(here, _settings(clusterIdentifier="b"))
    assert [one.top for one in changed] == ["clusterIdentifier"], "it is another cluster at the same address"


_REASON = "unable to load schema information from the API server: no such host"


def _out_of_reach(*, configuration: "Json | None" = None, variable: str = "") -> UnreachableResources:
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
        # Whoever is out of reach is not called.
        client=cast("KubeClient", None),
        cancellation=Cancellation(),
        settings=Settings(),
    )


def test_a_plan_holds_the_inputs_and_asks_nobody() -> None:
    inputs = {"metadata": {"name": "a"}}
    assert _out_of_reach().plan_create(_operation(), inputs) == inputs, "a first preview would fail"
    assert _out_of_reach().plan_update(_operation(), inputs, {}) == inputs, "a later one as well"


def test_making_and_changing_are_refused_with_the_reason() -> None:
    with pytest.raises(
        ClusterUnreachableError, match=f"^configured Kubernetes cluster is unreachable: {_REASON}$"
    ):
        _out_of_reach().create(_operation(), {})
    with pytest.raises(ClusterUnreachableError, match="configured Kubernetes cluster is unreachable"):
        _out_of_reach().update(_operation(), "default/one", {}, {}, ())


def test_a_release_is_refused_in_words_of_its_own() -> None:
    with pytest.raises(ClusterUnreachableError, match="can't create Helm Release with unreachable cluster"):
        _out_of_reach().create(_operation(RELEASE), {})
    with pytest.raises(ClusterUnreachableError, match="can't delete Helm Release with unreachable cluster"):
        _out_of_reach().remove(_operation(RELEASE), "default/one", {})


def test_reading_and_deleting_name_the_way_out() -> None:
    with pytest.raises(ClusterUnreachableError, match=f"{_REASON}.*{DELETE_UNREACHABLE}"):
        _out_of_reach().read(_operation(), "default/one", {}, {})
    with pytest.raises(ClusterUnreachableError, match=f"{_REASON}.*{DELETE_UNREACHABLE}"):
        _out_of_reach().remove(_operation(), "default/one", {})


@pytest.mark.parametrize(
    "told",
    [_out_of_reach(configuration={"deleteUnreachable": True}), _out_of_reach(variable="true")],
    ids=["setting", "variable"],
)
def test_what_is_out_of_reach_is_dropped_when_told_so(told: UnreachableResources) -> None:
    assert told.read(_operation(), "default/one", {}, {}) == GONE, "a refresh would keep it"
    told.remove(_operation(), "default/one", {})
    with pytest.raises(ClusterUnreachableError):
        told.remove(_operation(RELEASE), "default/one", {})
