"""Two training clusters in one program, each with a provider of its own for its cloud."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

import pulumi
import pulumi_aws
import pulumi_azure_native
import pulumi_gcp
import pytest

from pulumi_holdfast.aws import training_cluster as aws
from pulumi_holdfast.aws.control_plane.access import Caller
from pulumi_holdfast.azure import training_cluster as azure
from pulumi_holdfast.gcp import training_cluster as gcp
from pulumi_holdfast.local import training_cluster as local
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.builders.configurations import (
    aws_platform,
    gcp_platform,
    nap_platform,
    platform_document,
    read,
)
from tests.support.fakes.pulumi_engine import Answer, Recorded, Recording, record
from tests.support.inputs import value

CLUSTERS: Final = ("east", "west")


def _given(provider: pulumi.ProviderResource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(providers=[provider])


def _aws(name: str) -> None:
    args = aws.TrainingClusterArgs(platform=aws_platform(), environment=name, caller=Caller())
    aws.TrainingCluster(name, args, _given(pulumi_aws.Provider(f"{name}-aws", region="us-west-2")))


def _azure(name: str) -> None:
    args = azure.TrainingClusterArgs(platform=nap_platform(), environment=name)
    azure.TrainingCluster(name, args, _given(pulumi_azure_native.Provider(f"{name}-azure-native")))


def _gcp(name: str) -> None:
    args = gcp.TrainingClusterArgs(platform=gcp_platform(), environment=name)
    gcp.TrainingCluster(name, args, _given(pulumi_gcp.Provider(f"{name}-gcp")))


def _local(name: str) -> None:
    args = local.TrainingClusterArgs(platform=read(platform_document()), environment=name)
    local.TrainingCluster(name, args)


#: The package of a cloud's provider → makes a cluster of a name, and what the cloud answers.
CLOUDS: Final[Mapping[str, tuple[Callable[[str], None], Answer]]] = {
    "aws": (_aws, aws_stacks.without_spot_role),
    "azure-native": (_azure, azure_stacks.answers),
    "gcp": (_gcp, gcp_stacks.answers),
    "local": (_local, lambda _token, _arguments: {}),
}
every_cloud = pytest.mark.parametrize("package", CLOUDS)
every_provider = pytest.mark.parametrize("package", [each for each in CLOUDS if each != "local"])


@cache
def program(package: str) -> Recording:
    make, answer = CLOUDS[package]
    return record(lambda: [make(name) for name in CLUSTERS], answer=answer)


def parts(package: str) -> Iterator[tuple[str, Recorded]]:
    """What a program registers beside clusters and providers for clouds, with the component at the top above it."""
    parents = {each.name: each.parent for each in program(package)}
    for each in program(package):
        top = each.name
        while parents[top] in parents:
            top = parents[top]
        if top != each.name:
            yield top, each


@every_cloud
def test_urns_are_unique_and_everything_is_below_its_cluster(package: str) -> None:
    urns = [each.urn for each in program(package)]
    assert len(urns) == len(set(urns))
    inside = [each for _, each in parts(package)]
    outside = [each.name for each in program(package) if each not in inside]
    providers = [] if package == "local" else [f"{name}-{package}" for name in CLUSTERS]
    assert sorted(outside) == sorted([*CLUSTERS, *providers])
    for cluster, each in parts(package):
        assert each.name.startswith(cluster), f"{each.name} is below {cluster}"


@every_cloud
def test_a_resource_has_the_tags_and_labels_of_its_own_cluster(package: str) -> None:
    marked = set[str]()
    for cluster, each in parts(package):
        for way in (("tags",), ("labels",), ("resourceLabels",), ("metadata", "labels")):
            for mark in ("holdfast.dev/stack", "holdfast-stack"):
                found = value(each, *way, mark)
                assert found in (None, cluster), f"{each.name} has the mark of {found}"
                marked |= {each.type.partition(":")[0]} if found else set()
    assert marked == {"kubernetes", *({package} - {"local"})}


@every_provider
def test_the_given_provider_is_used_below_and_by_every_lookup(package: str) -> None:
    used = {(top, each.provider) for top, each in parts(package) if each.type.startswith(f"{package}:")}
    assert used == {(name, f"{name}-{package}") for name in CLUSTERS}
    assert set(program(package).looked_up_by) == {f"{name}-{package}" for name in CLUSTERS}


@every_provider
def test_objects_of_the_clouds_have_different_names(package: str) -> None:
    owners: dict[tuple[object, ...], str] = {}
    for cluster, each in parts(package):
        chosen = [
            value(each, own)
            for own in ("name", "bucket", "accountName", "resourceName", "accountId")
            if isinstance(value(each, own), str)
        ]
        # Names of parts are those of the cluster or group in which they are.
        inside = [value(each, own) for own in ("cluster", "clusterName", "resourceGroupName", "role")]
        if chosen and each.type.startswith(f"{package}:"):
            owner = owners.setdefault((each.type, *chosen, *map(repr, inside)), cluster)
            assert owner == cluster, f"{each.name} has the name of one in {owner}: {chosen}"
    assert owners


def test_the_clusters_of_an_aws_account_share_its_spot_role() -> None:
    role = program("aws").one(":ServiceLinkedRole")
    for cluster, each in parts("aws"):
        if each.type.endswith(":NodePool"):
            assert role.name in program("aws").everything_before(each), f"{cluster} buys spot without it"
