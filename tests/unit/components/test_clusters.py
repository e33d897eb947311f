"""What the clusters of all clouds have in common: the kubeconfig, its provider, and protection."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.aws.control_plane import access as eks
from pulumi_holdfast.azure.control_plane import access as aks
from pulumi_holdfast.gcp.control_plane import access as gke
from pulumi_holdfast.ladder.json import Json
from tests.support.builders import aks_components, aws_components, gke_components
from tests.support.fakes.cloud_outputs import AUTHORITY, DNS_ENDPOINT, ENDPOINT
from tests.support.fakes.pulumi_engine import Recording
from tests.support.inputs import mapping, objects, text

PROVIDER: Final = "pulumi:providers:kubernetes"


@dataclass(frozen=True)
class Cluster:
    recorded: Callable[..., Recording]
    recorded_with_protection: Callable[[bool], Recording]
    server: Json
    command: str
    args: list[str]
    protected: list[str]
    kubeconfig: Callable[[str, str], str]


CLUSTERS: Final = {
    "eks": Cluster(
        aws_components.recorded_cluster,
        lambda protected: aws_components.recorded_cluster(lambda args: replace(args, protected=protected)),
        {"server": ENDPOINT, "certificate-authority-data": AUTHORITY},
        "aws",
        ["eks", "get-token", "--cluster-name", "holdfast-dev", "--region", "us-east-1", "--output", "json"],
        ["cluster-control-plane-eks", "cluster-control-plane-secrets-key"],
        lambda name, host: eks.kubeconfig(
            eks.ApiServer(cluster_name=name, region=host, endpoint=ENDPOINT, certificate_authority=AUTHORITY),
            eks.Caller(profile=host),
        ),
    ),
    "aks": Cluster(
        aks_components.recorded_cluster,
        lambda protected: aks_components.recorded_cluster(lambda args: replace(args, protected=protected)),
        {"server": aks_components.SERVER, "certificate-authority-data": aks_components.AUTHORITY},
        "kubelogin",
        [
            *("get-token", "--login", "azurecli", "--environment", "AzurePublicCloud", "--server-id"),
            *("6dae42f8-4368-4678-94ff-3960e28e3630", "--tenant-id", aks_components.TENANT),
        ],
        ["cluster-control-plane-aks"],
        lambda name, host: aks.kubeconfig(
            aks.ApiServer(url=host, certificate_authority=AUTHORITY),
            cluster_name=name,
            tenant_id="t",
            login="spn",
        ),
    ),
    "gke": Cluster(
        gke_components.recorded_cluster,
        lambda protected: gke_components.recorded_cluster(lambda args: replace(args, protected=protected)),
        # A client with the cluster's authority rejects the certificate of Google's DNS name.
        {"server": f"https://{DNS_ENDPOINT}"},
        "gke-gcloud-auth-plugin",
        ["--use_application_default_credentials"],
        ["cluster-control-plane-gke"],
        lambda name, host: gke.kubeconfig(
            gke.ApiServer(cluster_name=name, host=host, certificate_authority=None)
        ),
    ),
}
clusters = pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
names = st.from_regex(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", fullmatch=True)


@clusters
def test_the_kubeconfig_calls_a_command_for_a_token_of_this_cluster(cluster: Cluster) -> None:
    document: Json = json.loads(text(cluster.recorded().one(PROVIDER), "kubeconfig"))
    (server,), (user,) = objects(document, "clusters"), objects(document, "users")
    assert mapping(server, "cluster") == cluster.server
    command = mapping(user, "user", "exec")
    assert command["command"] == cluster.command
    assert command["args"] == cluster.args
    assert command["interactiveMode"] == "Never", "a prompt would block an unattended run"


@clusters
@given(name=names, host=names)
def test_every_kubeconfig_is_complete_and_holds_no_credential(cluster: Cluster, name: str, host: str) -> None:
    made = json.loads(cluster.kubeconfig(name, host))
    context = next(one for one in made["contexts"] if one["name"] == made["current-context"])["context"]
    (server,), (user,) = made["clusters"], made["users"]
    assert (server["name"], user["name"]) == (context["cluster"], context["user"]), "references must resolve"
    assert set(user["user"]) == {"exec"}
    assert "insecure-skip-tls-verify" not in server["cluster"], "TLS must be verified"


@pytest.mark.parametrize("cloud", ["eks", "aks"])
def test_on_preview_of_a_new_cluster_the_kubeconfig_is_unknown(cloud: str) -> None:
    provider = CLUSTERS[cloud].recorded(preview=True).one(PROVIDER)
    assert "https://" not in str(provider.inputs.get("kubeconfig"))


@clusters
@pytest.mark.parametrize("protected", [True, False])
def test_only_a_protected_cluster_cannot_be_deleted(cluster: Cluster, protected: bool) -> None:
    recording = cluster.recorded_with_protection(protected)
    found = sorted(one.name for one in recording if one.protect)
    assert found == (cluster.protected if protected else [])
    control_plane = recording.one("", cluster.protected[0])
    itself = None if cluster is CLUSTERS["aks"] else protected
    assert control_plane.inputs.get("deletionProtection") is itself, "EKS and GKE must reject it too"
