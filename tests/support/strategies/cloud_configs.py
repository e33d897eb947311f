"""Hypothesis strategies for valid documents of the clouds, each with the region or location it is for."""

from datetime import timedelta
from typing import cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from pulumi_holdfast.azure.config.sections import Login
from pulumi_holdfast.gcp.config.sections import Channel
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.machines import attachable_to, is_sold_in, machine_catalogue, zones_of
from pulumi_holdfast.ladder.quantities import format_cpu, format_duration, format_memory
from tests.support.builders.configurations import (
    AZURE_LOCATION,
    EXISTING_AZURE_NETWORK,
    GCP_KEY,
    GCP_REGION,
    Document,
)

_EXISTING_VPC: Document = {
    "vpcId": "vpc-0123456789abcdef0",
    "privateSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
}
_EXISTING_GCP_NETWORK: Document = {
    "network": "shared",
    "subnetwork": "training",
    "podsRange": "pods",
    "servicesRange": "services",
}


def _instance_types(region: str, *, gpus: bool) -> list[str]:
    catalogue = machine_catalogue("aws").values()
    return sorted(
        machine.name
        for machine in catalogue
        if is_sold_in(machine.name, region)
        and (machine.gpus > 0) == gpus
        and machine.on_spot
        and machine.arch == "amd64"
    )


@st.composite
def aws(draw: DrawFn) -> tuple[str, Document]:
    """A valid AWS stack's document, and the region it is for."""
    region = draw(st.sampled_from(["us-east-1", "us-west-2", "eu-west-1"]))
    pools: list[Document] = [
        {
            "name": f"pool-{index}",
            "capacity": "on-demand" if index == 0 else draw(st.sampled_from(["spot", "on-demand"])),
            "instanceTypes": draw(
                st.lists(
                    st.sampled_from(_instance_types(region, gpus=index > 0 and draw(st.booleans()))),
                    min_size=1,
                    max_size=4,
                    unique=True,
                ).map(lambda names: cast("JsonValue", names))
            ),
            "maxNodes": draw(st.integers(1, 1000)),
            "diskGiB": draw(st.integers(30, 16384)),
            "default": index == 0,
        }
        for index in range(draw(st.integers(1, 4)))
    ]
    network = draw(
        st.one_of(
            st.just(_EXISTING_VPC),
            st.fixed_dictionaries(
                {"cidr": st.just("10.40.0.0/16"), "zones": st.integers(2, 3)},
                optional={"nat": st.sampled_from(["single", "per-zone"])},
            ),
        )
    )
    return region, {
        "cloud": "aws",
        "cluster": {"publicAccessCidrs": ["203.0.113.0/24"]},
        "network": cast("JsonValue", network),
        "pools": cast("JsonValue", pools),
        "protected": draw(st.booleans()),
        "checkpoints": {"retainDays": draw(st.integers(1, 3650)), "kms": draw(st.booleans())},
    }


_VM_SIZES = {
    name: machine
    for name, machine in machine_catalogue("azure").items()
    if is_sold_in(name, AZURE_LOCATION) and machine.arch == "amd64"
}
_PLAIN_VM_SIZES = sorted(
    name for name, machine in _VM_SIZES.items() if not machine.gpus and machine.on_demand
)


def _vm_sizes_on(capacity: str) -> list[str]:
    """VM sizes that are sold so."""
    return sorted(
        name
        for name, machine in _VM_SIZES.items()
        if (machine.on_spot if capacity == "spot" else machine.on_demand)
    )


@st.composite
def _azure_pools(draw: DrawFn, index: int, scaling: str) -> Document:
    """A valid pool; the first one is the default."""
    capacity = "on-demand" if index == 0 else draw(st.sampled_from(["spot", "on-demand"]))
    size = draw(st.sampled_from(_PLAIN_VM_SIZES if index == 0 else _vm_sizes_on(capacity)))
    made: Document = {
        "name": f"pool-{index}",
        "capacity": capacity,
        "maxNodes": draw(st.integers(1, 100)),
        "diskGiB": draw(st.integers(30, 2048)),
        "zones": cast("JsonValue", draw(st.lists(st.integers(1, 3), max_size=3, unique=True))),
    }
    if index == 0:
        made["default"] = True
    if scaling == "nap":
        made["vmSizes"] = [size]
        made["rollOut"] = draw(st.booleans())
    else:
        made["vmSizes"] = [size]
    if scaling == "fixed" and capacity == "spot":
        made["spotMaxPrice"] = draw(
            st.just(-1) | st.integers(1, 10_000_000).map(lambda cents: cents / 100_000)
        )
    return made


