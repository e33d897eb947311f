"""Reads what of a program keeps jobs from running on sound pools: closed networks, and operators on spot or that suspend them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import Unknown
from pulumi_holdfast.ladder.labels import CONTROLLER, POOL, TRAINING
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.pod_templates import SPOT_SELECTIONS
from pulumi_holdfast.program.namespaces.interceptors import concerned
from pulumi_holdfast.program.namespaces.network_policies import NETWORK_POLICY, closed, other_network_policies
from pulumi_holdfast.program.pools.declared import all_pools
from pulumi_holdfast.program.pools.karpenter import NODE_POOL, is_node_pool
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import (
    RELEASE,
    StackResource,
    Value,
    at,
    chart_of,
    is_list,
    is_object,
    known_items,
    of_type,
    of_types,
    once,
    text_at,
    whole_number,
)

#: Charts without whose pods no machine comes, or no job is started again.
_OPERATORS: Final = frozenset({"jobset", "kuberay-operator", "karpenter", "kueue"})
#: Where charts and pods say which nodes they run on.
_SELECTING: Final = frozenset({"nodeSelector", "nodeAffinity"})
#: Where their charts have the number of their pods.
_REPLICAS: Final = (
    ("replicas",),
    ("replicaCount",),
    ("controller", "replicas"),
    ("controllerManager", "replicas"),
)
#: The Deployments of operators, as their charts and manifests name them, and of the fallback controller.
_DEPLOYED: Final = frozenset(
    {CONTROLLER, "karpenter", "jobset-controller-manager", "kuberay-operator", "kueue-controller-manager"}
)
_DEPLOYMENTS: Final = re.compile(r"kubernetes:apps/v1:Deployment(?:Patch)?")
_STOPPED: Final = (
    "{name} has `replicas: 0`: while it does not run, nothing starts jobs, moves them or makes their machines"
)
_MANAGES_ALL: Final = re.compile(r"^\s*manageJobsWithoutQueueName:\s*true", re.MULTILINE)


def obstacles(
    ladder: StackResource, namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what keeps the jobs in the namespace of a ladder from running, although its pools are sound."""
    found = (
        *((each, reason) for each in of_types(resources, _DEPLOYMENTS) for reason in _of_deployment(each)),
        *(
            (each, reason)
            for each in of_type(resources, RELEASE)
            for reason in _of_operator(each, _labels_of_spot(resources))
        ),
        *other_network_policies(namespace, resources),
    )
    for each, reason in found:
        if is_same_cluster(each, ladder, resources) is not False:
            yield reason
    here = [
        each
        for each in of_type(resources, NETWORK_POLICY)
        if text_at(each.props, "metadata", "namespace") == namespace
        and is_same_cluster(each, ladder, resources) is not False
    ]
    yield from closed(here, concerned(namespace, resources))


@once
def _labels_of_spot(resources: Sequence[StackResource]) -> frozenset[tuple[str, str]]:
    """Return the labels, with their values, that only nodes which are never on-demand have."""
    of_pools = [({*_labels(pool)}, pool.facts.is_on_demand) for pool in all_pools(resources)]
    of_spot = {label for labels, on_demand in of_pools if on_demand is False for label in labels}
    others = {label for labels, on_demand in of_pools if on_demand is not False for label in labels}
    return frozenset({*(of_spot - others), *SPOT_SELECTIONS.items()})


def _labels(pool: DeclaredPool) -> Iterator[tuple[str, str]]:
    yield from ((key, value) for key, value in pool.own_labels.items() if isinstance(value, str))
    if isinstance(pool.label, str):
        yield POOL, pool.label
    if is_node_pool(pool.resource.type):
        yield NODE_POOL, pool.node_pool


def _of_operator(release: StackResource, of_spot: frozenset[tuple[str, str]]) -> Iterator[str]:
    """Yield why an operator starts no jobs: it is on spot, or, as Kueue, suspends those without a queue."""
    chart, values = chart_of(release), at(release.props, "values")
    if chart in _OPERATORS and _selects_spot(values, of_spot):
        yield f"the operator {chart} selects spot: while spot is sold out, nothing starts jobs or their machines"
    if chart in _OPERATORS and any(whole_number(at(values, *path)) == 0 for path in _REPLICAS):
        yield _STOPPED.format(name=f"the operator {chart}")
    configuration = str(at(values, "managerConfig", "controllerManagerConfigYaml"))
    if chart == "kueue" and _MANAGES_ALL.search(configuration) and TRAINING not in configuration:
        yield (
            "Kueue suspends jobs without a queue (`manageJobsWithoutQueueName: true`), so the ladder does not move them: leave out "
            f"namespaces with the label {TRAINING} in its `managedJobsNamespaceSelector`"
        )


def _of_deployment(deployment: StackResource) -> Iterator[str]:
    """Yield that an operator, or the fallback controller, has no pods."""
    name = text_at(deployment.props, "metadata", "name")
    if name in _DEPLOYED and whole_number(at(deployment.props, "spec", "replicas")) == 0:
        yield _STOPPED.format(name=f"Deployment {name}")


def _selects_spot(value: Value, of_spot: frozenset[tuple[str, str]], *, is_selecting: bool = False) -> bool:
    """Whether a node selector, or a required node affinity, anywhere in a chart's values leaves spot nodes only.

    The terms of an affinity are alternatives.
    """
    if is_list(value):
        return any(_selects_spot(each, of_spot, is_selecting=is_selecting) for each in value)
    if not is_object(value):
        return False
    terms = known_items(value, "nodeSelectorTerms")
    if terms:
        return all(_selects_spot(each, of_spot, is_selecting=is_selecting) for each in terms)
    key, values = str(value.get("key")), known_items(value, "values")
    selects_here = is_selecting and (
        any((name, wanted) in of_spot for name, wanted in value.items() if isinstance(wanted, str))
        or (
            value.get("operator") == "In"
            and bool(values)
            and all((key, str(each)) in of_spot for each in values)
        )
    )
    return selects_here or any(
        _selects_spot(each, of_spot, is_selecting=is_selecting or name in _SELECTING)
        for name, each in value.items()
        if not name.startswith("preferred")
    )
