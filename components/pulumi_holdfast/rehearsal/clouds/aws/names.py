"""Ids, ARNs and regions in AWS's format."""

from collections.abc import Mapping

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, describe

# The account id of AWS's documentation.
ACCOUNT = "123456789012"
DEFAULT_REGION = "us-east-1"
PARTITION = "aws"

# EC2 ids: a prefix and 17 hexadecimal digits.
_EC2_PREFIXES: Mapping[str, str] = {
    "aws:ec2/eip:Eip": "eipalloc",
    "aws:ec2/flowLog:FlowLog": "fl",
    "aws:ec2/instance:Instance": "i",
    "aws:ec2/internetGateway:InternetGateway": "igw",
    "aws:ec2/launchTemplate:LaunchTemplate": "lt",
    "aws:ec2/natGateway:NatGateway": "nat",
    "aws:ec2/networkAcl:NetworkAcl": "acl",
    "aws:ec2/route:Route": "r-rtb",
    "aws:ec2/routeTable:RouteTable": "rtb",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "rtbassoc",
    "aws:ec2/securityGroup:SecurityGroup": "sg",
    "aws:ec2/securityGroupRule:SecurityGroupRule": "sgrule",
    "aws:ec2/subnet:Subnet": "subnet",
    "aws:ec2/vpc:Vpc": "vpc",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "vpce",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": "sgr",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "sgr",
}
# Global services, whose ARNs contain no region.
_GLOBAL_SERVICES = frozenset({"iam", "cloudfront", "route53"})
# Services whose ARNs contain the name without the type.
_BARE = frozenset({"sqs", "sns", "s3"})
# The service of an ARN where it differs from the module of the SDK token.
_SERVICES: Mapping[str, str] = {
    "amp": "aps",
    "cloudwatch": "events",
    "lb": "elasticloadbalancing",
    "vpc": "ec2",
}


def region(inputs: Json, configuration: Json) -> str:
    """Return the region of a resource: its own, its provider's, or us-east-1."""
    for values in (inputs, configuration):
        given = values.get("region")
        if isinstance(given, str) and given:
            return given
    return DEFAULT_REGION


def place(request: ResourceRequest) -> str:
    """Return the region of an object."""
    return region(request.inputs, request.configuration)


def identify(request: ResourceRequest) -> str:
    """Return an id in AWS's format: an EC2 id, or scope and name joined by colons."""
    prefix = _EC2_PREFIXES.get(request.type)
    if prefix is not None:
        return f"{prefix}-{request.digest[:17]}"
    if request.name:
        return ":".join((*request.scope, request.name))
    return f"{_kind(request)}-{request.digest[:17]}"


def arn(request: ResourceRequest) -> str:
    """Return the ARN of an object."""
    module = request.type.split(":")[1].split("/")[0]
    service = _SERVICES.get(module, module)
    if service == "s3":
        return f"arn:{PARTITION}:s3:::{request.name or request.id}"
    where = "" if service in _GLOBAL_SERVICES else place(request)
    path = "/".join((*request.scope, request.name)) if request.name else request.id
    resource = path if service in _BARE else f"{_kind(request)}/{path}"
    return f"arn:{PARTITION}:{service}:{where}:{ACCOUNT}:{resource}"


def placeholder(request: ResourceRequest, output: str) -> str:
    """Return a placeholder for an output: an ARN where the name of the output says so."""
    if output.lower().endswith("arn"):
        service = request.type.split(":")[1].split("/")[0]
        return f"arn:{PARTITION}:{service}:{place(request)}:{ACCOUNT}:{output}/{request.digest[:12]}"
    return describe(request, output)


def _kind(request: ResourceRequest) -> str:
    return request.type.rsplit(":", 1)[-1].lower()
