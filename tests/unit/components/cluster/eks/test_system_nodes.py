"""The operators' nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.eks_cluster import recorded_cluster
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.components.cluster.eks.component import EksClusterArgs

_GROUP = ":NodeGroup"


def test_there_are_two_on_demand_nodes_over_all_subnets() -> None:
    group = recorded_cluster().one(_GROUP)
    assert group.inputs["capacityType"] == "ON_DEMAND", "an interruption must not take the operators"
    assert group.inputs["subnetIds"] == ["subnet-1", "subnet-2"], (
        "two zones, on which Karpenter's chart insists"
    )
    assert value(group, "scalingConfig") == {"desiredSize": 2, "minSize": 2, "maxSize": 2}, (
        "a size that something else changes would be put back by each `up`"
    )


def test_training_stays_away_and_operators_find_them() -> None:
    group = recorded_cluster().one(_GROUP)
    assert objects(group, "taints") == [
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}
    ], "as EKS spells the taint that Karpenter tolerates"
    assert value(group, "labels") == {"holdfast.dev/system": "true"}, "operators select it"


def test_pods_cannot_reach_the_nodes_credentials() -> None:
    options = mapping(recorded_cluster().one(":LaunchTemplate"), "metadataOptions")
    assert options == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}, (
        "version 2 only, and no further than the host itself"
    )


def test_their_volumes_are_encrypted() -> None:
    recording = recorded_cluster(
        lambda args: replace(args, system_nodes=replace(args.system_nodes, volume_gib=80))
    )
    (device,) = objects(recording.one(":LaunchTemplate"), "blockDeviceMappings")
    assert device["deviceName"] == "/dev/xvda", "another device would be a second volume"
    assert text(device, "ebs", "encrypted") == "true", "EBS does not encrypt unless it is told to"
    assert value(device, "ebs", "volumeSize") == 80, "as large as asked for"


def test_the_group_follows_its_launch_template() -> None:
    recording = recorded_cluster()
    template = recording.one(":LaunchTemplate")
    assert value(recording.one(_GROUP), "launchTemplate") == {"id": f"{template.name}-id", "version": "1"}, (
        "by number: EKS reads `$Latest` back as a number, and each plan would show a difference"
    )
    assert "diskSize" not in recording.one(_GROUP).inputs, "EKS refuses a size beside a template"


@pytest.mark.parametrize(
    ("architecture", "image"), [("amd64", "AL2023_x86_64_STANDARD"), ("arm64", "AL2023_ARM_64_STANDARD")]
)
def test_their_image_is_of_their_architecture(architecture: str, image: str) -> None:
    def change(args: EksClusterArgs) -> EksClusterArgs:
        nodes = replace(args.system_nodes, architecture="arm64" if architecture == "arm64" else "amd64")
        return replace(args, system_nodes=nodes)

    assert recorded_cluster(change).one(_GROUP).inputs["amiType"] == image, "another image does not boot"


def test_their_image_stays_what_it_was_unless_a_release_is_named() -> None:
    assert "releaseVersion" not in recorded_cluster().one(_GROUP).inputs, (
        "EKS keeps the release they began with"
    )
    pinned = recorded_cluster(
        lambda args: replace(args, system_nodes=replace(args.system_nodes, release_version="1.36.3-20260911"))
    )
    assert pinned.one(_GROUP).inputs["releaseVersion"] == "1.36.3-20260911", "or has the one that is named"


def test_they_have_a_role_of_their_own_that_is_whole_while_they_run() -> None:
    recording = recorded_cluster()
    group = recording.one(_GROUP)
    policies = {
        text(one, "policyArn").rpartition("/")[2]
        for one in recording.of(":RolePolicyAttachment")
        if one.name in group.depends_on
    }
    assert policies == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryPullOnly",
    }, "a node that loses one of them first leaves network interfaces behind"


def test_their_name_is_made_up_so_that_successors_can_come_before_they_go() -> None:
    assert "nodeGroupName" not in recorded_cluster().one(_GROUP).inputs, (
        "a change of instance types replaces the group; a fixed name would have to go first, and the operators with it"
    )


def test_their_machines_and_volumes_carry_the_tags_they_are_given() -> None:
    recording = recorded_cluster(
        lambda args: replace(args, system_nodes=replace(args.system_nodes, tags={"team": "ml"}))
    )
    specifications = objects(recording.one(":LaunchTemplate"), "tagSpecifications")
    assert {text(one, "resourceType"): value(one, "tags") for one in specifications} == {
        "instance": {"Name": "holdfast-dev-system", "team": "ml"},
        "volume": {"Name": "holdfast-dev-system", "team": "ml"},
    }, "a bill is read by tags, and a node group's own go no further than the group"


def test_nothing_of_theirs_carries_a_tag_that_karpenter_looks_for() -> None:
    recording = recorded_cluster()
    for one in [recording.one(_GROUP), recording.one(":LaunchTemplate")]:
        assert "karpenter.sh/" not in str(one.inputs), (
            f"{one.name}: Karpenter would take these nodes for its own"
        )


def test_their_kubernetes_version_is_the_clusters() -> None:
    recording = recorded_cluster()
    assert recording.one(_GROUP).inputs["version"] == recording.one(":Cluster").inputs["version"], (
        "an upgrade of the cluster is one of its nodes too"
    )
