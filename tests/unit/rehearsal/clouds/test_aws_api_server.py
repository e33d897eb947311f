"""The API server of an EKS cluster is reachable while the cluster exists, by callers that it admits."""

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.aws.api_server import CALLER, private_endpoints, refuse_connection
from pulumi_holdfast.rehearsal.clouds.catalogue import ConnectionAttempt
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext

_SERVER = "https://ABC.gr7.eu-west-1.eks.amazonaws.com"
_ADMIN = "arn:aws:iam::123456789012:role/platform"


def _cluster(*, access: "Json | None" = None, public: bool = True) -> CloudObject:
    inputs: Json = {"name": "prod", **({"accessConfig": access} if access else {})}
    computed: Json = {"endpoint": _SERVER, "vpcConfig": {"endpointPublicAccess": public}}
    return CloudObject(type="aws:eks/cluster:Cluster", id="prod", urn="u", inputs=inputs, computed=computed)


def _admission(principal: str) -> list[CloudObject]:
    inputs: Json = {"clusterName": "prod", "principalArn": principal}
    kinds = ("accessEntry:AccessEntry", "accessPolicyAssociation:AccessPolicyAssociation")
    return [CloudObject(type=f"aws:eks/{kind}", id=f"prod:{kind}", urn="u", inputs=inputs) for kind in kinds]


def _refusal(
    *objects: CloudObject, server: str = _SERVER, arguments: tuple[str, ...] = ("--cluster-name", "prod")
) -> str | None:
    connection = KubeconfigContext(
        cluster={"server": server}, command="aws", arguments=("eks", "get-token", *arguments)
    )
    return refuse_connection(ConnectionAttempt(connection=connection, inventory=Inventory(list(objects), {})))


_CLOSED: Json = {"bootstrapClusterCreatorAdminPermissions": False}


def test_only_the_creator_and_principals_with_an_entry_and_a_policy_are_admitted() -> None:
    assert _refusal(_cluster()) is None, "EKS makes the creator an administrator unless told not to"
    assert _refusal(_cluster(access=_CLOSED)) == "the server has asked for the client to provide credentials"
    assert _refusal(_cluster(access=_CLOSED), *_admission(CALLER)) is None
    entry, _ = _admission(CALLER)
    assert _refusal(_cluster(access=_CLOSED), entry) is not None


def test_the_host_of_a_missing_or_replaced_cluster_is_unknown() -> None:
    told = _refusal()
    assert told is not None, "objects would be made in a cluster that is not there"
    assert "lookup ABC.gr7.eu-west-1.eks.amazonaws.com: no such host" in told
    assert _refusal(_cluster(), server="https://OLD.gr7.eu-west-1.eks.amazonaws.com") is not None


def test_the_kubeconfig_names_the_cluster_and_the_caller() -> None:
    as_admin = ("--cluster-name", "prod", "--role-arn", _ADMIN)
    assert _refusal(_cluster(), arguments=as_admin) is not None
    assert _refusal(_cluster(), *_admission(_ADMIN), arguments=as_admin) is None
    assert _refusal(arguments=()) is None


def test_a_private_endpoint_has_a_remark() -> None:
    assert private_endpoints(Inventory([_cluster()], {})) == []
    (told,) = private_endpoints(Inventory([_cluster(public=False)], {}))
    assert told.startswith("the API server of prod has a private endpoint only: run `pulumi up` where")
