"""The API server of a GKE cluster answers while the cluster is there, by the ways that it has."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.catalogue import ConnectionAttempt
from pulumi_holdfast.rehearsal.clouds.gcp.api_server import refuse_connection, where_from
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext

_NAME = "gke-0123.europe-west4.gke.goog"
_PUBLIC, _PRIVATE = "203.0.113.9", "172.16.0.2"
_AUTHORITY = "Q0E="


def _gcp_cluster(*, answers: bool = False, private: bool = False) -> CloudObject:
    computed: Json = {
        "name": "train",
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {"endpoint": _NAME, "allowExternalTraffic": answers}
        },
        "masterAuth": {"clusterCaCertificate": _AUTHORITY},
        "privateClusterConfig": {
            "publicEndpoint": _PUBLIC,
            "privateEndpoint": _PRIVATE,
            "enablePrivateEndpoint": private,
        },
    }
    return CloudObject(
        type="gcp:container/cluster:Cluster", id="train", urn="u", inputs={}, computed=computed
    )


def _gcp_refusal(*objects: CloudObject, host: str, authority: str | None = None) -> str | None:
    told: Json = {"certificate-authority-data": authority} if authority else {}
    connection = KubeconfigContext(
        cluster={"server": f"https://{host}", **told}, command="gke-gcloud-auth-plugin", arguments=()
    )
    return refuse_connection(ConnectionAttempt(connection=connection, inventory=Inventory(list(objects), {})))


def test_the_dns_name_of_a_cluster_is_reached_without_its_authority() -> None:
    assert _gcp_refusal(_gcp_cluster(answers=True), host=_NAME) is None
    told = _gcp_refusal(_gcp_cluster(answers=True), host=_NAME, authority=_AUTHORITY)
    assert told is not None
    assert "certificate signed by unknown authority" in told
    told = _gcp_refusal(_gcp_cluster(answers=False), host=_NAME)
    assert told is not None
    assert told.endswith(": Forbidden")
    assert _gcp_refusal(_gcp_cluster(answers=True), host="gke-4567.europe-west4.gke.goog") is not None


def test_the_addresses_of_a_cluster_are_reached_with_its_authority() -> None:
    assert _gcp_refusal(_gcp_cluster(), host=_PUBLIC, authority=_AUTHORITY) is None
    assert "unknown authority" in str(_gcp_refusal(_gcp_cluster(), host=_PUBLIC))
    assert "unknown authority" in str(_gcp_refusal(_gcp_cluster(), host=_PUBLIC, authority="QW4="))
    assert _gcp_refusal(_gcp_cluster(private=True), host=_PRIVATE, authority=_AUTHORITY) is None
    assert "i/o timeout" in str(_gcp_refusal(_gcp_cluster(private=True), host=_PUBLIC, authority=_AUTHORITY))


@pytest.mark.parametrize(("host", "why"), [(_NAME, "no such host"), (_PUBLIC, "i/o timeout")])
def test_without_the_cluster_the_connection_fails(host: str, why: str) -> None:
    told = _gcp_refusal(host=host)
    assert told is not None, "objects would be made in a cluster that is not there"
    assert why in told


def test_a_cluster_with_private_addresses_only_has_a_remark() -> None:
    assert where_from(Inventory([_gcp_cluster()], {})) == []
    assert where_from(Inventory([_gcp_cluster(answers=True, private=True)], {})) == []
    (told,) = where_from(Inventory([_gcp_cluster(private=True)], {}))
    assert told.startswith("the API server of train has private addresses only: run `pulumi up` where")
