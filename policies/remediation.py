"""Remediations that a team may enable: they add the taint that a spot pool lacks, and the label that a pool lacks.

A remediation only adds, and never guesses: a pool that may also make on-demand nodes, or whose taints or name are not
known yet, is left unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf import json_format
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy, Severity

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL, SPOT, SYSTEM
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.taints import REPELLING
from pulumi_holdfast.program.pools.all_pools import declared_pools
from pulumi_holdfast.program.resources import at, is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from google.protobuf.struct_pb2 import Struct

    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.taints import Taint
    from pulumi_holdfast.program.pools.all_pools import DeclaredPool
    from pulumi_holdfast.program.resources import StackResource

#: AKS taints the spot nodes of its agent pools itself.
_UNTAINTED_BY_CLOUD: Final = frozenset(Provisioner) - {Provisioner.AKS}


class Remediation(ResourceValidationPolicy):
    """A remediation as a Pulumi policy: what the engine sees of it. `policies.server` runs it.

    `apply` changes a resource's properties as the engine sent them, unknown values and secrets included, and returns
    whether it changed anything.
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
            remediation_steps="None: the remediation applies them. Make the same change in the program.",
        )
        self.apply = apply


def remediations() -> Sequence[Remediation]:
    """Return the pack's remediations; all are disabled by default."""
    return (
        Remediation(
            name="add-missing-spot-taint",
            title="Add missing spot taints",
            description="Adds the spot taint to a pool that makes only spot nodes and has no taint that repels pods.",
            apply=add_spot_taint,
        ),
        Remediation(
            name="add-missing-pool-label",
            title="Add missing pool labels",
            description=f"Adds the label {POOL}, with the pool's name, to the nodes of a pool without it.",
            apply=add_pool_label,
        ),
    )


def add_spot_taint(resource: StackResource, properties: Struct) -> bool:
    """Taint a pool that makes only spot nodes and repels no pods."""
    for pool in _own_pools(resource):
        taints, path = pool.facts.taints, pool.taints_path.split(".")
        untainted = taints is not UNKNOWN and not _repels_pods(taints)
        only_spot = pool.facts.is_decided and pool.facts.capacity_types == frozenset({SPOT})
        lacks_taint = untainted and pool.provisioner in _UNTAINTED_BY_CLOUD
        if lacks_taint and only_spot and _can_be_set(resource, path):
            _append(properties, path, pool.spot_taint.as_taint())
            return True
    return False


def add_pool_label(resource: StackResource, properties: Struct) -> bool:
    """Label the nodes of a pool with its name, except nodes that run operators."""
    for pool in _own_pools(resource):
        path = pool.labels_path.split(".")
        name = pool.node_pool if pool.label is None and _is_named(pool) else None
        if name and at(resource.props, *path, SYSTEM) is None and _can_be_set(resource, path):
            _object(properties, path)[POOL] = name
            return True
    return False


def _own_pools(resource: StackResource) -> Iterator[DeclaredPool]:
    """Yield the pool that a resource is; a cluster with pools inside it is left unchanged."""
    return (pool for pool in declared_pools((resource,)) if not pool.is_inline)


def _repels_pods(taints: Sequence[Taint]) -> bool:
    return any(taint.effect in REPELLING for taint in taints)


def _is_named(pool: DeclaredPool) -> bool:
    """Whether its name in the cluster is known; the name of its resource may differ."""
    props = pool.resource.props
    return pool.node_pool in (at(props, "metadata", "name"), at(props, "name"), at(props, "agentPoolName"))


def _can_be_set(resource: StackResource, path: Sequence[str]) -> bool:
    """Whether every step of the path is known and is an object, or a list at its end."""
    parents = [at(resource.props, *path[:depth]) for depth in range(1, len(path))]
    end = at(resource.props, *path)
    return all(each is None or is_object(each) for each in parents) and (
        end is None or is_object(end) or (is_list(end) and UNKNOWN not in end)
    )


def _object(properties: Struct, path: Sequence[str]) -> Struct:
    found = properties
    for step in path:
        found = found.fields[step].struct_value
    return found


def _append(properties: Struct, path: Sequence[str], item: Json) -> None:
    *parents, last = path
    listed = _object(properties, parents).fields[last].list_value
    json_format.ParseDict(dict(item), listed.values.add().struct_value)