@st.composite
def azure(draw: DrawFn) -> tuple[str, Document]:
    """A valid Azure stack's document."""
    scaling = draw(st.sampled_from(["nap", "fixed"]))
    public: Document = {"public": {"cidrs": ["203.0.113.0/24"]}}
    return AZURE_LOCATION, {
        "cloud": "azure",
        "protected": draw(st.booleans()),
        "cluster": {
            "scaling": scaling,
            "login": draw(st.sampled_from([login.value for login in Login])),
            "access": draw(
                st.sampled_from([public, {"private": True}, {"private": True, "publicName": True}])
            ),
            "upgrades": {
                "nodeOs": draw(st.sampled_from(["None", "Unmanaged", "SecurityPatch", "NodeImage"]))
            },
            "maintenance": {
                "window": {"hours": draw(st.integers(4, 24)), "everyWeeks": draw(st.integers(1, 4))}
            },
        },
        "network": draw(st.sampled_from([EXISTING_AZURE_NETWORK, {"cidr": "10.40.0.0/16"}])),
        "pools": [draw(_azure_pools(index, scaling)) for index in range(draw(st.integers(1, 4)))],
        "checkpoints": {"retainDays": draw(st.integers(1, 365))},
    }


_MACHINE_TYPES = machine_catalogue("gcp")
_ATTACHABLE = [
    (name, kind, count)
    for name, machine in _MACHINE_TYPES.items()
    for kind, counts in attachable_to(machine).items()
    for count in counts
]


@st.composite
def _gcp_pools(draw: DrawFn, index: int) -> Document:
    """A valid pool; the first one is the default."""
    zones = draw(st.lists(st.sampled_from(zones_of(GCP_REGION)), min_size=1, max_size=3, unique=True))
    if index == 0:
        plain = [
            name
            for name, one in _MACHINE_TYPES.items()
            if not one.gpus and one.arch == "amd64" and one.on_demand
        ]
        return {
            "name": "pool-0",
            "capacity": "on-demand",
            "machineType": draw(st.sampled_from(plain)),
            "maxNodes": draw(st.integers(1, 100)),
            "default": True,
        }
    capacity = draw(st.sampled_from(["spot", "on-demand"]))
    sold = [
        name
        for name, one in _MACHINE_TYPES.items()
        if one.arch == "amd64" and (one.on_spot if capacity == "spot" else one.on_demand)
    ]
    name, attached = draw(
        st.sampled_from(sold).map(lambda name: (name, None))
        | st.sampled_from(_ATTACHABLE).map(lambda found: (found[0], {"type": found[1], "count": found[2]}))
    )
    pool: Document = {
        "name": f"pool-{index}",
        "capacity": capacity,
        "machineType": name,
        "maxNodes": draw(st.integers(1, 100)),
        "zones": cast("JsonValue", zones),
        "upgrades": draw(st.sampled_from(["surge", "blue-green"])),
        "diskGiB": draw(st.integers(30, 65536)),
    }
    if attached is not None:
        pool["accelerator"] = cast("JsonValue", attached)
    if capacity == "spot":
        pool["gracefulShutdownSeconds"] = draw(st.sampled_from([0, 30, 120]))
    return pool


@st.composite
def gcp(draw: DrawFn) -> tuple[str, Document]:
    """A valid GCP stack's document."""
    recovery, days = draw(
        st.tuples(st.just("soft-delete"), st.integers(7, 90))
        | st.tuples(st.just("versioning"), st.integers(1, 3650))
    )
    checkpoints: Document = {
        "retainDays": days,
        "recovery": recovery,
        "kmsKey": draw(st.sampled_from([GCP_KEY])),
    }
    if recovery == "soft-delete":
        checkpoints["hierarchical"] = draw(st.booleans())
    return GCP_REGION, {
        "cloud": "gcp",
        "protected": draw(st.booleans()),
        "cluster": {
            "channel": draw(st.sampled_from([channel.value for channel in Channel])),
            "location": draw(st.sampled_from([GCP_REGION, *zones_of(GCP_REGION)])),
            "access": draw(
                st.sampled_from(
                    [{"dnsEndpoint": {"allowExternal": True}}, {"authorizedNetworks": ["203.0.113.0/24"]}]
                )
            ),
            "maintenance": {"exclusions": [{"start": draw(st.dates()).isoformat()}]},
        },
        "network": draw(st.sampled_from([_EXISTING_GCP_NETWORK, {"podsCidr": "10.44.0.0/14"}])),
        "pools": [draw(_gcp_pools(index)) for index in range(draw(st.integers(1, 4)))],
        "checkpoints": checkpoints,
    }


