"""Valid objects to start from: a test overrides the one thing it is about."""

from collections.abc import Callable
from copy import deepcopy
from typing import TypeAlias, TypeVar, cast

from pulumi_holdfast.aws.config.rules import read_aws_platform
from pulumi_holdfast.aws.config.sections import AwsPlatform
from pulumi_holdfast.azure.config.rules import read_azure_platform
from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.clouds import cloud_of
from pulumi_holdfast.config import versions
from pulumi_holdfast.config.sections import ExistingCluster
from pulumi_holdfast.gcp.config.rules import read_gcp_platform
from pulumi_holdfast.gcp.config.sections import GcpPlatform
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.local.config.sections import LocalPlatform

Document: TypeAlias = dict[str, JsonValue]

#: Training namespaces over the pools that every cloud's document has here: cpu, cpu-spot, a100-spot, a100.
NAMESPACES: JsonValue = [
    {
        "name": "vision",
        "ladder": [{"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"}, {"pool": "a100"}],
    },
    {
        "name": "tabular",
        "ladder": [{"pool": "cpu-spot", "maxFailures": 5, "procurementTimeout": "10m"}, {"pool": "cpu"}],
    },
]

#: Two clusters whose jobs a stack accepts.
HOMES: tuple[Document, ...] = (
    {
        "name": "us-east-1",
        "issuer": "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF",
        "namespaces": ["vision"],
    },
    {
        "name": "westeurope",
        "issuer": "https://westeurope.oic.prod-aks.azure.com/tenant/cluster/",
        "namespaces": ["tabular"],
    },
)

_LOCAL: Document = {
    "cloud": "local",
    "pools": [
        {
            "name": "cpu",
            "capacity": "on-demand",
            "instanceTypes": ["m7i.xlarge"],
            "maxNodes": 20,
            "default": True,
        },
        {"name": "cpu-spot", "capacity": "spot", "instanceTypes": ["c7i.4xlarge"], "maxNodes": 8},
        {"name": "a100-spot", "capacity": "spot", "instanceTypes": ["p4d.24xlarge"], "maxNodes": 8},
        {"name": "a100", "capacity": "on-demand", "instanceTypes": ["p4d.24xlarge"], "maxNodes": 4},
    ],
    "namespaces": NAMESPACES,
}


def kubernetes_minor(offset: int) -> str:
    """The minor version of Kubernetes that is `offset` after the one that this release installs."""
    major, minor = versions.KUBERNETES.split(".")
    return f"{major}.{int(minor) + offset}"


def platform_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """A local stack's document as it is written, after one change to it."""
    document = deepcopy(_LOCAL)
    change(document)
    return document


def list_of(document: Document, section: str) -> list[JsonValue]:
    """One of a document's lists."""
    found = document[section]
    assert isinstance(found, list), f"{section} is a list"
    return found


def entry(document: Document, section: str, index: int) -> Document:
    """An item of one of a document's lists."""
    return cast("list[Document]", document[section])[index]


def tier(document: Document, namespace: int, index: int) -> Document:
    """A tier of a namespace's ladder."""
    return cast("list[Document]", entry(document, "namespaces", namespace)["ladder"])[index]


def read(document: JsonValue) -> LocalPlatform:
    """Parse a document as the program does."""
    cloud, found = cloud_of(document)
    return cast("LocalPlatform", cloud.read(found, {}))


def problems(document: JsonValue) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read(document)
    except ConfigError as error:
        return error.problems
    return ()


def pool(
    name: str = "cpu",
    *,
    capacity: CapacityType = CapacityType.ON_DEMAND,
    has_gpus: bool = False,
    max_nodes: int = 4,
    is_default: bool = False,
) -> Pool:
    """An on-demand pool of CPU machines."""
    return Pool(name=name, capacity=capacity, has_gpus=has_gpus, max_nodes=max_nodes, is_default=is_default)


def machine(name: str = "m7i.xlarge", *, vcpus: int = 4, gpus: int = 0) -> Machine:
    """A small CPU machine."""
    return Machine(name=name, vcpus=vcpus, memory_mib=16384, gpus=gpus, hourly_price=0.2)


