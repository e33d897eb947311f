"""The API server of an AKS cluster is reachable while the cluster exists, by callers with a role."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.azure.api_server import authority_of, refuse_connection, where_from
from pulumi_holdfast.rehearsal.clouds.azure.names import CALLER
from pulumi_holdfast.rehearsal.clouds.catalogue import ConnectionAttempt
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext
from tests.support.clusters.azure_console import CLUSTER, CLUSTER_ADMIN, CLUSTER_TYPE, GRANT_TYPE, ROLES

_PUBLIC = "train-0a1b.hcp.westeurope.azmk8s.io"
_PRIVATE = "train-0a1b.zone.privatelink.westeurope.azmk8s.io"


def cluster(*, private: bool = False, public_name: bool = True) -> CloudObject:
    inputs: Json = {"apiServerAccessProfile": {"enablePrivateCluster": private}}
    computed: Json = {
        "name": "train",
        "fqdn": _PUBLIC if public_name else "",
        "privateFQDN": _PRIVATE if private else "",
    }
    return CloudObject(
        type=CLUSTER_TYPE, id=CLUSTER, urn="u", inputs=inputs, computed=computed, digest="0a1b" * 16
    )


def role(scope: str = CLUSTER, principal: str = CALLER) -> CloudObject:
    inputs: Json = {"scope": scope, "principalId": principal, "roleDefinitionId": f"{ROLES}/{CLUSTER_ADMIN}"}
    return CloudObject(type=GRANT_TYPE, id=f"{scope}|{principal}", urn="r", inputs=inputs)


def told(*objects: CloudObject, host: str = _PUBLIC, authority: str | None = None) -> str | None:
    known = authority_of(cluster()) if authority is None else authority
    connection = KubeconfigContext(
        cluster={"server": f"https://{host}:443", "certificate-authority-data": known}, command="kubelogin"
    )
    return refuse_connection(ConnectionAttempt(connection=connection, inventory=Inventory(list(objects), {})))


@pytest.mark.parametrize("scope", [CLUSTER, CLUSTER.partition("/providers/")[0]])
def test_a_caller_with_the_role_on_the_cluster_or_its_group_is_admitted(scope: str) -> None:
    assert told(cluster(), role(scope)) is None


def test_callers_without_role_authority_or_cluster_are_refused() -> None:
    for others in ((), (role(principal="another"),), (role(f"{CLUSTER}-of-others"),)):
        refused = told(cluster(), *others)
        assert refused is not None
        assert refused.endswith(
            "User does not have access to the resource in Azure. Update role assignment to allow access."
        ), refused
    assert "unknown authority" in str(told(cluster(), role(), authority="Q0E="))
    assert "no such host" in str(told(role())), "objects would be made in a cluster that is not there"


def test_a_private_cluster_is_called_by_its_names() -> None:
    assert told(cluster(private=True), role(), host=_PRIVATE) is None
    assert told(cluster(private=True), role(), host=_PUBLIC) is None
    assert "no such host" in str(told(cluster(private=True, public_name=False), role(), host=_PUBLIC))
    (remark,) = where_from(Inventory([cluster(private=True)], {}))
    assert "run `pulumi up` where its network is reached" in remark
    assert "private DNS zone" not in remark
    (remark,) = where_from(Inventory([cluster(private=True, public_name=False)], {}))
    assert "private DNS zone" in remark
    assert where_from(Inventory([cluster()], {})) == []
