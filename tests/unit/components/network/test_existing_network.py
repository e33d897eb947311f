"""A network that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.network.aws import ExistingNetwork
from tests.support.fakes.pulumi_engine import record

if TYPE_CHECKING:
    from holdfast.components.network.aws import Network


def test_a_users_own_network_is_named_and_left_alone() -> None:
    networks: list[Network] = []

    def build() -> None:
        networks.append(ExistingNetwork(vpc_id="vpc-1", private_subnet_ids=("subnet-1", "subnet-2")))

    assert list(record(build)) == [], "nothing in it is made, changed or tagged"
    assert (networks[0].vpc_id, networks[0].private_subnet_ids) == ("vpc-1", ("subnet-1", "subnet-2")), (
        "it offers what every network does"
    )
