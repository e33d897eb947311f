"""EKS clusters: computed outputs, refused changes, and lookups for what belongs to a cluster."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.names import place, region
from pulumi_holdfast.rehearsal.clouds.aws.network import SUBNET
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Deletion, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import find, kept_by, needs, owned
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.engine.values import Properties
from pulumi_holdfast.rehearsal.errors import RehearsalError

CLUSTER: Final = "aws:eks/cluster:Cluster"
NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
ADDON: Final = "aws:eks/addon:Addon"
ACCESS_ENTRY: Final = "aws:eks/accessEntry:AccessEntry"
IDENTITY: Final = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ROLE: Final = "aws:iam/role:Role"


no_cluster: Final = needs(
    "clusterName", CLUSTER, "ResourceNotFoundException: No cluster found for name: {value}.", by="name"
)


def cluster_named(name: JsonValue, inventory: Inventory) -> CloudObject | None:
    """Return the cluster with a name."""
    return find(inventory, CLUSTER, name, by="name")


def cluster_of(request: ResourceRequest) -> CloudObject | None:
    """Return the cluster of an object, None where it does not exist."""
    return cluster_named(request.inputs.get("clusterName"), request.inventory)


def role_of(arn: JsonValue, inventory: Inventory) -> CloudObject | None:
    """Return the role with an ARN."""
    return find(inventory, ROLE, arn, by="arn")


def trusts(role: CloudObject | None, service: str) -> bool:
    """Whether a service (`eks`) may assume a role."""
    return role is not None and f"{service}.amazonaws.com" in str(role.inputs.get("assumeRolePolicy"))


def policies_of(role: CloudObject, inventory: Inventory) -> set[str]:
    """Return the names of the policies of a role."""
    return {
        str(one.inputs.get("policyArn")).rpartition("/")[2]
        for one in inventory.of_type("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
        if one.inputs.get("role") in (role.outputs.get("name"), role.id)
    }


def _endpoint(request: ResourceRequest) -> str:
    return f"https://{request.digest[:32].upper()}.gr7.{place(request)}.eks.amazonaws.com"


def _identities(request: ResourceRequest) -> JsonValue:
    issuer = f"https://oidc.eks.{place(request)}.amazonaws.com/id/{request.digest[:32].upper()}"
    return [{"oidcs": [{"issuer": issuer}]}]


def _vpc_config(request: ResourceRequest) -> JsonValue:
    """EKS adds the cluster security group and the VPC of the subnets."""
    given = mapping(request.inputs.get("vpcConfig"))
    defaults: Json = {"endpointPublicAccess": True, "endpointPrivateAccess": False}
    added: Json = {
        "clusterSecurityGroupId": f"sg-{request.digest[17:34]}",
        "vpcId": _vpc_of_subnets(request, given.get("subnetIds")),
    }
    return {**defaults, **given, **added}


def _vpc_of_subnets(request: ResourceRequest, subnets: JsonValue) -> str:
    for subnet in sequence(subnets):
        found = request.inventory.find(SUBNET, str(subnet))
        if found is not None:
            return str(found.inputs.get("vpcId"))
    return f"vpc-{request.digest[34:51]}"


def _not_assumable(request: ResourceRequest) -> str | None:
    arn = request.inputs.get("roleArn")
    if trusts(role_of(arn, request.inventory), "eks"):
        return None
    return (
        f"InvalidParameterException: Role with arn: {arn} could not be assumed because it does not exist or the "
        "trusted entity is not correct"
    )


def _no_such_upgrade(request: ResourceRequest) -> str | None:
    """A cluster is upgraded by one minor version at a time, and never downgraded."""
    before, after = str(_current(request).get("version") or ""), str(request.inputs.get("version") or "")
    if not before or not after or _minor(after) - _minor(before) in (0, 1):
        return None
    return f"InvalidParameterException: Unsupported Kubernetes minor version update from {before} to {after}"


def _minor(version: str) -> int:
    minor = version.partition(".")[2].partition(".")[0]
    return int(minor) if minor.isdecimal() else 0


def _current(request: ResourceRequest) -> Json:
    found = request.inventory.find(request.type, request.id)
    return found.inputs if found else request.inputs


def _disables_encryption(old: Properties, new: Properties) -> frozenset[str]:
    """Encryption of secrets can be enabled, but not disabled."""
    disabled = old.get("encryptionConfig") is not None and new.get("encryptionConfig") is None
    return frozenset({"encryptionConfig"}) if disabled else frozenset()


def _keeps_encryption(request: ResourceRequest) -> Json:
    """The provider accepts another key for the secrets and changes nothing."""
    found = request.inventory.find(request.type, request.id)
    encryption = found.inputs.get("encryptionConfig") if found else None
    return {**request.inputs, "encryptionConfig": encryption} if encryption else request.inputs


def _clusters(call: Call) -> Json:
    names = [one.outputs.get("name") for one in call.inventory.of_type(CLUSTER)]
    return {"id": region(call.arguments, call.configuration), "names": names}


def _cloud_control_resource(call: Call) -> Json:
    """An EKS cluster, as its CloudFormation schema describes it."""
    kind, name = call.arguments.get("typeName"), call.arguments.get("identifier")
    if kind == "AWS::EC2::CapacityReservation":
        raise RehearsalError(f"reservation {name} is not simulated; only a real account knows it")
    if kind != "AWS::EKS::Cluster":
        raise RehearsalError(f"Cloud Control resources of type {kind} are not simulated")
    found = cluster_named(name, call.inventory)
    if found is None:
        raise _not_found("cluster", name)
    encryption = mapping(found.inputs.get("encryptionConfig"))
    listed: JsonValue = [
        {
            "Resources": encryption.get("resources"),
            "Provider": {"KeyArn": mapping(encryption.get("provider")).get("keyArn")},
        }
    ]
    properties: Json = {"Name": name, **({"EncryptionConfig": listed} if encryption else {})}
    return {**call.arguments, "id": name, "properties": json.dumps(properties)}


def _protected(deletion: Deletion) -> str | None:
    if deletion.target.inputs.get("deletionProtection") is True:
        return f"InvalidRequestException: cluster {deletion.target.id} has deletion protection enabled"
    return None


RESOURCES: Mapping[str, Rules] = {
    CLUSTER: Rules(
        longest_name=100,
        force_replace=_disables_encryption,
        keeps=_keeps_encryption,
        computed={
            "certificateAuthority": lambda request: {"data": b64encode(request.digest.encode()).decode()},
            "endpoint": _endpoint,
            "identities": _identities,
            "status": lambda _: "ACTIVE",
            "vpcConfig": _vpc_config,
        },
        taken="ResourceInUseException: Cluster already exists with name: {name}",
        refuse_create=(_not_assumable,),
        refuse_update=(_no_such_upgrade,),
        refuse_delete=(
            _protected,
            kept_by(
                "ResourceInUseException: Cluster has nodegroups attached",
                (NODE_GROUP, "clusterName"),
                by="name",
            ),
        ),
    )
}


def _not_found(what: str, name: JsonValue) -> RehearsalError:
    return RehearsalError(f"ResourceNotFoundException: No {what} found for name: {name}.")


def _get_cluster(call: Call) -> Json:
    """A cluster in the plural forms of the provider's function."""
    name = call.arguments.get("name")
    found = cluster_named(name, call.inventory)
    if found is None:
        raise _not_found("cluster", name)
    outputs = found.outputs
    access = outputs.get("accessConfig")
    authority = outputs.get("certificateAuthority")
    return {
        **{
            key: outputs.get(key)
            for key in ("arn", "endpoint", "identities", "status", "version", "vpcConfig")
        },
        "accessConfigs": [access or {"authenticationMode": "CONFIG_MAP"}],
        "certificateAuthorities": [authority],
        "computeConfigs": [outputs["computeConfig"]] if outputs.get("computeConfig") else [],
        "id": name,
        "name": name,
    }


