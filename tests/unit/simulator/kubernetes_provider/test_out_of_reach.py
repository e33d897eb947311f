"""What is inside a cluster that cannot be called is planned, and refused in the plugin's words."""

from typing import TYPE_CHECKING, cast

import pytest

from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_provider.objects import Objects
from holdfast.simulator.kubernetes_provider.operation import GONE, Operation
from holdfast.simulator.kubernetes_provider.out_of_reach import (
    DELETE_UNREACHABLE,
    ClusterUnreachableError,
    OutOfReach,
)
from holdfast.simulator.kubernetes_provider.settings import Settings
from holdfast.simulator.kubernetes_provider.tokens import RELEASE
from holdfast.simulator.pulumi.faults import Faults

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

_REASON = "unable to load schema information from the API server: no such host"


def _out_of_reach(*, configuration: "Json | None" = None, variable: str = "") -> OutOfReach:
    return OutOfReach(
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
def test_what_is_out_of_reach_is_dropped_when_told_so(told: OutOfReach) -> None:
    assert told.read(_operation(), "default/one", {}, {}) == GONE, "a refresh would keep it"
    told.remove(_operation(), "default/one", {})
    with pytest.raises(ClusterUnreachableError):
        told.remove(_operation(RELEASE), "default/one", {})
