"""What stacks need of existing clusters: each missing property is one problem, before anything is registered."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from pulumi_holdfast.aws.preflight.existing_cluster import ExistingEks, existing_eks_problems
from pulumi_holdfast.azure.control_plane.access import ApiServer
from pulumi_holdfast.azure.preflight.existing_cluster import ExistingAks, existing_aks_problems
from pulumi_holdfast.config import versions
from pulumi_holdfast.config.preflight import NodeGroup
from pulumi_holdfast.gcp.preflight.existing_cluster import ExistingGke, existing_gke_problems
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders.aws_stacks import SUBNETS, VPC
from tests.support.builders.configurations import (
    AZURE_LOCATION,
    SUBNET,
    Document,
    aws_document,
    aws_problems,
    azure_problems,
    gcp_document,
    gcp_problems,
    nap_document,
    read_aws,
    read_azure,
    read_gcp,
)

SYSTEM = NodeGroup(
    name="system", labels={"holdfast.dev/system": "true"}, taints=["CriticalAddonsOnly"], count=2
)
PLAIN = NodeGroup(name="plain", count=5)
TAINTED = replace(SYSTEM, taints=["team"])
LONELY = replace(SYSTEM, count=1)

EKS = ExistingEks(
    name="shared",
    version=versions.KUBERNETES,
    vpc_id=VPC,
    subnet_ids=SUBNETS,
    authentication_mode="API_AND_CONFIG_MAP",
    has_pod_identity=True,
    groups=(PLAIN, SYSTEM),
    public_subnets=(),
)
GKE = ExistingGke(
    name="shared",
    version=f"{versions.KUBERNETES}.4-gke.1391000",
    workload_pool="my-project.svc.id.goog",
    groups=(PLAIN, SYSTEM),
)
AKS = ExistingAks(
    name="shared",
    resource_group="platform",
    location="East US 2",
    version=f"{versions.KUBERNETES}.2",
    issuer="https://issuer.example.com/",
    workload_identity=True,
    entra=True,
    provisions=True,
    subnet_id=SUBNET,
    api_server=ApiServer(url="https://shared.example.com", certificate_authority="Q0E="),
    groups=(PLAIN, SYSTEM),
)


def on_existing(
    build: Callable[[Callable[[Document], object]], Document], cluster: Document, **others: JsonValue
) -> Document:
    """A document with an existing cluster and no network, after these changes."""

    def change(document: Document) -> None:
        document.pop("network")
        document.update(cluster=cluster, **others)

    return build(change)


def aws_on(**others: JsonValue) -> Document:
    return on_existing(aws_document, {"existing": "shared"}, **others)


def eks(found: ExistingEks, **others: JsonValue) -> list[Problem]:
    return list(existing_eks_problems(read_aws(aws_on(**others)), found))


def gke(found: ExistingGke) -> list[Problem]:
    platform = read_gcp(on_existing(gcp_document, {"existing": "shared"}))
    return list(existing_gke_problems(platform, found))


def aks(found: ExistingAks) -> list[Problem]:
    platform = read_azure(on_existing(nap_document, {"existing": "shared", "resourceGroup": "platform"}))
    return list(existing_aks_problems(platform, found))


def test_a_cluster_with_everything_causes_no_problem() -> None:
    assert not eks(EKS)
    assert not gke(GKE)
    assert not aks(AKS), f"AKS has, and spells {AZURE_LOCATION} in its own way"


def test_a_failed_optional_query_causes_no_problem() -> None:
    assert not eks(replace(EKS, has_pod_identity=None, groups=None, public_subnets=None))


#: Cloud → the problems of a cluster there; and clusters, each without one thing, with a part of the fix.
MISSING: Mapping[str, tuple[Callable[..., list[Problem]], Mapping[str, tuple[object, str]]]] = {
    "aws": (eks, {
        "no cluster": (replace(EKS, exists=False), "aws eks list-clusters --region us-west-2"),
        "an old version": (replace(EKS, version="1.35"), "Upgrade the cluster"),
        "an unknown version": (replace(EKS, version=""), "Upgrade the cluster"),
        "auto mode": (replace(EKS, auto_mode=True), "disable Auto Mode"),
        "no access entries": (replace(EKS, authentication_mode="CONFIG_MAP"), "API_AND_CONFIG_MAP"),
        "no pod identity": (replace(EKS, has_pod_identity=False), "--addon-name eks-pod-identity-agent"),
        "no node groups": (replace(EKS, groups=()), "update-nodegroup-config"),
        "no labeled nodes": (replace(EKS, groups=(PLAIN,)), "holdfast.dev/system=true"),
        "tainted nodes": (replace(EKS, groups=(TAINTED,)), "holdfast.dev/system=true"),
        "one node": (replace(EKS, groups=(LONELY,)), "holdfast.dev/system=true"),
        "public subnets": (replace(EKS, public_subnets=SUBNETS[:1]), "privateSubnetIds: […]"),
    }),
    "gcp": (gke, {
        "no cluster": (replace(GKE, exists=False), "gcloud container clusters list"),
        "an old version": (replace(GKE, version="1.35.1-gke.1"), "Upgrade the cluster"),
        "autopilot": (replace(GKE, autopilot=True), "Write another cluster"),
        "no workload identity": (replace(GKE, workload_pool=""), "--workload-pool my-project.svc.id.goog"),
        "no labeled nodes": (replace(GKE, groups=(PLAIN,)), "gcloud container node-pools update"),
    }),
    "azure": (aks, {
        "no cluster": (replace(AKS, exists=False), "az aks list"),
        "an old version": (replace(AKS, version="1.34.0"), "Upgrade the cluster"),
        "another location": (replace(AKS, location="westeurope"), "azure-native:location: westeurope"),
        "no issuer": (replace(AKS, issuer=""), "--enable-oidc-issuer"),
        "no workload identity": (replace(AKS, workload_identity=False), "--enable-workload-identity"),
        "no Entra ID": (replace(AKS, entra=False), "--enable-aad"),
    "no node auto-provisioning": (replace(AKS, provisions=False), "--node-provisioning-mode Auto"),
        "one node": (replace(AKS, groups=(LONELY,)), "az aks nodepool update"),
        "a managed subnet": (replace(AKS, subnet_id=""), "network: {subnetId: …}"),
    }),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cloud", "case"), [(cloud, case) for cloud in MISSING for case in MISSING[cloud][1]]
)
def test_a_missing_property_of_a_cluster_is_a_problem(cloud: str, case: str) -> None:
    problems_of, clusters = MISSING[cloud]
    cluster, fix = clusters[case]
    found = problems_of(cluster)
    assert len(found) == 1, f"one thing is missing, and it causes {[str(problem) for problem in found]}"
    assert found[0].field.startswith("holdfast:platform.cluster.")
    assert fix in found[0].fix


def test_subnets_in_another_vpc_are_a_problem() -> None:
    other: JsonValue = {"vpcId": "vpc-0123456789abcdef9", "privateSubnetIds": [*SUBNETS]}
    (problem,) = eks(EKS, network=other)
    assert problem.field == "holdfast:platform.network.vpcId"
    assert f"vpcId: {VPC}" in problem.fix


def test_fields_of_a_new_cluster_are_rejected_beside_an_existing_one() -> None:
    cases = (
        (aws_problems(on_existing(aws_document, {"existing": "shared", "admins": []})), "admins"),
        (gcp_problems(on_existing(gcp_document, {"existing": "shared", "channel": "rapid"})), "channel"),
        (
            azure_problems(
                on_existing(nap_document, {"existing": "shared", "resourceGroup": "g", "admins": []})
            ),
            "admins",
        ),
    )
    for found, field in cases:
        (problem,) = found
        assert problem.field == f"holdfast:platform.cluster.{field}"
        assert "the owner of an existing cluster sets it" in problem.fix


def test_a_new_network_is_rejected_beside_an_existing_cluster() -> None:
    new: JsonValue = {"cidr": "10.40.0.0/16"}
    azure: Document = {"existing": "shared", "resourceGroup": "platform"}
    cases = (
        aws_problems(aws_on(network=new)),
        gcp_problems(on_existing(gcp_document, {"existing": "shared"}, network={"cidr": "10.40.0.0/20"})),
        azure_problems(on_existing(nap_document, azure, network=new)),
    )
    for found in cases:
        (problem,) = found
        assert problem.field == "holdfast:platform.network", "the section that would have no effect"
        assert "the cluster's network" in problem.fix
    (extra,) = azure_problems(
        on_existing(nap_document, azure, network={"subnetId": SUBNET, "podsCidr": "10.244.0.0/14"})
    )
    assert extra.field == "holdfast:platform.network.podsCidr"


def test_a_name_that_no_cluster_can_have_is_rejected() -> None:
    for found in (
        aws_problems(on_existing(aws_document, {"existing": "my cluster"})),
        gcp_problems(on_existing(gcp_document, {"existing": "My_Cluster"})),
        azure_problems(on_existing(nap_document, {"existing": "-", "resourceGroup": "platform"})),
    ):
        (problem,) = found
        assert "prints" in problem.fix