_LOCAL = machine_catalogue("local")
_CPU_TYPES = sorted(name for name, machine in _LOCAL.items() if not machine.gpus)
_GPU_TYPES = sorted(name for name, machine in _LOCAL.items() if machine.gpus)

_names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
_durations = st.integers(1, 2_592_000).map(lambda seconds: format_duration(timedelta(seconds=seconds)))


def _local_pools(types: list[str], capacity: str) -> SearchStrategy[Document]:
    return st.fixed_dictionaries(
        {
            "capacity": st.just(capacity),
            "instanceTypes": st.lists(st.sampled_from(types), min_size=1, max_size=4, unique=True),
            "maxNodes": st.integers(1, 1000),
        }
    )


_any_pool = st.sampled_from(
    [(types, capacity) for types in (_CPU_TYPES, _GPU_TYPES) for capacity in ("spot", "on-demand")]
).flatmap(lambda kind: _local_pools(*kind))
_passing = st.fixed_dictionaries(
    {"procurementTimeout": _durations}, optional={"maxFailures": st.integers(0, 99)}
)


_fallbacks = st.fixed_dictionaries(
    {},
    optional={
        "failures": st.sampled_from(["any", "evictions"]),
        "outageWindow": _durations,
        "giveUpAfter": st.integers(900, 2_592_000).map(
            lambda seconds: format_duration(timedelta(seconds=seconds))
        ),
        "applicationFailures": st.integers(-1, 99),
        "startTimeout": _durations,
        "deadline": _durations,
    },
)

_shapes = st.lists(
    st.fixed_dictionaries(
        {"name": _names},
        optional={
            "pods": st.integers(1, 64),
            "cpu": st.integers(1, 448)
            | st.integers(1, 448_000).map(format_cpu)
            | st.sampled_from((0.5, 1.5)),
            "memory": st.integers(1, 4_194_304).map(format_memory)
            | st.sampled_from(("1.5Gi", "500M", "2Ti")),
            "gpus": st.integers(1, 16),
            "accelerator": st.just("a100"),
            "devices": st.sampled_from(({}, {"ephemeral-storage": "1Gi"})),
            "tolerations": st.sampled_from(([], [{"key": "team", "operator": "Exists"}])),
            "architectures": st.sampled_from(([], ["amd64"], ["amd64", "arm64"])),
            "samePlacement": st.just("zone"),
        },
    ).map(lambda shape: shape if "gpus" in shape else {**shape, "accelerator": None}),
    max_size=4,
    unique_by=lambda shape: str(shape["name"]),
)
#: With room for the largest of these gangs.
_quotas = st.one_of(
    st.just({"enforced": False}),
    st.fixed_dictionaries({}, optional={"gpus": st.integers(1024, 4096), "pods": st.integers(64, 4096)}),
)


def _is_gpu(pool: Document) -> bool:
    return cast("list[str]", pool["instanceTypes"])[0] in _GPU_TYPES


@st.composite
def _ladders(draw: DrawFn, pools: list[Document]) -> list[Document]:
    """A ladder over pools of one kind of machine, ending on demand or on spot without a limit."""
    gpu = draw(st.booleans())
    kind = [pool for pool in pools if _is_gpu(pool) == gpu] or [pool for pool in pools if not _is_gpu(pool)]
    chosen = draw(
        st.lists(st.sampled_from(kind), min_size=1, max_size=4, unique_by=lambda pool: str(pool["name"]))
    )
    tiers: list[Document] = [{"pool": pool["name"], **draw(_passing)} for pool in chosen[:-1]]
    last: Document = {"pool": chosen[-1]["name"]}
    if chosen[-1]["capacity"] == "spot":
        last["maxFailures"] = UNLIMITED
    return [*tiers, last]


@st.composite
def local(draw: DrawFn) -> tuple[None, Document]:
    """A valid local stack's document, which names no region."""
    default: Document = {**draw(_local_pools(_CPU_TYPES, "on-demand")), "default": True}
    unnamed = [default, *draw(st.lists(_any_pool, max_size=5))]
    pool_names = draw(st.lists(_names, min_size=len(unnamed), max_size=len(unnamed), unique=True))
    pools: list[Document] = [{"name": name, **pool} for name, pool in zip(pool_names, unnamed, strict=True)]
    namespaces = draw(st.lists(_names.map(lambda name: f"t-{name}"), max_size=3, unique=True))
    return None, {
        "cloud": "local",
        "pools": cast("JsonValue", pools),
        "namespaces": [
            {
                "name": name,
                "ladder": cast("JsonValue", draw(_ladders(pools))),
                "fallback": draw(_fallbacks),
                "shapes": cast("JsonValue", draw(_shapes)),
                "quota": draw(_quotas),
            }
            for name in namespaces
        ],
    }