C = TypeVar("C")


def new_cluster(cluster: C | ExistingCluster) -> C:
    """The section of a cluster that the stack creates."""
    assert not isinstance(cluster, ExistingCluster), "the stack creates its cluster"
    return cluster


AWS_REGION = "us-west-2"

_AWS: Document = {
    "cloud": "aws",
    "account": "123456789012",
    "cluster": {
        "publicAccessCidrs": ["203.0.113.0/24"],
        "admins": ["arn:aws:iam::123456789012:role/platform"],
    },
    "network": {"cidr": "10.40.0.0/16", "zones": ["us-west-2a", "us-west-2b", "us-west-2c"]},
    "pools": [
        {
            "name": "cpu",
            "capacity": "on-demand",
            "instanceTypes": ["m7i.xlarge", "m7a.xlarge"],
            "maxNodes": 20,
            "default": True,
        },
        {
            "name": "cpu-spot",
            "capacity": "spot",
            "families": ["c7i", "c6i"],
            "sizes": ["xlarge"],
            "maxNodes": 8,
        },
        {
            "name": "a100-spot",
            "capacity": "spot",
            "instanceTypes": ["p4d.24xlarge", "p4de.24xlarge"],
            "maxNodes": 8,
        },
        {"name": "a100", "capacity": "on-demand", "instanceTypes": ["p4d.24xlarge"], "maxNodes": 4},
    ],
    "namespaces": NAMESPACES,
}


def aws_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """An AWS stack's document as it is written, after one change to it."""
    document = deepcopy(_AWS)
    change(document)
    return document


def section(document: Document, name: str) -> Document:
    """A mapping of a document, made where it is not there."""
    return cast("Document", document.setdefault(name, {}))


def read_aws(document: Document, region: str | None = AWS_REGION) -> AwsPlatform:
    """Parse a document as the program does."""
    return read_aws_platform(document, region)


def aws_platform(
    change: Callable[[Document], object] = lambda _: None, region: str = AWS_REGION
) -> AwsPlatform:
    """A valid AWS stack's platform, after one change to its document."""
    return read_aws(aws_document(change), region)


def aws_problems(document: Document, region: str | None = AWS_REGION) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read_aws(document, region)
    except ConfigError as error:
        return error.problems
    return ()


AZURE_LOCATION = "eastus2"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
TENANT = "00000000-0000-0000-0000-00000000000e"
ADMIN = "00000000-0000-0000-0000-00000000000a"
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/shared"
    "/subnets/training"
)
WORKSPACE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/logs/providers/Microsoft.OperationalInsights/workspaces/platform"
REGISTRY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers/Microsoft.ContainerRegistry/registries/images"
DNS_ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/dns/providers/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net"
DISK_ENCRYPTION_SET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/holdfast"

#: A network that is brought.
EXISTING_AZURE_NETWORK: Document = {"subnetId": SUBNET, "egressCidrs": ["198.51.100.7/32"]}

_CLUSTER: Document = {
    "access": {"public": {"cidrs": ["203.0.113.0/24"]}},
    "admins": [ADMIN],
    "maintenance": {"exclusions": [{"start": "2026-12-20", "end": "2027-01-06"}]},
}


def _azure_pool(name: str, capacity: str, most: int, **given: JsonValue) -> Document:
    return {"name": name, "capacity": capacity, "maxNodes": most, **given}


_NAP: Document = {
    "cloud": "azure",
    "cluster": _CLUSTER,
    "network": {"cidr": "10.40.0.0/16"},
    "pools": [
        _azure_pool("cpu", "on-demand", 20, vmSizes=["Standard_D4ds_v5", "Standard_D4ads_v5"], default=True),
        _azure_pool("cpu-spot", "spot", 8, families=["Dds_v5", "Dads_v5"], vcpus=[8, 16]),
        _azure_pool("a100-spot", "spot", 8, vmSizes=["Standard_NC24ads_A100_v4"]),
        _azure_pool("a100", "on-demand", 4, vmSizes=["Standard_NC24ads_A100_v4"]),
    ],
    "namespaces": NAMESPACES,
}
_FIXED: Document = {
    **_NAP,
    "cluster": {**_CLUSTER, "scaling": "fixed"},
    "pools": [
        _azure_pool("cpu", "on-demand", 20, vmSizes=["Standard_D4ds_v5"], default=True),
        _azure_pool("cpu-spot", "spot", 8, vmSizes=["Standard_D16ds_v5"], spotMaxPrice=0.5),
        _azure_pool("a100-spot", "spot", 8, vmSizes=["Standard_NC24ads_A100_v4"]),
        _azure_pool("a100", "on-demand", 4, vmSizes=["Standard_NC24ads_A100_v4"]),
    ],
}


