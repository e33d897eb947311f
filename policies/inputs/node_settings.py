"""Reads what a NodePool itself decides of its nodes: whether they have fabric adapters, and how long they live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from holdfast.policies.inputs.node_classes import is_on_aws
from holdfast.policies.resources import RELEASE, StackResource, at, chart_of, of_type, text_at
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import EFA_NODE, EFA_NODE_VALUE
from holdfast.scheduling.quantities import DurationError, parse_duration

#: The chart of EFA's device plugin.
_EFA_PLUGIN: Final = "aws-efa-k8s-device-plugin"
#: Jobs on nodes that live shorter than this restart so often that they may never end.
_SHORT_LIFE: Final = timedelta(hours=1)


def fabric_adapters(node_pool: StackResource, resources: Sequence[StackResource]) -> bool | Unknown:
    """Return whether its nodes have the fabric adapters of their machines.

    On AWS, Karpenter attaches them for pods that request some; what makes them a resource of the node is EFA's device plugin. Where
    the program installs that by its chart on nodes with our label, the label decides.
    """
    label = text_at(node_pool.props, "spec", "template", "metadata", "labels", EFA_NODE)
    if label == EFA_NODE_VALUE or not is_on_aws(node_pool):
        return label == EFA_NODE_VALUE
    decides = any(
        chart_of(each) == _EFA_PLUGIN and EFA_NODE in str(at(each.props, "values"))
        for each in of_type(resources, RELEASE)
    )
    return False if decides and label is not UNKNOWN else UNKNOWN


def short_life(node_pool: StackResource) -> Iterator[str]:
    """Yield that its nodes end so soon that jobs on them may never end."""
    expiry = text_at(node_pool.props, "spec", "template", "spec", "expireAfter")
    try:
        is_short = isinstance(expiry, str) and parse_duration(expiry) < _SHORT_LIFE
    except DurationError:
        return
    if is_short:
        yield f"its nodes live {expiry} (`expireAfter`): whether jobs that restart so often ever end is not known"
