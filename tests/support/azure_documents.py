"""Valid documents of Azure stacks to start from, one for each way of scaling: a test overrides the one thing it is about."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, cast

from holdfast.infra.azure.config.validation import read_azure_platform
from holdfast.scheduling.errors import ConfigError
from tests.support.builders.configurations import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.infra.azure.config.stack import AzurePlatform, FixedPlatform, NapPlatform
    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document

LOCATION = "eastus2"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
TENANT = "00000000-0000-0000-0000-00000000000e"
ADMIN = "00000000-0000-0000-0000-00000000000a"
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/shared"
    "/subnets/training"
)
DISK_ENCRYPTION_SET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/holdfast"

#: A network that is brought.
BROUGHT: Document = {"subnetId": SUBNET, "egressCidrs": ["198.51.100.7/32"]}

_CLUSTER: Document = {
    "access": {"public": {"cidrs": ["203.0.113.0/24"]}},
    "admins": [ADMIN],
    "maintenance": {"exclusions": [{"start": "2026-12-20", "end": "2027-01-06"}]},
}


def _pool(name: str, capacity: str, most: int, **given: JsonValue) -> Document:
    return {"name": name, "capacity": capacity, "maxNodes": most, **given}


_NAP: Document = {
    "cloud": "azure",
    "cluster": _CLUSTER,
    "network": {"cidr": "10.40.0.0/16"},
    "pools": [
        _pool("cpu", "on-demand", 20, vmSizes=["Standard_D4ds_v5", "Standard_D4ads_v5"], default=True),
        _pool("cpu-spot", "spot", 8, families=["Dds_v5", "Dads_v5"], vcpus=[8, 16]),
        _pool("a100-spot", "spot", 8, vmSizes=["Standard_NC24ads_A100_v4"]),
        _pool("a100", "on-demand", 4, vmSizes=["Standard_NC24ads_A100_v4"]),
    ],
    "namespaces": NAMESPACES,
}
_FIXED: Document = {
    **_NAP,
    "cluster": {**_CLUSTER, "scaling": "fixed"},
    "pools": [
        _pool("cpu", "on-demand", 20, vmSize="Standard_D4ds_v5", default=True),
        _pool("cpu-spot", "spot", 8, vmSize="Standard_D16ds_v5", spotMaxPrice=0.5),
        _pool("a100-spot", "spot", 8, vmSize="Standard_NC24ads_A100_v4"),
        _pool("a100", "on-demand", 4, vmSize="Standard_NC24ads_A100_v4"),
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
    location: str | None = LOCATION,
    subscription: str | None = SUBSCRIPTION,
    tenant: str | None = None,
) -> AzurePlatform:
    """Parse a document as the program does."""
    return read_azure_platform(document, location=location, subscription_id=subscription, tenant_id=tenant)


def nap_platform(change: Callable[[Document], object] = lambda _: None) -> NapPlatform:
    """A valid platform on node auto-provisioning, after one change to its document."""
    return cast("NapPlatform", read_azure(nap_document(change)))


def fixed_platform(change: Callable[[Document], object] = lambda _: None) -> FixedPlatform:
    """A valid platform of scale sets, after one change to its document."""
    return cast("FixedPlatform", read_azure(fixed_document(change)))


def azure_problems(
    document: Document,
    location: str | None = LOCATION,
    subscription: str | None = SUBSCRIPTION,
    tenant: str | None = None,
) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read_azure(document, location, subscription, tenant)
    except ConfigError as error:
        return error.problems
    return ()