def nap_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """The document of a stack on node auto-provisioning as it is written, after one change to it."""
    document = deepcopy(_NAP)
    change(document)
    return document


def fixed_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """The document of a stack of scale sets as it is written, after one change to it."""
    document = deepcopy(_FIXED)
    change(document)
    return document


def read_azure(
    document: Document,
    location: str | None = AZURE_LOCATION,
    subscription: str | None = SUBSCRIPTION,
    tenant: str | None = None,
) -> AzurePlatform:
    """Parse a document as the program does."""
    return read_azure_platform(document, location=location, subscription_id=subscription, tenant_id=tenant)


def nap_platform(change: Callable[[Document], object] = lambda _: None) -> AzurePlatform:
    """A valid platform on node auto-provisioning, after one change to its document."""
    return read_azure(nap_document(change))


def fixed_platform(change: Callable[[Document], object] = lambda _: None) -> AzurePlatform:
    """A valid platform of scale sets, after one change to its document."""
    return read_azure(fixed_document(change))


def azure_problems(
    document: Document,
    location: str | None = AZURE_LOCATION,
    subscription: str | None = SUBSCRIPTION,
    tenant: str | None = None,
) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read_azure(document, location, subscription, tenant)
    except ConfigError as error:
        return error.problems
    return ()


GCP_PROJECT = "my-project"
GCP_REGION = "us-central1"
GCP_KEY = f"projects/{GCP_PROJECT}/locations/{GCP_REGION}/keyRings/holdfast/cryptoKeys/all"

_GCP: Document = {
    "cloud": "gcp",
    "cluster": {
        "access": {"authorizedNetworks": ["203.0.113.0/24"]},
        "zones": ["us-central1-a", "us-central1-b", "us-central1-c"],
        "maintenance": {"exclusions": [{"start": "2026-12-01", "end": "2027-06-30"}]},
    },
    "network": {"cidr": "10.40.0.0/20", "podsCidr": "10.44.0.0/14", "servicesCidr": "10.40.16.0/20"},
    "pools": [
        {
            "name": "cpu",
            "capacity": "on-demand",
            "machineType": "n2-standard-4",
            "maxNodes": 20,
            "default": True,
        },
        {"name": "cpu-spot", "capacity": "spot", "machineType": "n2-standard-16", "maxNodes": 8},
        {
            "name": "a100-spot",
            "capacity": "spot",
            "machineType": "a2-highgpu-8g",
            "zones": ["us-central1-a", "us-central1-c"],
            "maxNodes": 8,
        },
        {"name": "a100", "capacity": "on-demand", "machineType": "a2-highgpu-8g", "maxNodes": 4},
    ],
    "namespaces": NAMESPACES,
}


def gcp_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """A GCP stack's document as it is written, after one change to it."""
    document = deepcopy(_GCP)
    change(document)
    return document


def read_gcp(
    document: Document, region: str | None = GCP_REGION, project: str | None = GCP_PROJECT
) -> GcpPlatform:
    """Parse a document as the program does."""
    return read_gcp_platform(document, project=project, region=region)


def gcp_platform(
    change: Callable[[Document], object] = lambda _: None, region: str = GCP_REGION
) -> GcpPlatform:
    """A valid GCP stack's platform, after one change to its document."""
    return read_gcp(gcp_document(change), region)


def gcp_problems(
    document: Document, region: str | None = GCP_REGION, project: str | None = GCP_PROJECT
) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read_gcp(document, region, project)
    except ConfigError as error:
        return error.problems
    return ()
