"""Networks on AWS: with private subnets and NAT, without a route to the internet, an existing one, or the cluster's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

import pulumi
from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_aws import ec2, vpc

from pulumi_holdfast.aws.config.sections import AwsClusterNetwork, AwsExistingNetwork, Nat
from pulumi_holdfast.aws.preflight.checks import zones_of_network
from pulumi_holdfast.aws.preflight.existing_cluster import subnets_of
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.cidrs import plan_subnets
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.ladder.machines import zones_of

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.preflight.checks import Account

#: The services that nodes, add-ons and Karpenter call: EC2 and SSM (machines, images), EKS and Pod Identity,
#: STS, the interruption queue, and the image registry. The registry's layers come from S3 through the gateway
#: endpoint.
ISOLATED_SERVICES: Final = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")

#: In China the names of most services have the prefix `cn.`; these do not.
_UNPREFIXED_IN_CHINA: Final = frozenset({"eks-auth", "ssm"})


def interface_service(region: str, service: str) -> str:
    """Return the name of a service's interface endpoint in a region."""
    prefix = "cn." if region.startswith("cn-") and service not in _UNPREFIXED_IN_CHINA else ""
    return f"{prefix}com.amazonaws.{region}.{service}"


def s3_service(region: str) -> str:
    """Return the name of S3's gateway endpoint in a region."""
    return f"com.amazonaws.{region}.s3"


