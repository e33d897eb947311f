"""Every field of a pool in a stack file reaches what the stack registers: not the component that takes it alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import pytest
from pydantic import BaseModel

from pulumi_holdfast.aws.config.sections import AwsPool
from pulumi_holdfast.azure.config.sections import AzurePool
from pulumi_holdfast.gcp.config.sections import GcpPool
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.local.config.sections import LocalPool
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks, local_stacks
from tests.support.builders.configurations import (
    SUBSCRIPTION,
    Document,
    aws_platform,
    entry,
    fixed_platform,
    gcp_platform,
    list_of,
    nap_platform,
    platform_document,
    read,
)
from tests.support.fakes import aws_account
from tests.support.fakes.pulumi_engine import Recording
from tests.support.inputs import value

_BLOCK: Final = "cr-0123456789abcdef0"
_GROUP: Final = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/capacity/providers/Microsoft.Compute"
    "/capacityReservationGroups/h100"
)
_WINDOW: Final[Document] = {"begins": "2098-12-08T11:30:00Z", "ends": "2099-12-08T11:30:00Z"}

#: The pools of each stack beside those that it has: together they set every field.
POOLS: Final[Mapping[str, Sequence[Document]]] = {
    "aws": (
        {
            "name": "held",
            "capacity": "reserved",
            "instanceTypes": ["p4d.24xlarge"],
            "zones": ["us-west-2b"],
            "maxNodes": 7,
            "efa": True,
            "reservation": {"id": _BLOCK, **_WINDOW},
            "diskGiB": 321,
            "rollOut": True,
        },
        {"name": "family", "capacity": "spot", "families": ["m7i"], "sizes": ["2xlarge"], "maxNodes": 3},
        {
            "name": "near",
            "capacity": "on-demand",
            "instanceTypes": ["p4d.24xlarge"],
            "zones": ["us-west-2b"],
            "maxNodes": 2,
            "compactPlacement": True,
        },
    ),
    "gcp": (
        {
            "name": "held",
            "capacity": "reserved",
            "machineType": "a2-highgpu-8g",
            "zones": ["us-central1-c"],
            "maxNodes": 7,
            "reservation": {"name": "h100", **_WINDOW},
            "diskGiB": 321,
        },
        {
            "name": "flex",
            "capacity": "reserved",
            "machineType": "a2-highgpu-8g",
            "maxNodes": 7,
            "flexStart": {"maxRunDuration": "2h"},
        },
        {
            "name": "near",
            "capacity": "on-demand",
            "machineType": "a2-highgpu-8g",
            "zones": ["us-central1-a"],
            "maxNodes": 2,
            "compactPlacement": True,
        },
        {
            "name": "t4",
            "capacity": "spot",
            "machineType": "n1-standard-8",
            "accelerator": {"type": "nvidia-tesla-t4", "count": 2},
            "zones": ["us-central1-a"],
            "maxNodes": 3,
            "gracefulShutdownSeconds": 120,
            "computeClass": "any-t4",
            "upgrades": "blue-green",
        },
    ),
    "nap": (
        {
            "name": "full",
            "capacity": "spot",
            "vmSizes": ["Standard_D8ds_v5"],
            "zones": ["2"],
            "maxNodes": 7,
            "diskGiB": 321,
            "rollOut": True,
        },
        {"name": "family", "capacity": "spot", "families": ["Dds_v5"], "vcpus": [4], "maxNodes": 3},
    ),
    "fixed": (
        {
            "name": "full",
            "capacity": "spot",
            "vmSizes": ["Standard_D8ds_v5"],
            "zones": ["2"],
            "maxNodes": 7,
            "diskGiB": 321,
            "spotMaxPrice": 0.25,
        },
        {
            "name": "held",
            "capacity": "reserved",
            "vmSizes": ["Standard_NC24ads_A100_v4"],
            "maxNodes": 3,
            "reservation": {"group": _GROUP, **_WINDOW},
        },
    ),
    "local": (
        {
            "name": "held",
            "capacity": "reserved",
            "instanceTypes": ["p4d.24xlarge"],
            "maxNodes": 7,
            "reservation": dict(_WINDOW),
        },
    ),
}

SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "aws": AwsPool,
    "gcp": GcpPool,
    "nap": AzurePool,
    "fixed": AzurePool,
    "local": LocalPool,
}


def _added(stack: str) -> Callable[[Document], None]:
    """The change of a document that adds the pools, and a tier for a reserved one."""

    def change(document: Document) -> None:
        list_of(document, "pools").extend(POOLS[stack])
        if any(pool["name"] == "held" for pool in POOLS[stack]):
            list_of(entry(document, "namespaces", 0), "ladder").insert(
                0, {"pool": "held", "procurementTimeout": "15m"}
            )

    return change


def _reserving(token: str, arguments: Json) -> Json:
    """What an account answers that says nothing about its reservation but that it exists."""
    return {"properties": "{}"} if token == aws_account.CLUSTER else aws_account.answers(token, arguments)


_MADE: Final[Mapping[str, Callable[[Callable[[Document], None]], Recording]]] = {
    "aws": lambda change: aws_stacks.composed(aws_platform(change), answer=_reserving),
    "gcp": lambda change: gcp_stacks.composed(gcp_platform(change)),
    "nap": lambda change: azure_stacks.composed(nap_platform(change)),
    "fixed": lambda change: azure_stacks.composed(fixed_platform(change)),
    "local": lambda change: local_stacks.composed(read(platform_document(change))),
}


@cache
def registered(stack: str) -> Recording:
    return _MADE[stack](_added(stack))


class Effect(NamedTuple):
    """What a field must be in a registered resource: at a path, or, with a key, in the item of that key of a list."""

    field: str
    resource: str
    path: str
    wanted: JsonValue
    key: str | None = None


def _requirement(field: str, pool: str, key: str, *values: str) -> Effect:
    return Effect(field, f"pool-{pool}-node-pool", "spec.template.spec.requirements", list(values), key)


def _karpenter(pool: str, capacity: str, most: str) -> Iterator[Effect]:
    yield Effect("name", f"pool-{pool}-node-pool", "metadata.name", pool)
    yield _requirement("capacity", pool, "karpenter.sh/capacity-type", capacity)
    yield Effect("maxNodes", f"pool-{pool}-node-pool", "spec.limits.nodes", most)
    yield Effect("default", "pool-cpu-node-pool", "spec.weight", 100)


_TYPE: Final = "node.kubernetes.io/instance-type"
_RESERVATION: Final = "karpenter.k8s.aws/capacity-reservation-id"
_ROLLED_OUT: Final[JsonValue] = [
    {"nodes": "0", "reasons": ["Underutilized"]},
    {"nodes": "100%", "reasons": ["Drifted", "Empty"]},
]

EFFECTS: Final[Mapping[str, Sequence[Effect]]] = {
    "aws": (
        *_karpenter("held", "reserved", "7"),
        _requirement("instanceTypes", "held", _TYPE, "p4d.24xlarge"),
        _requirement("families", "family", _TYPE, "m7i.2xlarge"),
        _requirement("sizes", "family", _TYPE, "m7i.2xlarge"),
        _requirement("zones", "held", "topology.kubernetes.io/zone", "us-west-2b"),
        Effect(
            "efa",
            "pool-held-node-class",
            "spec.securityGroupSelectorTerms",
            [{"id": "sg-0123456789abcdef0"}, {"id": "main-fabric-members-id"}],
        ),
        # The other strategies spread machines.
        Effect("compactPlacement", "placement-of-near", "strategy", "cluster"),
        Effect(
            "compactPlacement",
            "pool-near-node-class",
            "spec.placementGroupSelector",
            {"id": "pg-0123456789abcdef0"},
        ),
        _requirement("reservation", "held", _RESERVATION, _BLOCK),
        Effect(
            "reservation", "pool-held-node-class", "spec.capacityReservationSelectorTerms", [{"id": _BLOCK}]
        ),
        Effect("diskGiB", "pool-held-node-class", "spec.blockDeviceMappings", "321Gi", "/dev/xvda"),
        Effect("rollOut", "pool-held-node-pool", "spec.disruption.budgets", _ROLLED_OUT),
    ),
    "gcp": (
        Effect("name", "pool-held-node-pool", "name", "held"),
        Effect("capacity", "pool-t4-node-pool", "nodeConfig.spot", wanted=True),
        Effect("maxNodes", "pool-held-node-pool", "autoscaling.totalMaxNodeCount", 7),
        Effect("machineType", "pool-held-node-pool", "nodeConfig.machineType", "a2-highgpu-8g"),
        Effect(
            "accelerator",
            "pool-t4-node-pool",
            "nodeConfig.guestAccelerators",
            [
                {
                    "type": "nvidia-tesla-t4",
                    "count": 2,
                    "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
                }
            ],
        ),
        Effect("zones", "pool-held-node-pool", "nodeLocations", ["us-central1-c"]),
        Effect("compactPlacement", "pool-near-node-pool", "placementPolicy.type", "COMPACT"),
        Effect("upgrades", "pool-t4-node-pool", "upgradeSettings.strategy", "BLUE_GREEN"),
        Effect(
            "gracefulShutdownSeconds",
            "pool-t4-node-pool",
            "nodeConfig.kubeletConfig.shutdownGracePeriodSeconds",
            120,
        ),
        Effect("reservation", "pool-held-node-pool", "nodeConfig.reservationAffinity.values", ["h100"]),
        Effect("flexStart", "pool-flex-node-pool", "nodeConfig.maxRunDuration", "7200s"),
        Effect("diskGiB", "pool-held-node-pool", "nodeConfig.diskSizeGb", 321),
        Effect("computeClass", "class-any-t4-compute-class", "spec.priorities", [{"nodepools": ["t4"]}]),
    ),
    "nap": (
        *_karpenter("full", "spot", "7"),
        _requirement("vmSizes", "full", _TYPE, "Standard_D8ds_v5"),
        _requirement("families", "family", _TYPE, "Standard_D4ds_v5"),
        _requirement("vcpus", "family", _TYPE, "Standard_D4ds_v5"),
        _requirement("zones", "full", "topology.kubernetes.io/zone", "eastus2-2"),
        Effect("diskGiB", "pool-full-node-class", "spec.osDiskSizeGB", 321),
        Effect("rollOut", "pool-full-node-pool", "spec.disruption.budgets", _ROLLED_OUT),
    ),
    "fixed": (
        Effect("name", "pool-full-agent-pool", "agentPoolName", "full"),
        Effect("capacity", "pool-full-agent-pool", "scaleSetPriority", "Spot"),
        Effect("maxNodes", "pool-full-agent-pool", "maxCount", 7),
        Effect("vmSizes", "pool-full-agent-pool", "vmSize", "Standard_D8ds_v5"),
        Effect("zones", "pool-full-agent-pool", "availabilityZones", ["2"]),
        Effect("diskGiB", "pool-full-agent-pool", "osDiskSizeGB", 321),
        Effect("spotMaxPrice", "pool-full-agent-pool", "spotMaxPrice", 0.25),
        Effect("reservation", "pool-held-agent-pool", "capacityReservationGroupID", _GROUP),
    ),
    "local": (
        *_karpenter("held", "reserved", "7"),
        _requirement("instanceTypes", "held", _TYPE, "p4d.24xlarge"),
        _requirement("reservation", "held", _RESERVATION, "held"),
    ),
}

#: Fields that only validation reads, with the reason.
READ_ONLY: Final[Mapping[str, Mapping[str, str]]] = {
    "gcp": {
        "default": "GKE's autoscaler has no order of pools: a pod that selects nothing fits no other one"
    },
    "nap": {"spotMaxPrice": "of scale sets: refused", "reservation": "of scale sets: refused"},
    "fixed": {
        "default": "AKS's autoscaler has no order of pools",
        "families": "of node auto-provisioning: refused",
        "vcpus": "of node auto-provisioning: refused",
        "rollOut": "of node auto-provisioning: refused",
    },
}


@pytest.mark.parametrize("stack", SECTIONS)
def test_the_effect_of_every_field_is_known(stack: str) -> None:
    fields = {field.alias or name for name, field in SECTIONS[stack].model_fields.items()}
    known = {effect.field for effect in EFFECTS[stack]} | set(READ_ONLY.get(stack, {}))
    assert known == fields


@pytest.mark.parametrize(
    ("stack", "effect"),
    [
        pytest.param(stack, effect, id=f"{stack}-{effect.field}-{effect.resource}")
        for stack, effects in EFFECTS.items()
        for effect in effects
    ],
)
def test_a_field_reaches_what_is_registered(stack: str, effect: Effect) -> None:
    found = value(registered(stack).one("", f"main-{effect.resource}"), *effect.path.split("."))
    if effect.key is not None:
        found = _of_key(found, effect.key)
    assert found == effect.wanted


def _of_key(items: JsonValue, key: str) -> JsonValue:
    """The values of a requirement, or the size of a volume."""
    assert isinstance(items, Sequence)
    for item in items:
        assert isinstance(item, Mapping)
        if item.get("key") == key:
            return item["values"]
        if item.get("deviceName") == key:
            return value(item, "ebs", "volumeSize")
    return None


@pytest.mark.parametrize("stack", ["aws", "gcp", "fixed", "local"])
def test_the_times_of_a_reservation_reach_the_ladder(stack: str) -> None:
    ladders = [str(each.inputs) for each in registered(stack) if "vision" in each.name]
    for moment in ("2098-12-08T11:30:00Z", "2099-12-08"):
        assert any(moment in ladder for ladder in ladders)
