"""Plans the stack file of `holdfast up CLOUD --spot-gpus ACCELERATOR`: a spot pool, the same machines on demand, a ladder. Pure.

Everything else is as in the development stack of the cloud.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import yaml

from pulumi_holdfast.cli.spot_gpus.machines import Selection, select
from pulumi_holdfast.cli.template.files import source
from pulumi_holdfast.config.loader import PLATFORM, load_yaml
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.machines import (
    Machine,
    is_sold_in,
    machine_catalogue,
    select_machines,
    select_vm_sizes,
)

REGION_KEY: Final[Mapping[str, str]] = {
    "aws": "aws:region",
    "azure": "azure-native:location",
    "gcp": "gcp:region",
}
#: The namespace, and the one shape of its jobs: all GPUs that were asked for.
NAMESPACE: Final = "training"
_SHAPE: Final = "train"
_MIB_IN_GIB: Final = 1024
#: What of the smallest machine a pod requests: the rest is for the kubelet and the agents of a node.
_SHARE: Final = 0.7
_COMMAND: Final = re.compile(r"(?m)^# holdfast (up .+)$")


@dataclass(frozen=True, kw_only=True)
class SpotRequest:
    """What the command was asked: `count` GPUs at most; `zones` and `project` are of Google Cloud only."""

    cloud: str
    accelerator: str
    count: int
    region: str
    allow_cidr: str
    zones: tuple[str, ...] = ()
    project: str = ""

    @property
    def stack(self) -> str:
        """The name of the stack."""
        return f"{self.cloud}-{self.accelerator}"

    @property
    def words(self) -> Sequence[str]:
        """The command line that asks for this."""
        more = ["--zones", ",".join(self.zones), "--project", self.project] if self.cloud == "gcp" else []
        given = ["--count", str(self.count), "--region", self.region, "--allow-cidr", self.allow_cidr]
        return ["up", self.cloud, "--spot-gpus", self.accelerator, *given, *more]


def plan_stack_file(request: SpotRequest) -> Json:
    """The document of the stack file. Raises ConfigError if the region does not sell the machines."""
    chosen = select(request.cloud, request.accelerator, request.count, request.region)
    base = cast("dict[str, JsonValue]", load_yaml(source(f"Pulumi.{request.cloud}-dev.yaml")))
    config = cast("dict[str, JsonValue]", base["config"])
    platform = cast("dict[str, JsonValue]", config[PLATFORM])
    nodes = -(-request.count // chosen.gpus)
    config[REGION_KEY[request.cloud]] = request.region
    platform["cluster"] = _cluster(request, cast("Json", platform["cluster"]))
    platform["pools"] = _pools(request, chosen, nodes, cast("Sequence[Json]", platform["pools"]))
    platform["namespaces"] = [_namespace(request, chosen, nodes)]
    if request.cloud == "gcp":
        config["gcp:project"] = request.project
    return base


def render(request: SpotRequest, document: Json) -> str:
    """The text of the stack file, which names the command that wrote it."""
    body = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    return (
        f"# holdfast {shlex.join(request.words)}\n"
        "# wrote this file. Edit it as needed, and keep the line above, which that command reads.\n"
        f"{body}"
    )


def command_in(text: str) -> Sequence[str] | None:
    """The words of the command that wrote a stack file; None for a file of other origin."""
    found = _COMMAND.search(text)
    return shlex.split(found[1]) if found else None


def _cluster(request: SpotRequest, cluster: Json) -> Json:
    match request.cloud:
        case "aws":
            types = [each for each in _SYSTEM_TYPES if is_sold_in(each, request.region)]
            return {
                **cluster,
                "publicAccessCidrs": [request.allow_cidr],
                "systemNodes": {"instanceTypes": types[:2]},
            }
        case "azure":
            return {**cluster, "access": {"public": {"cidrs": [request.allow_cidr]}}}
        case _:
            return {
                **cluster,
                "location": request.zones[0],
                "access": {"authorizedNetworks": [request.allow_cidr]},
            }


_SYSTEM_TYPES: Final = ("m7i.large", "m7a.large", "m6i.large", "m6a.large", "m5.large")


def _pools(request: SpotRequest, chosen: Selection, nodes: int, pools: Sequence[Json]) -> list[JsonValue]:
    """The pools without GPUs of the development stack, then those with GPUs."""
    spot, on_demand = pool_names(request.accelerator)
    adapters: Json = {"efa": True} if _adapters(chosen, nodes) else {}

    def with_gpus(name: str, capacity: str, machines: Sequence[Machine]) -> Json:
        sold = _machines(request.cloud, machines)
        return {"name": name, "capacity": capacity, **sold, "maxNodes": nodes, **_zones(request), **adapters}

    return [
        *(_sold_here(request, each) for each in pools),
        with_gpus(spot, "spot", chosen.spot),
        with_gpus(on_demand, "on-demand", chosen.on_demand),
    ]


def _zones(request: SpotRequest) -> Json:
    return {"zones": list(request.zones)} if request.cloud == "gcp" else {}


def pool_names(accelerator: str) -> tuple[str, str]:
    """The names of the spot pool and of the on-demand pool."""
    return f"{accelerator}-spot", accelerator


def _sold_here(request: SpotRequest, pool: Json) -> Json:
    """A pool without families that the region does not sell in its sizes, and without zones of another region."""
    families = cast("Sequence[str]", pool.get("families", ()))
    if request.cloud == "aws":
        catalogue, sizes = machine_catalogue("aws"), cast("Sequence[str]", pool["sizes"])
        sold = [each for each in families if select_machines([each], sizes, catalogue, request.region)]
        return {**pool, "families": sold}
    if request.cloud == "azure":
        vcpus = cast("Sequence[int]", pool["vcpus"])
        return {
            **pool,
            "families": [each for each in families if select_vm_sizes([each], vcpus, request.region)],
        }
    return {**pool, **(_zones(request) if "zones" in pool else {})}


def _machines(cloud: str, machines: Sequence[Machine]) -> Json:
    if cloud == "gcp":
        (machine,) = machines
        attached: Json = {"type": machine.accelerator or "", "count": machine.gpus}
        is_attached = machine.name.startswith("n1-")
        return {"machineType": machine.name, **({"accelerator": attached} if is_attached else {})}
    return {"instanceTypes" if cloud == "aws" else "vmSizes": [each.name for each in machines]}


def _adapters(chosen: Selection, nodes: int) -> int:
    """The Elastic Fabric Adapters of each pod, if its gang has several nodes and all machines have some."""
    return min(each.efa_interfaces for each in chosen.both) if nodes > 1 else 0


def _namespace(request: SpotRequest, chosen: Selection, nodes: int) -> Json:
    spot, on_demand = pool_names(request.accelerator)
    least_vcpus = min(each.vcpus for each in chosen.both)
    least_mib = min(each.memory_mib for each in chosen.both)
    shape: dict[str, JsonValue] = {
        "name": _SHAPE,
        "pods": nodes,
        "cpu": max(1, int(least_vcpus * _SHARE)),
        "memory": f"{max(1, int(least_mib * _SHARE) // _MIB_IN_GIB)}Gi",
        "gpus": chosen.gpus,
    }
    if adapters := _adapters(chosen, nodes):
        shape["efa"] = adapters
    return {
        "name": NAMESPACE,
        "ladder": [{"pool": spot, "maxFailures": 5, "procurementTimeout": "20m"}, {"pool": on_demand}],
        "fallback": {"returnAfter": "1h"},
        "shapes": [shape],
    }
