"""The system nodes of EKS."""

from dataclasses import replace

import pytest

from pulumi_holdfast.aws.control_plane.component import EksClusterArgs
from tests.support.builders.aws_components import cluster_args, recorded_cluster
from tests.support.inputs import mapping, objects, text, value

_GROUP = ":NodeGroup"


def test_the_group_has_two_tainted_on_demand_nodes_across_all_subnets() -> None:
    group = recorded_cluster().one(_GROUP)
    assert group.inputs["capacityType"] == "ON_DEMAND", "an interruption would stop the operators"
    assert group.inputs["subnetIds"] == ["subnet-1", "subnet-2"]
    assert value(group, "scalingConfig") == {"desiredSize": 2, "minSize": 2, "maxSize": 2}
    assert objects(group, "taints") == [
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}
    ]
    assert value(group, "labels") == {"holdfast.dev/system": "true"}
    assert "nodeGroupName" not in group.inputs


def test_the_launch_template_has_the_configured_volume_tags_and_metadata_options() -> None:
    nodes = replace(cluster_args().system_nodes, volume_gib=80, tags={"team": "ml"})
    template = recorded_cluster(lambda args: replace(args, system_nodes=nodes)).one(":LaunchTemplate")
    (device,) = objects(template, "blockDeviceMappings")
    assert device["deviceName"] == "/dev/xvda"
    assert text(device, "ebs", "encrypted") == "true"
    assert value(device, "ebs", "volumeSize") == 80
    specifications = objects(template, "tagSpecifications")
    assert {text(one, "resourceType"): value(one, "tags") for one in specifications} == {
        "instance": {"Name": "holdfast-dev-system", "team": "ml"},
        "volume": {"Name": "holdfast-dev-system", "team": "ml"},
    }
    options = mapping(template, "metadataOptions")
    assert options == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}


def test_the_group_has_the_clusters_version_and_a_version_number_of_its_template() -> None:
    recording = recorded_cluster()
    group = recording.one(_GROUP)
    template = recording.one(":LaunchTemplate")
    assert value(group, "launchTemplate", "version") == "1"
    assert template.urn in group.made_of["launchTemplate"]
    assert "diskSize" not in group.inputs
    assert group.inputs["version"] == recording.one(":Cluster").inputs["version"]
    for one in (group, template):
        assert "karpenter.sh/" not in str(one.inputs), f"{one.name}: Karpenter would select it"


@pytest.mark.parametrize(
    ("architecture", "image"), [("amd64", "AL2023_x86_64_STANDARD"), ("arm64", "AL2023_ARM_64_STANDARD")]
)
def test_the_image_matches_the_architecture_and_the_configured_release(architecture: str, image: str) -> None:
    def change(args: EksClusterArgs) -> EksClusterArgs:
        nodes = replace(args.system_nodes, architecture="arm64" if architecture == "arm64" else "amd64")
        return replace(args, system_nodes=nodes)

    assert recorded_cluster(change).one(_GROUP).inputs["amiType"] == image
    assert "releaseVersion" not in recorded_cluster().one(_GROUP).inputs
    pinned = recorded_cluster(
        lambda args: replace(args, system_nodes=replace(args.system_nodes, release_version="1.36.3-20260911"))
    )
    assert pinned.one(_GROUP).inputs["releaseVersion"] == "1.36.3-20260911"


def test_nodes_depend_on_their_own_role_with_all_policies() -> None:
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
    }
