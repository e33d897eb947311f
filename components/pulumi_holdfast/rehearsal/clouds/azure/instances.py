"""The machines of AKS node pools: names, stock, and the nodes that they become."""

import hashlib
from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.azure.nodes import AGENT_POOL, NodePool, pool_of, template_of
from pulumi_holdfast.rehearsal.clouds.machines import MachineGroup, Register, SimulatedMachine, key_of
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


#: The length of the number at the end of a machine's name.
NUMBER: Final = 6


def _scale_set(pool: CloudObject) -> str:
    """Return the name of a pool's scale set, different for each pool also after a replacement."""
    number = int(hashlib.sha256(key_of(pool).encode()).hexdigest(), 16) % 10**8
    return f"aks-{pool.outputs.get('agentPoolName')}-{number:08}-vmss"


def _name(pool: CloudObject, _zone: str, number: int) -> str:
    """Return a machine's name: the scale set's and a base-36 number of six digits."""
    places = "".join(
        _DIGITS[number // len(_DIGITS) ** place % len(_DIGITS)] for place in reversed(range(NUMBER))
    )
    return f"{_scale_set(pool)}{places}"


REGISTER: Final = Register(
    type="rehearsal:aks/instance:Instance", stock_out="rehearsal:aks/stockOut:StockOut", name=_name
)


def machines_of(group: MachineGroup) -> Sequence[SimulatedMachine]:
    """Return the machines of a node pool; none where its cluster does not exist."""
    pool = pool_of(group.target, group.inventory)
    return [] if pool is None else _machines(pool, group.inventory)


def system_machines_of(group: MachineGroup) -> Sequence[SimulatedMachine]:
    """Return the machines of a cluster's own (system) pools."""
    cluster = group.target
    return [
        machine
        for profile in map(mapping, sequence(cluster.inputs.get("agentPoolProfiles")))
        for machine in _machines(_own_pool(cluster, profile), group.inventory)
    ]


def _own_pool(cluster: CloudObject, profile: Json) -> NodePool:
    name = str(profile.get("name"))
    target = CloudObject(
        type=AGENT_POOL,
        id=f"{cluster.id}/agentPools/{name}",
        urn="",
        inputs={"count": 1, **profile, "agentPoolName": name},
        digest=f"{cluster.digest}/{name}",
    )
    return NodePool(target=target, cluster=cluster)


def _machines(pool: NodePool, inventory: Inventory) -> list[SimulatedMachine]:
    template = template_of(pool)
    instances = REGISTER.instances_of(pool.target, template, inventory)
    return [template.machine(one.name, one.zone) for one in instances]