class Network(Protocol):
    """A VPC and its private subnets for nodes, one for each zone, in the order of the zones.

    Resources that use a subnet are created after the routes of its traffic and deleted before them.
    """

    @property
    def vpc_id(self) -> Input[str]:
        """The VPC's ID."""
        ...

    @property
    def private_subnet_ids(self) -> Input[Sequence[Input[str]]]:
        """The IDs of the private subnets."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """An existing VPC and subnets, by their IDs.

    Nothing in it is created, changed or tagged. Its owner provides routes, an S3 gateway endpoint (otherwise
    checkpoints go through NAT) and, without a way to the internet, the interface endpoints.
    """

    vpc_id: Input[str]
    private_subnet_ids: Input[Sequence[Input[str]]]


_ANYWHERE: Final = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class NatEgressArgs:
    """`gateways` are the zones with a NAT gateway, and the ranges of their public subnets.

    `route_table_ids` are the route tables of the private subnets by zone: each uses the gateway of its own
    zone, or the first one. `label` is the prefix of names in the AWS console.
    """

    vpc_id: Input[str]
    gateways: Mapping[str, str]
    route_table_ids: Mapping[str, Input[str]]
    label: str


class NatEgress(ComponentResource):
    """NAT gateways with the routes to them (`holdfast:index:NatEgress`).

    Creates an internet gateway; for each zone in `gateways` a public subnet with a NAT gateway and its
    address and nothing else; and the default route of each private subnet.

    Output `routes`: the default route of each private zone, which depends on all of these.
    """

    routes: Mapping[str, ec2.Route]

    def __init__(self, name: str, args: NatEgressArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NatEgress", name, None, opts)
        internet = ec2.InternetGateway(
            f"{name}-internet",
            vpc_id=args.vpc_id,
            tags={"Name": args.label},
            opts=ResourceOptions(parent=self),
        )
        table = ec2.RouteTable(
            f"{name}-public-table",
            vpc_id=args.vpc_id,
            tags={"Name": f"{args.label}-public"},
            opts=ResourceOptions(parent=self),
        )
        outward = ec2.Route(
            f"{name}-public-route",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            gateway_id=internet.id,
            opts=ResourceOptions(parent=self),
        )
        gateways: dict[str, ec2.NatGateway] = {}
        for zone, cidr in args.gateways.items():
            subnet = ec2.Subnet(
                f"{name}-subnet-{zone}",
                vpc_id=args.vpc_id,
                availability_zone=zone,
                cidr_block=cidr,
                map_public_ip_on_launch=False,
                tags={"Name": f"{args.label}-public-{zone}"},
                opts=ResourceOptions(parent=self),
            )
            association = ec2.RouteTableAssociation(
                f"{name}-association-{zone}",
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=ResourceOptions(parent=self),
            )
            address = ec2.Eip(
                f"{name}-address-{zone}",
                domain="vpc",
                tags={"Name": f"{args.label}-{zone}"},
                # AWS does not detach an internet gateway while an address is mapped through it.
                opts=ResourceOptions(parent=self, depends_on=[internet]),
            )
            gateways[zone] = ec2.NatGateway(
                f"{name}-gateway-{zone}",
                allocation_id=address.id,
                subnet_id=subnet.id,
                tags={"Name": f"{args.label}-{zone}"},
                # A gateway without a route drops packets, both on creation and on deletion.
                opts=ResourceOptions(parent=self, depends_on=[outward, association]),
            )
        first = next(iter(gateways.values()))
        self.routes = {
            zone: ec2.Route(
                f"{name}-route-{zone}",
                route_table_id=table_id,
                destination_cidr_block=_ANYWHERE,
                nat_gateway_id=gateways.get(zone, first).id,
                opts=ResourceOptions(parent=self),
            )
            for zone, table_id in args.route_table_ids.items()
        }
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class PrivateVpcArgs:
    """`cidr` is a private range from /16 to /22; `zones` are the names of two to six zones of the region.

    `label` is the prefix of names in the AWS console.
    """

    cidr: str
    zones: Sequence[str]
    region: str
    label: str


class PrivateVpc(ComponentResource):
    """A VPC with a private subnet in each zone and a route to S3 only (`holdfast:index:PrivateVpc`).

    Creates the VPC; its default security group without rules, because AWS opens that group to its own
    members; for each zone a subnet with its own route table, so that a change between one and several NAT
    gateways changes routes only; and an S3 gateway endpoint for all of them, so that checkpoints bypass NAT.
    There are no flow logs: they are billed by the gigabyte of traffic and contain its metadata.

    Outputs: `vpc_id`, `vpc_cidr`; `subnets` and `route_tables` by zone; `routing`, the resources that a
    zone's subnet needs to reach S3.
    """

    vpc_id: Output[str]
    vpc_cidr: str
    subnets: Mapping[str, ec2.Subnet]
    route_tables: Mapping[str, ec2.RouteTable]
    routing: Mapping[str, tuple[Resource, ...]]

    def __init__(self, name: str, args: PrivateVpcArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:PrivateVpc", name, None, opts)
        vpc = ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args.cidr,
            # Nodes need both to register with EKS, and endpoints for private names.
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags={"Name": args.label},
            opts=ResourceOptions(parent=self),
        )
        plan = plan_subnets(args.cidr, len(args.zones))
        ec2.DefaultSecurityGroup(f"{name}-default-group", vpc_id=vpc.id, opts=ResourceOptions(parent=self))
        self.subnets = {
            zone: ec2.Subnet(
                f"{name}-subnet-{zone}",
                vpc_id=vpc.id,
                availability_zone=zone,
                cidr_block=cidr,
                tags={"Name": f"{args.label}-private-{zone}"},
                opts=ResourceOptions(parent=self),
            )
            for zone, cidr in zip(args.zones, plan.private, strict=True)
        }
        self.route_tables = {
            zone: ec2.RouteTable(
                f"{name}-table-{zone}",
                vpc_id=vpc.id,
                tags={"Name": f"{args.label}-private-{zone}"},
                opts=ResourceOptions(parent=self),
            )
            for zone in args.zones
        }
        s3 = ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            vpc_endpoint_type="Gateway",
            service_name=s3_service(args.region),
            route_table_ids=[table.id for table in self.route_tables.values()],
            tags={"Name": f"{args.label}-s3"},
            opts=ResourceOptions(parent=self),
        )
        self.routing = {
            zone: (
                s3,
                ec2.RouteTableAssociation(
                    f"{name}-association-{zone}",
                    subnet_id=subnet.id,
                    route_table_id=self.route_tables[zone].id,
                    opts=ResourceOptions(parent=self),
                ),
            )
            for zone, subnet in self.subnets.items()
        }
        self.vpc_id = vpc.id
        self.vpc_cidr = args.cidr
        self.register_outputs({"vpc_id": self.vpc_id})


@dataclass(frozen=True, kw_only=True)
class AwsNetworkArgs:
    """`cidr` is a private range from /16 to /22; `zones` are the names of two to six zones of the region.

    `nat` is the number of NAT gateways: a single one, which is cheaper but whose zone is a single point of
    failure, or one per zone. `label` is the prefix of names in the AWS console; None: the component's name.
    """

    cidr: str
    zones: Sequence[str]
    region: str
    nat: Literal["single", "per-zone"] = "single"
    label: str | None = None


class AwsNetwork(ComponentResource):
    """A VPC whose nodes reach the internet through NAT and S3 directly (`holdfast:index:AwsNetwork`).

    Creates a `PrivateVpc` and its `NatEgress`. Nodes use subnets by ID; there are no discovery tags. A zone
    that is appended leaves the subnets of the other zones unchanged.
    """

    vpc_id: Output[str]
    vpc_cidr: str
    private_subnet_ids: Sequence[Output[str]]

    def __init__(self, name: str, args: AwsNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AwsNetwork", name, None, opts)
        label = args.label or name
        vpc = PrivateVpc(
            f"{name}-private",
            PrivateVpcArgs(cidr=args.cidr, zones=args.zones, region=args.region, label=label),
            opts=ResourceOptions(parent=self),
        )
        public = plan_subnets(args.cidr, len(args.zones)).public
        gateways = args.zones[:1] if args.nat == "single" else args.zones
        egress = NatEgress(
            f"{name}-nat",
            NatEgressArgs(
                vpc_id=vpc.vpc_id,
                gateways=dict(zip(gateways, public, strict=False)),
                route_table_ids={zone: table.id for zone, table in vpc.route_tables.items()},
                label=label,
            ),
            opts=ResourceOptions(parent=self),
        )
        self.vpc_id = vpc.vpc_id
        self.vpc_cidr = vpc.vpc_cidr
        # Karpenter's nodes drain through the NAT gateway: routes are deleted after everything in the subnets.
        self.private_subnet_ids = [
            tied_to(subnet.id, [*vpc.routing[zone], egress.routes[zone]])
            for zone, subnet in vpc.subnets.items()
        ]
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})


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


def network_of(platform: AwsPlatform, account: Account, label: str, *, parent: pulumi.Resource) -> Network:
    """The network of the cluster `parent`; its names in the console start with `label`."""
    config = platform.network
    if account.cluster is not None:
        found = account.cluster
        return ExistingNetwork(vpc_id=found.vpc_id, private_subnet_ids=subnets_of(platform, found))
    if isinstance(config, AwsClusterNetwork):
        raise TypeError("the network of an existing cluster was not looked up; preflight must do it")
    if isinstance(config, AwsExistingNetwork):
        return ExistingNetwork(vpc_id=config.vpc_id, private_subnet_ids=config.private_subnet_ids)
    zones = zones_of_network(config, account, zones_of(platform.region))
    name = naming.part(parent.pulumi_resource_name, "network")
    inside = pulumi.ResourceOptions(parent=parent)
    if config.isolated:
        return AwsIsolatedNetwork(
            name,
            AwsIsolatedNetworkArgs(cidr=config.cidr, zones=zones, region=platform.region, label=label),
            opts=inside,
        )
    return AwsNetwork(
        name,
        AwsNetworkArgs(
            cidr=config.cidr,
            zones=zones,
            region=platform.region,
            nat=(config.nat or Nat.SINGLE).value,
            label=label,
        ),
        opts=inside,
    )
