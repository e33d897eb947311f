"""What a stranger does who follows a message that stops the run: the change that its fix asks for, and no other."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import cast

from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, POOL
from pulumi_holdfast.program.pools.declared import DeclaredPool, all_pools
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import every, of
from tests.support.builders.stack_resources import resource
from tests.unit.policies.strangers.programs import ladder, one_of

Fields = dict[str, Value]
Fixes = Mapping[str, Callable[["Program", str], None]]


class Program(list[StackResource]):
    """A program that may be changed, and the settings of the pack beside it."""

    def __init__(self, resources: Sequence[StackResource]) -> None:
        super().__init__(replace(each, props=deepcopy(dict(each.props))) for each in resources)
        self.settings: dict[str, object] = {}


def pool_named(program: Program, message: str) -> DeclaredPool:
    """The pool with whose title a message starts."""
    return next(each for each in all_pools(program) if message.startswith(f"{each.title} "))


def put_at(fields: Mapping[str, Value], path: str, value: Value) -> None:
    """Set the value at a path as messages write it, such as `spec.template` or `nodePools[0].nodeConfig`."""
    *steps, last = path.split(".")
    at: object = fields
    for step in steps:
        at = step_into(at, step)
    cast("Fields", at)[last] = value


def _spec(program: Program) -> Fields:
    return cast("Fields", of(program, ":FallbackPolicy").props["spec"])


def _tiers(program: Program) -> list[Fields]:
    return cast("list[Fields]", _spec(program)["tiers"])


def _shapes(program: Program) -> list[Fields]:
    return cast("list[Fields]", _spec(program)["shapes"])


def step_into(value: object, name: str) -> Fields:
    """The object at one step of a path such as `spec` or `nodePools[0]`, made if there is none."""
    key, _, index = name.rstrip("]").partition("[")
    fields = cast("Fields", value)
    if index:
        return cast("list[Fields]", fields[key])[int(index)]
    if not isinstance(fields.get(key), dict):
        fields[key] = {}
    return cast("Fields", fields[key])


def _label_pool(program: Program, message: str) -> None:
    """Add the label under the path that the message names."""
    found = re.search(r"NodePool '([^']+)' lack .* Add it under `([^`]+)`", message)
    assert found, f"the message names the pool and the path: {message}"
    pool = next(each for each in all_pools(program) if each.node_pool == found[1])
    at: object = pool.resource.props
    for name in found[2].split("."):
        at = step_into(at, name)
    cast("Fields", at)[POOL] = found[1]


def _on_demand_pool(message: str) -> str:
    found = re.search(r"this program has: '([^']+)'", message)
    assert found, f"the message names the on-demand pools: {message}"
    return found[1]


def _append_tier(program: Program, message: str) -> None:
    listed = _tiers(program)
    named = _on_demand_pool(message)
    listed[:] = [each for each in listed if each["pool"] != named]
    listed.append({"pool": named})


def _name_existing_pool(program: Program, message: str) -> None:
    if "this program has: none" in message:
        # "add a NodePool whose nodes have the label": in the ladder's cluster, as its spot pool is.
        spot, made = of(program, ":NodePool", "spot"), of(program, ":NodePool", "on-demand")
        program.append(replace(made, urn=f"{made.urn}-here", provider=spot.provider))
    else:
        _tiers(program)[-1]["pool"] = _on_demand_pool(message)


def _add_ladder(program: Program, message: str) -> None:
    program.append(ladder({"pool": _on_demand_pool(message)}))


def _set_timeout(program: Program, message: str) -> None:
    found = re.search(r"tier (\d+) ", message)
    assert found, f"the message names the tier: {message}"
    _tiers(program)[int(found[1]) - 1]["procurementTimeout"] = "15m"


def _tolerate(program: Program, message: str) -> None:
    found = re.search(r"→ pool ([\w-]+).*?: taint ([^=]+)=([^:]*):(\w+) is not tolerated", message)
    assert found, f"the message names the pool and the taint: {message}"
    taint = {"key": found[2], "value": found[3], "effect": found[4]}
    rule = {"taint": taint, "selections": [{"key": POOL, "values": [found[1]]}], "resources": []}
    annotations: Value = {"holdfast.dev/tolerates": json.dumps(rule)}
    kind = "kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"
    program.append(resource(kind, "tolerates", {"metadata": {"annotations": annotations}}))


def _smaller_gang(program: Program, message: str) -> None:
    found = re.search(r"shape (\S+) .*room for at most (\d+) ", message)
    assert found, f"the message names the shape and the room: {message}"
    for shape in _shapes(program):
        if shape["name"] == found[1]:
            shape["pods"] = int(found[2])


def _request_less(program: Program, message: str) -> None:
    found = re.search(
        r"shape (\S+) .*→ pool ([\w-]+).* has (.*?)(\d+)(?:\.\d+)? CPU, (\d+)(?:\.\d+)? GiB allocatable",
        message,
    )
    assert found, f"the message names the shape, the pool and the largest machine: {message}"
    if "GPU" not in found[3]:
        # A machine without GPUs takes none of these jobs: add one that has them to the pool.
        pool = of(program, ":NodePool", found[2])
        kept = [each for each in requirements_of(pool) if each["key"] == CAPACITY_TYPE]
        machines = one_of(INSTANCE_TYPE, "g5.12xlarge", "g5.24xlarge")
        put_at(pool.props, "spec.template.spec.requirements", [*kept, machines])
    for shape in _shapes(program):
        if shape["name"] == found[1] and "GPU" in found[3]:
            shape.update(
                cpu=found[4], memory=f"{found[5]}Gi", efa=shape.get("efa", 0) if "EFA" in found[3] else 0
            )


def _start(program: Program, message: str) -> None:
    found = re.search(r"→ pool ([\w-]+).* Set `([\w.]+): (\w+)`, or name another pool", message)
    assert found, f"the message names the pool and the field: {message}"
    pool = next(each for each in all_pools(program) if each.label == found[1])
    put_at(pool.resource.props, found[2], found[3])


def _raise_quota(program: Program, message: str) -> None:
    found = re.search(r"shape \S+ \((\d+) pods", message)
    assert found, f"the message names the gang: {message}"
    for quota in every(program, ":ResourceQuota"):
        hard = step_into(cast("Fields", quota.props)["spec"], "hard")
        hard["pods"] = found[1]


def _same_accelerator(program: Program, message: str) -> None:
    assert "End it on an on-demand pool with the same accelerator" in message, message
    machines = requirements_of(of(program, ":NodePool", "spot"))[-1]["values"]
    requirements_of(of(program, ":NodePool", "on-demand"))[-1]["values"] = machines


def requirements_of(node_pool: StackResource) -> list[Fields]:
    """The requirements of a NodePool."""
    spec = step_into(step_into(node_pool.props["spec"], "template"), "spec")
    return cast("list[Fields]", spec["requirements"])


def _new_cluster(program: Program, message: str) -> None:
    assert "create a second stack" in message, message
    cluster = of(program, ":ManagedCluster")
    cast("Fields", cluster.props)["nodeProvisioningProfile"] = {"mode": "Auto", "defaultNodePools": "None"}


def _name_reservation(program: Program, message: str) -> None:
    assert "names no capacity reservation" in message, message
    put_at(of(program, ":EC2NodeClass").props, "spec.capacityReservationSelectorTerms", [{"id": "cr-1"}])


def _name_image(program: Program, message: str) -> None:
    assert "such as the alias of AL2023" in message, message
    put_at(of(program, ":EC2NodeClass").props, "spec.amiSelectorTerms", [{"alias": "al2023@v20250701"}])


def _one_zone(program: Program, message: str) -> None:
    assert "is in one zone" in message, message
    put_at(of(program, ":AgentPool", "pool-on-demand").props, "availabilityZones", ["1"])


def _only_on_demand(program: Program, message: str) -> None:
    found = re.search(r"Let NodePool '([^']+)' make only", message)
    assert found, f"the message names the NodePool: {message}"
    required = cast("Fields", one_of(CAPACITY_TYPE, "on-demand"))
    requirements_of(of(program, ":NodePool", found[1])).append(required)


#: By a part of the message's fix, in the order in which they are looked for.
FIXES: Fixes = {
    "Add it under `": _label_pool,
    "Append a tier with an on-demand pool": _append_tier,
    "make only on-demand nodes": _only_on_demand,
    "Name an on-demand pool that exists": _name_existing_pool,
    "Add one whose last tier names an on-demand pool": _add_ladder,
    "Set procurementTimeout": _set_timeout,
    "Let admission add the toleration": _tolerate,
    "declare a smaller gang": _smaller_gang,
    "it is stopped": _start,
    "Set `capacityReservationSelectorTerms`": _name_reservation,
    "Name another image": _name_image,
    "Name one zone in `availabilityZones`": _one_zone,
    "Request less": _request_less,
    "Raise it, or declare a smaller shape": _raise_quota,
    "with the same accelerator": _same_accelerator,
    "create a second stack": _new_cluster,
}


def apply_fix(program: Program, message: str, fixes: Fixes = FIXES) -> None:
    """Make the change that a message asks for. Raises LookupError if it asks for none that is known."""
    for part, fix in fixes.items():
        if part in message:
            fix(program, message)
            return
    raise LookupError(f"the message says nothing to do: {message}")
