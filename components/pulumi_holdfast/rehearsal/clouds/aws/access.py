"""EKS access entries, access policy associations and Pod Identity associations."""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.clouds.aws.api_server import CALLER
from pulumi_holdfast.rehearsal.clouds.aws.cluster import (
    ACCESS_ENTRY,
    IDENTITY,
    NODE_GROUP,
    ROLE,
    cluster_of,
    no_cluster,
    role_of,
)
from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION, place
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import needs, once, owned
from pulumi_holdfast.rehearsal.clouds.state import CloudObject

_ASSOCIATION: Final = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
_IN_USE: Final = (
    "ResourceInUseException: The specified access entry resource is already in use on this cluster."
)
# Policies can be associated only with entries of this type.
_STANDARD: Final = "STANDARD"


def _made_by_eks(request: ResourceRequest) -> str | None:
    """EKS creates entries for the creator of a cluster and for the role of a managed node group."""
    return _IN_USE if request.inputs.get("principalArn") in _own_entries(request) else None


def _own_entries(request: ResourceRequest) -> set[str]:
    groups = owned(request.inventory, NODE_GROUP, clusterName=request.inputs.get("clusterName"))
    roles = {str(one.inputs.get("nodeRoleArn")) for one in groups}
    creator = _access_of(cluster_of(request)).get("bootstrapClusterCreatorAdminPermissions") is not False
    return {*roles, CALLER} if creator else roles


def _access_of(cluster: CloudObject | None) -> Json:
    return mapping(cluster.inputs.get("accessConfig") if cluster else None)


def _no_such_role(request: ResourceRequest) -> str | None:
    """Nodes need a role of this account; other principals may be of any account."""
    arn, kind = request.inputs.get("principalArn"), request.inputs.get("type") or _STANDARD
    if kind == _STANDARD or role_of(arn, request.inventory) is not None:
        return None
    return "InvalidParameterException: The specified principalArn is invalid: invalid principal."


def _no_entry(request: ResourceRequest) -> str | None:
    principal = request.inputs.get("principalArn")
    entries = owned(request.inventory, ACCESS_ENTRY, clusterName=request.inputs.get("clusterName"))
    if principal in _own_entries(request) or any(
        one.inputs.get("principalArn") == principal for one in entries
    ):
        return None
    return (
        "ResourceNotFoundException: The specified principalArn could not be found. You can view your available "
        "access entries with 'list-access-entries'."
    )


def _identify_association(request: ResourceRequest) -> str:
    return "#".join(str(request.inputs.get(name)) for name in ("clusterName", "principalArn", "policyArn"))


ACCESS: Mapping[str, Rules] = {
    ACCESS_ENTRY: Rules(
        name_property="principalArn",
        computed={"type": lambda request: request.inputs.get("type") or _STANDARD},
        taken=_IN_USE,
        refuse_create=(no_cluster, _made_by_eks, _no_such_role),
    ),
    _ASSOCIATION: Rules(
        name_property="",
        identify=_identify_association,
        # A second association of a policy changes its scope.
        overwrites=True,
        refuse_create=(no_cluster, _no_entry),
    ),
}


def _identify(request: ResourceRequest) -> str:
    return f"a-{request.digest[:17]}"


def _arn(request: ResourceRequest) -> str:
    where = f"{place(request)}:{ACCOUNT}:podidentityassociation/{request.inputs.get('clusterName')}"
    return f"arn:{PARTITION}:eks:{where}/{_identify(request)}"


_no_role: Final = needs(
    "roleArn", ROLE, "InvalidParameterException: Role provided in the request does not exist.", by="arn"
)

POD_IDENTITY: Mapping[str, Rules] = {
    IDENTITY: Rules(
        name_property="",
        identify=_identify,
        computed={"associationArn": _arn, "associationId": _identify},
        refuse_create=(
            no_cluster,
            once(
                "ResourceInUseException: Association already exists: {user}",
                *("clusterName", "namespace", "serviceAccount"),
            ),
            _no_role,
        ),
        refuse_update=(_no_role,),
    )
}
