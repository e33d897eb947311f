"""GKE's part of a stack, as the policies see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.inputs.gke import NODE_POOL
from holdfast.scheduling.labels import POOL
from tests.support.stack_resources import ladder, namespace, resource

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value

COMPUTE_CLASS_TYPE = "kubernetes:cloud.google.com/v1:ComputeClass"


def gke_pool(name: str, *, labels: Value = None, **config: Value) -> StackResource:
    """A node pool of GKE whose nodes are labelled with its name as their pool, unless other labels are given."""
    marked = {POOL: name} if labels is None else labels
    return resource(NODE_POOL, name, {"name": name, "nodeConfig": {"labels": marked, **config}})


def gke_pools() -> list[StackResource]:
    """A spot pool and an on-demand one."""
    return [gke_pool("a100-spot", spot=True), gke_pool("a100", spot=False)]


def gke_stack(*pools: StackResource) -> list[StackResource]:
    """A training namespace with a ladder from `a100-spot` down to `a100`, and pools."""
    return [namespace(), ladder(), *pools]


def compute_class(*priorities: Value, name: str = "gpus") -> StackResource:
    """A ComputeClass with these priorities."""
    spec: Value = {"priorities": list(priorities), "whenUnsatisfiable": "DoNotScaleUp"}
    return resource(COMPUTE_CLASS_TYPE, name, {"metadata": {"name": name}, "spec": spec})
