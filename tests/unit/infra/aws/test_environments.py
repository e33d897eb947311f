"""The two environments of this repository: one to try things in, one to rely on."""

from __future__ import annotations

import pytest

from tests.support.aws_stacks import PLATFORMS, stack
from tests.support.inputs import value

GUARDED = {"aws:eks/cluster:Cluster", "aws:kms/key:Key"}
BUCKET = "aws:s3/"


def test_what_cannot_be_had_back_is_protected_in_production_and_nothing_else() -> None:
    protected = {found.name: found for found in stack("aws-prod") if found.protect}
    kept = {found.type for found in protected.values() if not found.type.startswith(BUCKET)}
    assert kept == GUARDED, "the cluster, and the keys of its secrets and of the checkpoints"
    assert {name for name in protected if name.startswith("checkpoints-")} == {
        found.name for found in stack("aws-prod") if found.custom and found.parent == "checkpoints"
    }, "the bucket with all that guards it"


def test_checkpoints_outlive_a_production_stack_even_once_it_may_go() -> None:
    for resource in stack("aws-prod"):
        if resource.custom and resource.parent == "checkpoints":
            assert resource.retain_on_delete, f"{resource.name} is kept"
    assert value(stack("aws-prod").one(":Bucket"), "forceDestroy") is False, (
        "AWS refuses to delete it as well"
    )


def test_the_cluster_of_production_refuses_to_go_by_hand_too() -> None:
    assert value(stack("aws-prod").one(":Cluster"), "deletionProtection") is True, (
        "the console asks AWS, not Pulumi"
    )


def test_development_can_go_without_a_trace() -> None:
    recording = stack("aws-dev")
    assert not [found.name for found in recording if found.protect], "nothing is protected"
    assert [found.name for found in recording if found.retain_on_delete] == ["spot-role-role"], (
        "and nothing stays but what is the account's"
    )
    assert value(recording.one(":Bucket"), "forceDestroy") is True, "its checkpoints go with it"
    assert value(recording.one(":Cluster"), "deletionProtection") is False, "nor does AWS refuse"


def test_production_has_no_way_in_from_the_internet() -> None:
    network = stack("aws-prod").one(":Cluster").inputs["vpcConfig"]
    assert value({"config": network}, "config", "endpointPublicAccess") is False, "it is private"
    (rule,) = [
        found for found in stack("aws-prod").of(":SecurityGroupIngressRule") if "cluster" in found.name
    ]
    assert value(rule, "cidrIpv4") == "10.48.0.0/16", "but for whoever is named"


def test_development_is_reached_from_named_addresses_only() -> None:
    network = stack("aws-dev").one(":Cluster").inputs["vpcConfig"]
    assert value({"config": network}, "config", "publicAccessCidrs") == ["203.0.113.0/24"], (
        "not from everywhere"
    )
    assert value({"config": network}, "config", "endpointPrivateAccess") is True, "nodes need no naming"


@pytest.mark.parametrize("name", PLATFORMS)
def test_access_entries_alone_say_who_gets_in_and_the_creators_is_the_clusters_own(name: str) -> None:
    access = stack(name).one(":Cluster").inputs["accessConfig"]
    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}, (
        "an entry of ours for the creator would go before the last thing that the creator must delete"
    )
