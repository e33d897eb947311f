"""Invalid clusters and networks of Azure stacks, each with one mistake and the problem that it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.infra import versions
from tests.support.builders.configurations import (
    ADMIN,
    DISK_ENCRYPTION_SET,
    EXISTING_AZURE_NETWORK,
    SUBNET,
    section,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document

    InvalidConfig = tuple[Callable[[Document], object], str, str]

ELSEWHERE = DISK_ENCRYPTION_SET.replace("00000000-", "00000001-", 1)


def access(**given: JsonValue) -> Callable[[Document], object]:
    """Change the access."""
    return lambda document: section(document, "cluster").update(access=given)


def cluster(**given: JsonValue) -> Callable[[Document], object]:
    """A document with another cluster."""
    return lambda document: section(document, "cluster").update(given)


def network(**given: JsonValue) -> Callable[[Document], object]:
    """A document with other addresses."""
    return lambda document: section(document, "network").update(given)


def system(**given: JsonValue) -> Callable[[Document], object]:
    """A document with other system nodes."""
    return cluster(systemNodes=given)


INVALID_CLUSTERS: dict[str, InvalidConfig] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "no cluster": (lambda d: d.pop("cluster"), ".cluster", "Add `cluster: {access: "),
    "a version without MutatingAdmissionPolicy": (
        cluster(version="1.35"),
        ".cluster.version",
        "{key: karpenter.sh/capacity-type, operator: Equal,",
    ),
    "a version with a patch": (
        cluster(version=f"{versions.KUBERNETES}.3"),
        ".cluster.version",
        f'Write "{versions.KUBERNETES}".',
    ),
    "a version without quotes": (
        cluster(version=float(versions.KUBERNETES)),
        ".cluster.version",
        f'Put it in quotes: "{versions.KUBERNETES}".',
    ),
    "no access": (access(), ".cluster.access", "`public: {cidrs: [203.0.113.7/32]}`"),
    "public and private access": (
        access(public={"cidrs": ["203.0.113.0/24"]}, private=True),
        ".cluster.access",
        "Remove one of the two.",
    ),
    "private access set to false": (access(private=False), ".cluster.access", "or `private: true`"),
    "the whole internet": (
        access(public={"cidrs": ["0.0.0.0/0"]}),
        ".cluster.access.public.cidrs",
        "Write your own addresses",
    ),
    "the whole internet in two halves": (
        access(public={"cidrs": ["0.0.0.0/1", "128.0.0.0/1"]}),
        ".cluster.access.public.cidrs",
        "or `private: true` instead of public",
    ),
    "an empty list of addresses": (
        access(public={"cidrs": []}),
        ".cluster.access.public.cidrs",
        "[203.0.113.0/24]",
    ),
    "an address without a prefix length": (
        access(public={"cidrs": ["203.0.113.7"]}),
        ".cluster.access.public.cidrs[0]",
        'Write "203.0.113.7/32".',
    ),
    "a private block for a public endpoint": (
        access(public={"cidrs": ["10.0.0.0/8"]}),
        ".cluster.access.public.cidrs[0]",
        "the public address of its NAT gateway",
    ),
    "a block twice": (
        access(public={"cidrs": ["203.0.113.0/24", "203.0.113.0/24"]}),
        ".cluster.access.public.cidrs[1]",
        "Remove one",
    ),
    "a public name for a public endpoint": (
        access(public={"cidrs": ["203.0.113.0/24"]}, publicName=True),
        ".cluster.access.publicName",
        "Leave it out.",
    ),
    "publicAccessCidrs instead of access": (
        cluster(publicAccessCidrs=["203.0.113.0/24"]),
        ".cluster.publicAccessCidrs",
        "access: {public: {cidrs: […]}}",
    ),
    "authorizedIPRanges instead of access": (
        lambda d: (
            access(public={"cidrs": ["203.0.113.0/24"]})(d),
            _access_of(d).update(authorizedIPRanges=[]),
        ),
        ".cluster.access.authorizedIPRanges",
        "public: {cidrs: […]}",
    ),
    "a login by a stored token": (cluster(login="devicecode"), ".cluster.login", "`login: azurecli`"),
    "an administrator by name": (
        cluster(admins=["me@example.com"]),
        ".cluster.admins[0]",
        "az ad user show --id NAME --query id",
    ),
    "an administrator twice": (cluster(admins=[ADMIN, ADMIN.upper()]), ".cluster.admins[1]", "Remove one"),
    "a kubeconfig": (
        cluster(kubeconfig="~/.kube/config"),
        ".cluster.kubeconfig",
        "gets a token from kubelogin",
    ),
    # system nodes
    "one system node": (system(count=1), ".cluster.systemNodes.count", "`count: 2`"),
    "system nodes of several sizes": (
        system(vmSizes=["Standard_D4ds_v5"]),
        ".cluster.systemNodes.vmSizes",
        "Write vmSize, a single one",
    ),
    "system nodes with GPUs": (
        system(vmSize="Standard_NC24ads_A100_v4"),
        ".cluster.systemNodes.vmSize",
        "Standard_D4ds_v5",
    ),
    "system nodes that are too small": (
        system(vmSize="Standard_D2ds_v5"),
        ".cluster.systemNodes.vmSize",
        "Standard_D4ds_v5",
    ),
    "system nodes with a typo": (
        system(vmSize="Standard_D4ds_v55"),
        ".cluster.systemNodes.vmSize",
        'Write "Standard_D4ds_v5".',
    ),
    "a zone that does not exist": (system(zones=[4]), ".cluster.systemNodes.zones[0]", "such as 1"),
    "a zone as in a node label": (
        system(zones=["eastus2-1"]),
        ".cluster.systemNodes.zones[0]",
        "Write 1:",
    ),
    "a zone of the system nodes twice": (
        system(zones=[1, "1"]),
        ".cluster.systemNodes.zones[1]",
        "Remove one",
    ),
    # disks
    "a disk encryption set by name": (
        cluster(diskEncryptionSet="holdfast"),
        ".cluster.diskEncryptionSet",
        "az disk-encryption-set show",
    ),
    "a disk encryption set of another subscription": (
        cluster(diskEncryptionSet=ELSEWHERE),
        ".cluster.diskEncryptionSet",
        "or change azure-native:subscriptionId",
    ),
    # upgrades and maintenance
    "a channel that moves to the next minor version": (
        cluster(upgrades={"cluster": "stable"}),
        ".cluster.upgrades.cluster",
        "the next `pulumi up` would try to downgrade, which AKS rejects",
    ),
    "an unknown channel": (
        cluster(upgrades={"cluster": "weekly"}),
        ".cluster.upgrades.cluster",
        "`cluster: patch`",
    ),
    "a channel of the nodes with a typo": (
        cluster(upgrades={"nodeOs": "SecurityPatches"}),
        ".cluster.upgrades.nodeOs",
        'Write "SecurityPatch".',
    ),
    "two days of maintenance": (
        cluster(maintenance={"window": {"days": ["saturday", "sunday"]}}),
        ".cluster.maintenance.window.days",
        "Write day",
    ),
    "a window that is too short": (
        cluster(maintenance={"window": {"hours": 2}}),
        ".cluster.maintenance.window.hours",
        "`hours: 8`",
    ),
    "a window every five weeks": (
        cluster(maintenance={"window": {"everyWeeks": 5}}),
        ".cluster.maintenance.window.everyWeeks",
        "`everyWeeks: 2`",
    ),
    "a relative start date": (
        cluster(maintenance={"window": {"startDate": "today"}}),
        ".cluster.maintenance.window.startDate",
        "a relative one would change with every update",
    ),
    "a time without quotes": (
        cluster(maintenance={"window": {"start": 1320}}),
        ".cluster.maintenance.window.start",
        'Put it in quotes: "22:00".',
    ),
    "an exclusion that ends before it begins": (
        cluster(maintenance={"exclusions": [{"start": "2026-12-20", "end": "2026-12-19"}]}),
        ".cluster.maintenance.exclusions[0].end",
        "Write a later date.",
    ),
    "exclusions of the same days": (
        cluster(
            maintenance={
                "exclusions": [
                    {"start": "2026-12-20", "end": "2027-01-06"},
                    {"start": "2027-01-06", "end": "2027-01-10"},
                ]
            }
        ),
        ".cluster.maintenance.exclusions[1]",
        "Write one instead: 2026-12-20 to 2027-01-10.",
    ),
    "an exclusion without an end": (
        cluster(maintenance={"exclusions": [{"start": "2026-12-20"}]}),
        ".cluster.maintenance.exclusions[0].end",
        "Add `end: ",
    ),
    # the network
    "a public node range": (network(cidr="8.8.0.0/16"), ".network.cidr", "Leave it out"),
    "a range that AKS reserves": (network(podsCidr="172.28.0.0/14"), ".network.podsCidr", "Leave it out"),
    "a pod range within the node range": (
        network(podsCidr="10.40.0.0/16"),
        ".network.podsCidr",
        "Write another",
    ),
    "a service range within the node range": (
        network(servicesCidr="10.40.1.0/24"),
        ".network.servicesCidr",
        "Write another",
    ),
    "a node range smaller than maxNodes": (
        network(cidr="10.40.0.0/27"),
        ".network.cidr",
        "Write a larger block, or smaller maxNodes.",
    ),
    "a pod range smaller than maxNodes": (
        network(podsCidr="10.244.0.0/20"),
        ".network.podsCidr",
        "Write a larger block, or smaller maxNodes.",
    ),
    "a service range that is too large": (
        network(servicesCidr="10.96.0.0/11"),
        ".network.servicesCidr",
        'Write "10.96.0.0/20"',
    ),
    "a network with host bits": (network(cidr="10.40.0.1/16"), ".network.cidr", 'Write "10.40.0.0/16".'),
    "a subnet by name": (
        lambda d: d.update(network={**EXISTING_AZURE_NETWORK, "subnetId": "training"}),
        ".network.subnetId",
        "az network vnet subnet show",
    ),
    "an existing subnet with a node range": (
        lambda d: d.update(network={**EXISTING_AZURE_NETWORK, "cidr": "10.40.0.0/16"}),
        ".network.cidr",
        "without subnetId the stack creates a network",
    ),
    "an existing subnet without egressCidrs": (
        lambda d: d.update(network={"subnetId": SUBNET}),
        ".network.egressCidrs",
        "`egressCidrs: [198.51.100.7/32]`",
    ),
    "an existing subnet with private egressCidrs": (
        lambda d: d.update(network={**EXISTING_AZURE_NETWORK, "egressCidrs": ["10.0.0.4/32"]}),
        ".network.egressCidrs[0]",
        "of the NAT gateway or the firewall",
    ),
    "outbound without a subnet": (
        lambda d: d.update(network={"outbound": "userDefinedRouting"}),
        ".network.subnetId",
        "Add `subnetId: ",
    ),
    "an unsupported outbound type": (
        lambda d: d.update(network={**EXISTING_AZURE_NETWORK, "outbound": "loadBalancer"}),
        ".network.outbound",
        "`outbound: userAssignedNATGateway`",
    ),
}


def _access_of(document: Document) -> Document:
    return section(section(document, "cluster"), "access")
