"""EKS: what AWS adds and refuses."""

from collections.abc import Mapping

from rehearsal.providers.cloud.aws.names import place
from rehearsal.providers.cloud.catalogue import Making, Removal, Rules
from scheduling.json import Json, JsonValue


def _endpoint(making: Making) -> str:
    return f"https://{making.digest[:32].upper()}.gr7.{place(making)}.eks.amazonaws.com"


def _identities(making: Making) -> JsonValue:
    issuer = f"https://oidc.eks.{place(making)}.amazonaws.com/id/{making.digest[:32].upper()}"
    return [{"oidcs": [{"issuer": issuer}]}]


def _vpc_config(making: Making) -> JsonValue:
    """EKS adds its own security group, and the VPC the subnets are in."""
    asked = making.inputs.get("vpcConfig")
    given: Json = asked if isinstance(asked, Mapping) else {}
    defaults: Json = {"endpointPublicAccess": True, "endpointPrivateAccess": False}
    added: Json = {
        "clusterSecurityGroupId": f"sg-{making.digest[17:34]}",
        "vpcId": _vpc_of_subnets(making, given.get("subnetIds")),
    }
    return {**defaults, **given, **added}


def _vpc_of_subnets(making: Making, subnets: JsonValue) -> str:
    for subnet in subnets if isinstance(subnets, list) else []:
        found = making.inventory.find("aws:ec2/subnet:Subnet", str(subnet))
        if found is not None:
            return str(found.inputs.get("vpcId"))
    return f"vpc-{making.digest[34:51]}"


def _deletion_protected(removal: Removal) -> str | None:
    if removal.target.inputs.get("deletionProtection") is True:
        return f"InvalidRequestException: cluster {removal.target.id} has deletion protection enabled"
    return None


RESOURCES: Mapping[str, Rules] = {
    "aws:eks/cluster:Cluster": Rules(
        longest_name=100,
        immutable=frozenset({"roleArn", "encryptionConfig", "kubernetesNetworkConfig.serviceIpv4Cidr"}),
        computed={
            "certificateAuthority": lambda making: {"data": f"{making.digest[:40]}=="},
            "endpoint": _endpoint,
            "identities": _identities,
            "status": lambda _: "ACTIVE",
            "vpcConfig": _vpc_config,
        },
        taken="ResourceInUseException: Cluster already exists with name: {name}",
        refuse_delete=(_deletion_protected,),
    ),
}
