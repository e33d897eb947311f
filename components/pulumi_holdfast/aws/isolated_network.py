"""A network on AWS without a route to the internet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import ec2, vpc

from pulumi_holdfast.aws.network import ISOLATED_SERVICES, PrivateVpc, PrivateVpcArgs, interface_service
from pulumi_holdfast.kubernetes.ordering import tied_to


@dataclass(frozen=True, kw_only=True)
class InterfaceEndpointsArgs:
    """`subnet_ids` has one subnet per zone; `vpc_cidr` may connect; `label` is the prefix of names."""

    vpc_id: Input[str]
    vpc_cidr: str
    subnet_ids: Sequence[Input[str]]
    region: str
    label: str


class InterfaceEndpoints(ComponentResource):
    """Interface endpoints for the services in ISOLATED_SERVICES (`holdfast:index:InterfaceEndpoints`).

    Creates an endpoint with private DNS for each service, with an address in each zone, and a security group
    that allows port 443 from the whole VPC, because the security group of a managed node group is not known
    in advance.

    Output `endpoints`: the endpoints.
    """

    endpoints: Sequence[ec2.VpcEndpoint]

    def __init__(self, name: str, args: InterfaceEndpointsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:InterfaceEndpoints", name, None, opts)
        group = ec2.SecurityGroup(
            f"{name}-group",
            vpc_id=args.vpc_id,
            description="Interface endpoints",
            tags={"Name": f"{args.label}-endpoints"},
            opts=ResourceOptions(parent=self),
        )
        inward = vpc.SecurityGroupIngressRule(
            f"{name}-https",
            security_group_id=group.id,
            description="HTTPS from the VPC",
            cidr_ipv4=args.vpc_cidr,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            opts=ResourceOptions(parent=self),
        )
        self.endpoints = [
            ec2.VpcEndpoint(
                f"{name}-{service}",
                vpc_id=args.vpc_id,
                vpc_endpoint_type="Interface",
                service_name=interface_service(args.region, service),
                subnet_ids=args.subnet_ids,
                security_group_ids=[group.id],
                private_dns_enabled=True,
                tags={"Name": f"{args.label}-{service}"},
                opts=ResourceOptions(parent=self, depends_on=[inward]),
            )
            for service in ISOLATED_SERVICES
        ]
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class AwsIsolatedNetworkArgs:
    """`cidr` is a private range from /16 to /22; `zones` are the names of two to six zones of the region.

    `label` is the prefix of names in the AWS console; None: the component's name.
    """

    cidr: str
    zones: Sequence[str]
    region: str
    label: str | None = None


class AwsIsolatedNetwork(ComponentResource):
    """A VPC that reaches AWS services only (`holdfast:index:AwsIsolatedNetwork`).

    Creates a `PrivateVpc` without internet or NAT gateway and its `InterfaceEndpoints`. IAM and the price
    list have no endpoint and public registries are out of reach: Karpenter runs in isolated mode, and images
    come from a mirror.
    """

    vpc_id: Output[str]
    vpc_cidr: str
    private_subnet_ids: Sequence[Output[str]]

    def __init__(self, name: str, args: AwsIsolatedNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AwsIsolatedNetwork", name, None, opts)
        label = args.label or name
        vpc = PrivateVpc(
            f"{name}-private",
            PrivateVpcArgs(cidr=args.cidr, zones=args.zones, region=args.region, label=label),
            opts=ResourceOptions(parent=self),
        )
        services = InterfaceEndpoints(
            f"{name}-endpoints",
            InterfaceEndpointsArgs(
                vpc_id=vpc.vpc_id,
                vpc_cidr=vpc.vpc_cidr,
                subnet_ids=[subnet.id for subnet in vpc.subnets.values()],
                region=args.region,
                label=label,
            ),
            opts=ResourceOptions(parent=self),
        )
        self.vpc_id = vpc.vpc_id
        self.vpc_cidr = vpc.vpc_cidr
        # Draining nodes call EC2 and the queue: endpoints are deleted after everything in the subnets.
        self.private_subnet_ids = [
            tied_to(subnet.id, [*vpc.routing[zone], *services.endpoints])
            for zone, subnet in vpc.subnets.items()
        ]
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})
