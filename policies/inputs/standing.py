"""Reads the workloads of a program that stand on the nodes of a pool: a job finds only the room that they leave.

Deployments and StatefulSets that select the pool count, and only where the pool is limited: otherwise more nodes come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.pod_templates import PodTemplate
from holdfast.policies.inputs.pool import DeclaredPool
from holdfast.policies.resources import StackResource, at, count, once, text_at
from holdfast.scheduling.labels import POOL
from holdfast.scheduling.reachability.shape import Shape

_STANDING: Final = re.compile(r"kubernetes:apps/v1:(?P<kind>Deployment|StatefulSet|ReplicaSet)")
_NODE_POOL: Final = "karpenter.sh/nodepool"


def with_standing(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool with the shapes of the program's workloads that stand on its nodes."""
    standing = tuple(
        replace(shape, name=title)
        for each, title, template in _workloads(resources)
        if (template.selected(POOL) == pool.label or template.selected(_NODE_POOL) == pool.node_pool)
        and isinstance(shape := template.shape, Shape)
        and shape.pods
        and is_same_cluster(each, pool.resource, resources) is not False
    )
    return replace(pool, facts=replace(pool.facts, standing=standing)) if standing else pool


@once
def _workloads(resources: Sequence[StackResource]) -> tuple[tuple[StackResource, str, PodTemplate], ...]:
    return tuple(_read(resources))


def _read(resources: Sequence[StackResource]) -> Iterator[tuple[StackResource, str, PodTemplate]]:
    for each in resources:
        if found := _STANDING.fullmatch(each.type):
            pods = count(at(each.props, "spec", "replicas"))
            name = text_at(each.props, "metadata", "name")
            title = f"{found['kind']} {name if isinstance(name, str) else each.logical_name!r}"
            template = at(each.props, "spec", "template")
            yield each, title, PodTemplate(name=title, pods=1 if pods is None else pods, template=template)