def _get_addon(call: Call) -> Json:
    cluster, name = call.arguments.get("clusterName"), call.arguments.get("addonName")
    for addon in owned(call.inventory, ADDON, clusterName=cluster):
        if addon.inputs.get("addonName") == name:
            return {**addon.outputs, "id": addon.id}
    raise _not_found("addon", name)


def _get_node_groups(call: Call) -> Json:
    cluster = call.arguments.get("clusterName")
    groups = owned(call.inventory, NODE_GROUP, clusterName=cluster)
    return {"clusterName": cluster, "id": cluster, "names": [_group_name(group) for group in groups]}


def _get_node_group(call: Call) -> Json:
    cluster, name = call.arguments.get("clusterName"), call.arguments.get("nodeGroupName")
    for group in owned(call.inventory, NODE_GROUP, clusterName=cluster):
        if _group_name(group) == name:
            scaling = group.inputs.get("scalingConfig")
            return {**group.outputs, "id": group.id, "nodeGroupName": name, "scalingConfigs": [scaling]}
    raise _not_found("node group", name)


def _group_name(group: CloudObject) -> JsonValue:
    return group.outputs.get("nodeGroupName") or group.id.rpartition(":")[2]


INVOKES: Mapping[str, Invoke] = {
    "aws:cloudcontrol/getResource:getResource": _cloud_control_resource,
    "aws:eks/getAddon:getAddon": _get_addon,
    "aws:eks/getCluster:getCluster": _get_cluster,
    "aws:eks/getClusters:getClusters": _clusters,
    "aws:eks/getNodeGroup:getNodeGroup": _get_node_group,
    "aws:eks/getNodeGroups:getNodeGroups": _get_node_groups,
}
