"""What the pack fixes by itself where a team asks for it: a spot pool without a taint, a pool without its label.

Only what adds to a pool and takes nothing away is mended, and never a guess: a pool that may make on-demand nodes too, or
one of whose taints or names something is not known yet, is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf import json_format
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy, Severity

from holdfast.policies.declared import declared_pools
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object
from holdfast.scheduling.labels import POOL, SPOT, SYSTEM
from holdfast.scheduling.reachability.machine_capacity import Provisioner
from holdfast.scheduling.taints import GKE_SPOT_TAINT, REPELLING, Taint
from holdfast.scheduling.taints import SPOT as SPOT_TAINT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.struct_pb2 import Struct

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.scheduling.json import Json

_SPOT_TAINTS: Final = {
    Provisioner.EKS: SPOT_TAINT.as_taint(),
    Provisioner.NAP: SPOT_TAINT.as_taint(),
    Provisioner.LOCAL: SPOT_TAINT.as_taint(),
    Provisioner.GKE: {"key": GKE_SPOT_TAINT.key, "value": GKE_SPOT_TAINT.value, "effect": "NO_SCHEDULE"},
}


class Remediation(ResourceValidationPolicy):
    """A fix as Pulumi's policy: what the engine is told of it. `policies.serving` runs it.

    `apply` changes a resource's properties as the engine has sent them, unknown ones and secrets among them, and says
    whether there was anything to change.
    """

    def __init__(
        self, *, name: str, title: str, description: str, apply: Callable[[StackResource, Struct], bool]
    ) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - half typed in the SDK
            name=name,
            display_name=title,
            description=description,
            # Set it to `remediate` in the pack's configuration.
            enforcement_level=EnforcementLevel.DISABLED,
            severity=Severity.MEDIUM,
            tags=["fallback"],
            remediation_steps="Nothing: this fixes what it finds. Write the same into the program.",
        )
        self.apply = apply


def remediations() -> Sequence[Remediation]:
    """Return the pack's fixes, all of them off."""
    return (
        Remediation(
            name="add-missing-spot-taint",
            title="Spot pools are tainted",
            description="A pool of spot nodes alone that has no taint is given the one that keeps other pods away.",
            apply=add_spot_taint,
        ),
        Remediation(
            name="add-missing-pool-label",
            title="Pools carry their label",
            description=f"The nodes of a pool without the label {POOL} are given it, with the pool's name.",
            apply=add_pool_label,
        ),
    )


def add_spot_taint(resource: StackResource, properties: Struct) -> bool:
    """Taint a pool of spot nodes alone that keeps nobody away."""
    for pool in declared_pools((resource,)):
        taints, path = pool.facts.taints, pool.taints_path.split(".")
        taint = _SPOT_TAINTS.get(pool.provisioner)
        untainted = taints is not UNKNOWN and not _keeps_away(taints)
        only_spot = pool.facts.is_decided and pool.facts.capacity_types == frozenset({SPOT})
        if taint is not None and untainted and only_spot and _may_be_set(resource, path):
            _append(properties, path, taint)
            return True
    return False


def add_pool_label(resource: StackResource, properties: Struct) -> bool:
    """Label the nodes of a pool with its name; not those that carry operators, which are no pool's."""
    for pool in declared_pools((resource,)):
        path = pool.labels_path.split(".")
        named = pool.maker_name if pool.label is None and _is_named(pool) else None
        if named and at(resource.props, *path, SYSTEM) is None and _may_be_set(resource, path):
            _object(properties, path)[POOL] = named
            return True
    return False


def _keeps_away(taints: Sequence[Taint]) -> bool:
    return any(taint.effect in REPELLING for taint in taints)


def _is_named(pool: DeclaredPool) -> bool:
    """Whether its name in the cluster is known; the resource's own may be another."""
    props = pool.resource.props
    return pool.maker_name in (
        at(props, "metadata", "name"),
        at(props, "name"),
        at(props, "agentPoolName"),
    )


def _may_be_set(resource: StackResource, path: Sequence[str]) -> bool:
    """Whether all that lies on the path is known, and is an object, or a list at its end."""
    on_the_way = [at(resource.props, *path[:depth]) for depth in range(1, len(path))]
    end = at(resource.props, *path)
    return all(each is None or is_object(each) for each in on_the_way) and (
        end is None or is_object(end) or (is_list(end) and UNKNOWN not in end)
    )


def _object(properties: Struct, path: Sequence[str]) -> Struct:
    found = properties
    for step in path:
        found = found.fields[step].struct_value
    return found


def _append(properties: Struct, path: Sequence[str], item: Json) -> None:
    *way, last = path
    listed = _object(properties, way).fields[last].list_value
    json_format.ParseDict(dict(item), listed.values.add().struct_value)
