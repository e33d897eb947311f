"""AWS resource types about which the SDK does not say enough."""

from collections.abc import Mapping

from rehearsal.json import Json, JsonValue
from rehearsal.providers.cloud.aws.names import ACCOUNT, arn, region
from rehearsal.providers.cloud.catalogue import Making, Removal, Rules


def _place(making: Making) -> str:
    return region(making.inputs, making.configuration)


def _queue_url(making: Making) -> str:
    return f"https://sqs.{_place(making)}.amazonaws.com/{ACCOUNT}/{making.name}"


def _endpoint(making: Making) -> str:
    return f"https://{making.digest[:32].upper()}.gr7.{_place(making)}.eks.amazonaws.com"


def _identities(making: Making) -> JsonValue:
    issuer = f"https://oidc.eks.{_place(making)}.amazonaws.com/id/{making.digest[:32].upper()}"
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


def _subnets_remain(removal: Removal) -> str | None:
    vpc = removal.target.id
    if any(one.inputs.get("vpcId") == vpc for one in removal.inventory.of_type("aws:ec2/subnet:Subnet")):
        return f"DependencyViolation: The vpc '{vpc}' has dependencies and cannot be deleted."
    return None


def _deletion_protected(removal: Removal) -> str | None:
    if removal.target.inputs.get("deletionProtection") is True:
        return f"InvalidRequestException: cluster {removal.target.id} has deletion protection enabled"
    return None


RESOURCES: Mapping[str, Rules] = {
    "aws:ec2/subnet:Subnet": Rules(immutable=frozenset({"cidrBlock", "availabilityZone", "vpcId"})),
    "aws:ec2/vpc:Vpc": Rules(immutable=frozenset({"cidrBlock"}), refuse_delete=(_subnets_remain,)),
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
    "aws:iam/policy:Policy": Rules(longest_name=128, identify=arn),
    "aws:iam/role:Role": Rules(
        longest_name=64, taken="EntityAlreadyExists: Role with name {name} already exists."
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Rules(immutable=frozenset({"role", "policyArn"})),
    "aws:s3/bucket:Bucket": Rules(
        longest_name=63,
        taken="BucketAlreadyExists: The requested bucket name is not available: {name}",
        computed={
            "bucketDomainName": lambda making: f"{making.name}.s3.amazonaws.com",
            "bucketRegionalDomainName": lambda making: f"{making.name}.s3.{_place(making)}.amazonaws.com",
            "bucketRegion": _place,
        },
    ),
    "aws:sqs/queue:Queue": Rules(longest_name=80, identify=_queue_url, computed={"url": _queue_url}),
}
