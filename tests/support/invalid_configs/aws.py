"""Invalid documents of AWS stacks, each with one mistake and the problem that it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.infra import versions
from tests.support.builders.configurations import entry, section
from tests.support.invalid_configs.namespaces import INVALID_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.builders.configurations import Document

INVALID_CONFIGS: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "an account without quotes": (
        lambda d: d.update(account=123456789012),
        ".account",
        'Put it in quotes: "123456789012".',
    ),
    "an account that lost its leading zeros": (
        lambda d: d.update(account=12345678),
        ".account",
        "get-caller-identity",
    ),
    "an account of eleven digits": (
        lambda d: d.update(account="12345678901"),
        ".account",
        "get-caller-identity",
    ),
    "an account with hyphens": (
        lambda d: d.update(account="1234-5678-9012"),
        ".account",
        "get-caller-identity",
    ),
    "a region in the document": (lambda d: d.update(region="us-east-1"), ".region", "aws:region"),
    "resourcePools of Determined": (
        lambda d: d.update(resourcePools=[]),
        ".resourcePools",
        "holdfast determined",
    ),
    # the cluster
    "a version without MutatingAdmissionPolicy": (
        lambda d: section(d, "cluster").update(version="1.35"),
        ".cluster.version",
        "{key: karpenter.sh/capacity-type, operator: Equal,",
    ),
    "a version without pinned add-ons": (
        lambda d: section(d, "cluster").update(version="1.99"),
        ".cluster.version",
        f'Write "{versions.KUBERNETES}".',
    ),
    "a version with a patch": (
        lambda d: section(d, "cluster").update(version=f"{versions.KUBERNETES}.3"),
        ".cluster.version",
        f'Write "{versions.KUBERNETES}".',
    ),
    "a version without quotes": (
        lambda d: section(d, "cluster").update(version=float(versions.KUBERNETES)),
        ".cluster.version",
        f'Put it in quotes: "{versions.KUBERNETES}".',
    ),
    "an endpoint open to the internet": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["0.0.0.0/0"]),
        ".cluster.publicAccessCidrs",
        "add `allowPublicAccessFromAnywhere: true`",
    ),
    "an endpoint open to the internet in two halves": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["0.0.0.0/1", "128.0.0.0/1"]),
        ".cluster.publicAccessCidrs",
        "add `allowPublicAccessFromAnywhere: true`",
    ),
    "no public and no private access": (
        lambda d: section(d, "cluster").pop("publicAccessCidrs"),
        ".cluster.publicAccessCidrs",
        "privateAccessCidrs with the network",
    ),
    "allowPublicAccessFromAnywhere without the block": (
        lambda d: section(d, "cluster").update(allowPublicAccessFromAnywhere=True),
        ".cluster.allowPublicAccessFromAnywhere",
        "Leave it out.",
    ),
    "a private block for a public endpoint": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["10.0.0.0/8"]),
        ".cluster.publicAccessCidrs[0]",
        "use the private endpoint",
    ),
    "a block with host bits": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["203.0.113.7/24"]),
        ".cluster.publicAccessCidrs[0]",
        'Write "203.0.113.0/24".',
    ),
    "an address without a prefix length": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["203.0.113.7"]),
        ".cluster.publicAccessCidrs[0]",
        'Write "203.0.113.7/32".',
    ),
    "an invalid address": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["office"]),
        ".cluster.publicAccessCidrs[0]",
        "Write an IPv4 address",
    ),
    "an administrator that is not an ARN": (
        lambda d: section(d, "cluster").update(admins=["platform"]),
        ".cluster.admins[0]",
        "arn:aws:iam::123456789012:role/platform",
    ),
    "an administrator of eleven digits": (
        lambda d: section(d, "cluster").update(admins=["arn:aws:iam::12345678901:role/platform"]),
        ".cluster.admins[0]",
        "arn:aws:iam::123456789012:role/platform",
    ),
    "a session as an administrator": (
        lambda d: section(d, "cluster").update(admins=["arn:aws:sts::123456789012:assumed-role/platform/me"]),
        ".cluster.admins[0]",
        "arn:aws:iam::123456789012:role/platform.",
    ),
    "an account as an administrator": (
        lambda d: section(d, "cluster").update(admins=["arn:aws:iam::123456789012:root"]),
        ".cluster.admins[0]",
        "Write a role or a user",
    ),
    "an administrator of another partition": (
        lambda d: section(d, "cluster").update(admins=["arn:aws-cn:iam::123456789012:role/platform"]),
        ".cluster.admins[0]",
        "arn:aws:iam::123456789012:role/platform",
    ),
    "an administrator twice": (
        lambda d: section(d, "cluster").update(admins=["arn:aws:iam::123456789012:role/platform"] * 2),
        ".cluster.admins[1]",
        "Remove one",
    ),
    "a single system node": (
        lambda d: section(d, "cluster").update(systemNodes={"count": 1}),
        ".cluster.systemNodes.count",
        "`count: 2`",
    ),
    "system nodes with GPUs": (
        lambda d: section(d, "cluster").update(systemNodes={"instanceTypes": ["g5.xlarge"]}),
        ".cluster.systemNodes.instanceTypes[0]",
        "m7i.large",
    ),
    "system nodes too small for the operators": (
        lambda d: section(d, "cluster").update(systemNodes={"instanceTypes": ["m7i.large", "t3.small"]}),
        ".cluster.systemNodes.instanceTypes[1]",
        "m7i.large",
    ),
    "system nodes of two architectures": (
        lambda d: section(d, "cluster").update(systemNodes={"instanceTypes": ["m7i.large", "m7g.large"]}),
        ".cluster.systemNodes.instanceTypes",
        "Remove those of one architecture",
    ),
    "a system node with a typo": (
        lambda d: section(d, "cluster").update(systemNodes={"instanceTypes": ["m7i.lrage"]}),
        ".cluster.systemNodes.instanceTypes[0]",
        'Write "m7i.large".',
    ),
    "a public service range": (
        lambda d: section(d, "cluster").update(serviceCidr="203.0.113.0/24"),
        ".cluster.serviceCidr",
        "172.20.0.0/16",
    ),
    # the network
    "a network that overlaps the service range": (
        lambda d: section(d, "network").update(cidr="172.20.0.0/16"),
        ".network.cidr",
        "Write, for example,",
    ),
    "a network that is too small": (
        lambda d: section(d, "network").update(cidr="10.40.0.0/26"),
        ".network.cidr",
        "/22",
    ),
    "a zone of another region": (
        lambda d: section(d, "network").update(zones=["us-west-2a", "us-east-1b"]),
        ".network.zones[1]",
        'Write "us-west-2b"',
    ),
    "a Local Zone": (
        lambda d: section(d, "network").update(zones=["us-west-2a", "us-west-2-lax-1a"]),
        ".network.zones",
        "such as us-east-1a",
    ),
    "a zone letter that does not exist": (
        lambda d: section(d, "network").update(zones=["us-west-2a", "us-west-2z"]),
        ".network.zones[1]",
        "change aws:region",
    ),
    "a single zone": (
        lambda d: section(d, "network").update(zones=["us-west-2a"]),
        ".network.zones",
        "EKS needs two",
    ),
    "a zone twice": (
        lambda d: section(d, "network").update(zones=["us-west-2a", "us-west-2a"]),
        ".network.zones",
        "each once",
    ),
    "seven zones": (lambda d: section(d, "network").update(zones=7), ".network.zones", "`zones: 3`"),
    "zones that are neither a number nor a list": (
        lambda d: section(d, "network").update(zones="all"),
        ".network.zones",
        "`zones: 3`",
    ),
    "a mistyped NAT": (
        lambda d: section(d, "network").update(nat="per_zone"),
        ".network.nat",
        'Write "per-zone".',
    ),
    "nat in an isolated network": (
        lambda d: (
            section(d, "network").update(isolated=True, nat="single"),
            d.update(mirror={"images": "registry.example.com"}),
        ),
        ".network.nat",
        "Leave out nat",
    ),
    "an isolated network without an image mirror": (
        lambda d: section(d, "network").update(isolated=True),
        ".network.isolated",
        "mirror: {images: …}",
    ),
    "a VPC without subnets": (
        lambda d: d.update(network={"vpcId": "vpc-0123456789abcdef0"}),
        ".network.privateSubnetIds",
        "Add `privateSubnetIds: ",
    ),
    "a VPC with zones": (
        lambda d: d.update(
            network={
                "vpcId": "vpc-0123456789abcdef0",
                "privateSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
                "zones": 3,
            }
        ),
        ".network.zones",
        "Leave it out",
    ),
    "a VPC name instead of an id": (
        lambda d: d.update(
            network={
                "vpcId": "main",
                "privateSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
            }
        ),
        ".network.vpcId",
        "aws ec2 describe-vpcs",
    ),
    "a subnet twice": (
        lambda d: d.update(
            network={"vpcId": "vpc-0123456789abcdef0", "privateSubnetIds": ["subnet-0123456789abcdef0"] * 2}
        ),
        ".network.privateSubnetIds[1]",
        "Remove one",
    ),
    "a network that is not a mapping": (
        lambda d: d.update(network="default"),
        ".network",
        "`network: {cidr: ",
    ),
    # pools
    "an instance type with a typo": (
        lambda d: entry(d, "pools", 0).update(instanceTypes=["m7i.xlrage"]),
        ".pools[0].instanceTypes[0]",
        'Write "m7i.xlarge".',
    ),
    "an instance type of another cloud": (
        lambda d: entry(d, "pools", 0).update(instanceTypes=["Standard_ND96asr_v4"]),
        ".pools[0].instanceTypes[0]",
        "aws ec2 describe-instance-type-offerings --region us-west-2",
    ),
    "an instance type that the region does not have": (
        lambda d: entry(d, "pools", 0).update(instanceTypes=["m7i.xlarge", "hpc6a.48xlarge"]),
        ".pools[0].instanceTypes[1]",
        "change aws:region",
    ),
    "an instance type that is never on spot": (
        lambda d: (
            entry(d, "pools", 1).pop("families"),
            entry(d, "pools", 1).pop("sizes"),
            entry(d, "pools", 1).update(instanceTypes=["c7i.xlarge", "t2.nano"]),
        ),
        ".pools[1].instanceTypes[1]",
        "or write capacity: on-demand",
    ),
    "an instance type twice": (
        lambda d: entry(d, "pools", 0).update(instanceTypes=["m7i.xlarge", "m7i.xlarge"]),
        ".pools[0].instanceTypes[1]",
        "Remove one",
    ),
    "machines with and without GPUs": (
        lambda d: entry(d, "pools", 0).update(instanceTypes=["m7i.xlarge", "g6.xlarge"], default=False),
        ".pools[0].instanceTypes",
        "two pools",
    ),
    "no machines": (
        lambda d: entry(d, "pools", 0).pop("instanceTypes"),
        ".pools[0].instanceTypes",
        "`families: ",
    ),
    "families without sizes": (
        lambda d: entry(d, "pools", 1).pop("sizes"),
        ".pools[1].sizes",
        "Add `sizes: ",
    ),
    "sizes without families": (
        lambda d: entry(d, "pools", 1).pop("families"),
        ".pools[1].families",
        "Add `families: ",
    ),
    "instanceTypes beside families": (
        lambda d: entry(d, "pools", 1).update(instanceTypes=["c7i.xlarge"]),
        ".pools[1].families",
        "Remove one of the two.",
    ),
    "a family with a typo": (
        lambda d: entry(d, "pools", 1).update(families=["c7i", "c6j"]),
        ".pools[1].families[1]",
        'Write "c6',
    ),
    "a size that the families do not have": (
        lambda d: entry(d, "pools", 1).update(sizes=["xlarge", "112xlarge"]),
        ".pools[1].sizes[1]",
        "remove it",
    ),
    "machines of two architectures": (
        lambda d: entry(d, "pools", 0).update(instanceTypes=["m7i.xlarge", "m7g.xlarge"]),
        ".pools[0]",
        "two pools",
    ),
    "efa on machines without it": (
        lambda d: entry(d, "pools", 0).update(efa=True),
        ".pools[0].efa",
        "or efa",
    ),
    "a placement group in all zones": (
        lambda d: entry(d, "pools", 2).update(placementGroup=True),
        ".pools[2].placementGroup",
        "`zones: [us-west-2a]`",
    ),
    "a pool in a zone outside the region": (
        lambda d: entry(d, "pools", 2).update(zones=["us-east-1a"]),
        ".pools[2].zones[0]",
        'Write "us-west-2a"',
    ),
    "a pool in a zone outside the network": (
        lambda d: entry(d, "pools", 2).update(zones=["us-west-2d"]),
        ".pools[2].zones[0]",
        "add it to network.zones",
    ),
    "a price cap as in Determined": (
        lambda d: entry(d, "pools", 2).update(spot_max_price="2.50"),
        ".pools[2].spot_max_price",
        "Karpenter has no field that holds a price cap",
    ),
    "a price cap": (
        lambda d: entry(d, "pools", 2).update(spotMaxPrice="2.50"),
        ".pools[2].spotMaxPrice",
        "Karpenter has no field that holds a price cap",
    ),
    "a volume that is too small": (
        lambda d: entry(d, "pools", 2).update(volumeGiB=8),
        ".pools[2].volumeGiB",
        "`volumeGiB: 100`",
    ),
    "a field with a typo": (
        lambda d: entry(d, "pools", 2).update(volumeGib=200),
        ".pools[2].volumeGib",
        'Write "volumeGiB".',
    ),
    # the rest
    "an existing bucket": (
        lambda d: d.update(checkpoints={"bucket": "mine"}),
        ".checkpoints.bucket",
        "Leave it out",
    ),
    "retainDays of zero": (
        lambda d: d.update(checkpoints={"retainDays": 0}),
        ".checkpoints.retainDays",
        "`retainDays: 30`",
    ),
    "an image mirror with a scheme": (
        lambda d: d.update(mirror={"images": "https://registry.example.com/mirror/"}),
        ".mirror.images",
        'Write "registry.example.com/mirror".',
    ),
    "an image mirror without a host": (
        lambda d: d.update(mirror={"images": "mirror"}),
        ".mirror.images",
        "registry's host",
    ),
    "charts over http": (
        lambda d: d.update(mirror={"charts": "http://mirror.example.com"}),
        ".mirror.charts",
        'Write "https://mirror.example.com"',
    ),
    **INVALID_NAMESPACES,
    "no default pool": (lambda d: entry(d, "pools", 0).pop("default"), ".pools", "Add default: true to cpu."),
}
