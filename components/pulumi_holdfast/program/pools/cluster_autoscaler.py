"""Reads whether Cluster Autoscaler adds nodes to a managed node group of EKS, as far as a program shows it.

Another program may run Cluster Autoscaler, or grant its role more, so nothing here stops a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.resources import (
    RELEASE,
    StackResource,
    at,
    chart_of,
    count,
    items_at,
    of_type,
    of_types,
    text_at,
)

_CHART: Final = "cluster-autoscaler"
_POLICIES: Final = re.compile(r"aws:iam/(?:policy|rolePolicy|userPolicy):\w+")
_TAG: Final = "aws:autoscaling/tag:Tag"
_TEMPLATE_TAG: Final = "k8s.io/cluster-autoscaler/node-template/"
_READS_GROUPS: Final = re.compile(r"eks:(?:\*|Describe(?:\*|Nodegroup))")
#: Its arguments by which it finds node groups, beside what the chart has values for.
_FINDING: Final = ("nodes", "node-group-auto-discovery")


def is_fixed(group: StackResource) -> bool:
    """Whether a node group always has all the nodes that it may have, so that nothing has to add any."""
    scaling = at(group.props, "scalingConfig")
    least, most = (count(at(scaling, field)) for field in ("minSize", "maxSize"))
    return isinstance(least, int) and least > 0 and least == most


def never_scaled(group: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield why Cluster Autoscaler may add no node to a group."""
    if is_fixed(group):
        return
    yield from _from_zero(group, resources)
    charts = [
        each
        for each in of_type(resources, RELEASE)
        if chart_of(each) == _CHART and is_same_cluster(each, group, resources) is not False
    ]
    if charts and not any(_may_find(each, group) for each in charts):
        yield (
            f"by the values of its chart {charts[0].logical_name!r}, Cluster Autoscaler does not find it: name its cluster in "
            "`autoDiscovery.clusterName`"
        )


def _may_find(release: StackResource, group: StackResource) -> bool:
    """Whether the values of a chart may find a group: by its cluster or other tags, or by the name of its Auto Scaling group.

    EKS names that `eks-`, the group's name, and an id that only EKS knows.
    """
    values = at(release.props, "values")
    cluster = text_at(values, "autoDiscovery", "clusterName")
    own = text_at(group.props, "clusterName")
    listed = items_at(values, "autoscalingGroups")
    names = [UNKNOWN] if listed is UNKNOWN else [text_at(each, "name") for each in listed]
    named = text_at(group.props, "nodeGroupName")
    return (
        any(at(values, "extraArgs", each) is not None for each in _FINDING)
        or bool(at(values, "autoDiscovery", "tags"))
        or (cluster is not None and (UNKNOWN in (cluster, own) or cluster == own))
        or any(
            UNKNOWN in (each, named) or named is None or str(each).startswith(f"eks-{named}-")
            for each in names
        )
        or (cluster is None and not names)
    )


def _from_zero(group: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield that nothing tells Cluster Autoscaler the labels of the nodes of a group that has none yet.

    It reads them from the group, if its role may, or from tags of the Auto Scaling group. Only a role of the program is judged.
    """
    scaling = at(group.props, "scalingConfig")
    documents = [str(at(each.props, "policy")) for each in of_types(resources, _POLICIES)]
    scales = any("autoscaling:SetDesiredCapacity" in each for each in documents)
    reads = any(_READS_GROUPS.search(each) for each in documents)
    tagged = any(_TEMPLATE_TAG in str(at(each.props, "tag", "key")) for each in of_type(resources, _TAG))
    is_empty = not (count(at(scaling, "minSize")) or count(at(scaling, "desiredSize")))
    if is_empty and scales and not reads and not tagged and at(group.props, "labels"):
        yield (
            "it starts without nodes, and the role of Cluster Autoscaler in this program may not read its labels (eks:DescribeNodegroup), "
            f"nor do tags of its Auto Scaling group have them ({_TEMPLATE_TAG}…)"
        )
