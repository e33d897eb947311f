"""Reads what decides of a NodePool's nodes beside its requirements.

Of its node class, what it reserves on nodes and in which zones it has subnets; of itself, whether nodes have fabric adapters and how
long they live.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import EFA_NODE, EFA_NODE_VALUE
from pulumi_holdfast.ladder.quantities import DurationError, parse_duration
from pulumi_holdfast.ladder.reachability.machine_capacity import KubeletSettings
from pulumi_holdfast.ladder.reachability.messages import NO_AUTO_MODE, NO_IMAGE, MessageTemplate
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner
from pulumi_holdfast.program.clusters import cluster_of, clusters_of, is_one_cluster
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.resources import (
    RELEASE,
    StackResource,
    Value,
    at,
    chart_of,
    cpu_millis,
    known_items,
    memory_mib,
    of_type,
    once,
    text_at,
    whole_number,
)

#: The API group of a NodePool's node class → what makes its nodes, and on which cloud.
NODE_CLASSES: Final = {
    "karpenter.k8s.aws": (Provisioner.EKS, "aws"),
    "eks.amazonaws.com": (Provisioner.AUTO, "aws"),
    "karpenter.azure.com": (Provisioner.NAP, "azure"),
    "karpenter.kwok.sh": (Provisioner.LOCAL, "local"),
}
#: The chart of EFA's device plugin.
_EFA_PLUGIN: Final = "aws-efa-k8s-device-plugin"
#: Jobs on nodes that live shorter than this restart so often that they may never end.
_SHORT_LIFE: Final = timedelta(hours=1)
_AUTO_MODE: Final = "eks.amazonaws.com"
#: The node class that clouds make themselves.
_MADE_BY_CLOUD: Final = "default"
#: The last minor version of Kubernetes 1 with images of Amazon Linux 2.
_LAST_OF_AL2: Final = 32
_POLICY: Final = "minValuesPolicy"
_SHARE: Final = "vmMemoryOverheadPercent"
#: In scripts that change what the kubelet offers to pods: its settings, nodeadm's, and Bottlerocket's.
_KUBELET: Final = re.compile(r"(?i)kubelet|max-?pods|reserved|evict|taint|node-?labels|poweroff|shutdown")


def is_on_aws(node_pool: StackResource) -> bool:
    """Whether its node class is that of Karpenter's AWS provider."""
    return at(node_pool.props, "spec", "template", "spec", "nodeClassRef", "group") == "karpenter.k8s.aws"


@once
def _node_classes(
    resources: Sequence[StackResource],
) -> Mapping[tuple[str, str], Mapping[str | Unknown, StackResource]]:
    """Return the stack's node classes by their API group and kind, and by name."""
    found: dict[tuple[str, str], dict[str | Unknown, StackResource]] = {}
    for each in resources:
        group, _, kind = each.type.removeprefix("kubernetes:").partition("/")
        if group in NODE_CLASSES:
            named = text_at(each.props, "metadata", "name") or each.logical_name
            found.setdefault((group, kind.rpartition(":")[2]), {})[named] = each
    return found


def class_of(node_pool: StackResource, resources: Sequence[StackResource]) -> StackResource | None:
    """Return the node class that a NodePool names; None if the program does not make it."""
    group, kind, name = _reference(node_pool)
    return _node_classes(resources).get((group, kind), {}).get(name) if group and kind else None


def faults_of_class(
    node_pool: StackResource, node_class: StackResource, resources: Sequence[StackResource]
) -> Iterator[MessageTemplate]:
    """Yield why Karpenter makes no node of a class at all."""
    aliases = [str(at(each, "alias")) for each in known_items(node_class.props, "spec", "amiSelectorTerms")]
    version = next((at(each.props, "version") for each in clusters_of(node_pool, "aws", resources)), None)
    minor = re.fullmatch(r"1\.(\d+)", version) if isinstance(version, str) else None
    are_old = aliases and all(each.startswith("al2@") for each in aliases)
    if are_old and minor is not None and int(minor[1]) > _LAST_OF_AL2:
        yield NO_IMAGE.filled(name=node_class.logical_name, version=minor[0])


def missing_class(node_pool: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield that Karpenter makes no node, if the stack has node classes, but not the one that the NodePool names."""
    group, kind, name = _reference(node_pool)
    made = _node_classes(resources).get((group, kind), {})
    if not (group and kind and name) or {name, UNKNOWN} & made.keys():
        return
    # EKS Auto Mode, unless its own pools are off, and AKS make a class of this name themselves.
    if name == _MADE_BY_CLOUD and not is_on_aws(node_pool):
        clusters = clusters_of(node_pool, "aws", resources)
        if any(at(each.props, "computeConfig", "nodePools") in (None, []) for each in clusters):
            yield f"it names the {kind} {name!r}, which EKS makes with its own pools only, and `computeConfig.nodePools` names none"
    elif made:
        yield f"it names the {kind} {name!r}, and this program makes others, but not that one"


def without_auto_mode(
    node_pool: StackResource, resources: Sequence[StackResource]
) -> Iterator[MessageTemplate]:
    """Yield that nothing makes the nodes of a NodePool for EKS Auto Mode, because its cluster does not have it on."""
    if _reference(node_pool)[0] != _AUTO_MODE:
        return
    for cluster in clusters_of(node_pool, "aws", resources):
        if at(cluster.props, "computeConfig", "enabled") in (None, False):
            yield NO_AUTO_MODE.filled(cluster=cluster.logical_name)


def _reference(node_pool: StackResource) -> tuple[str, str, str]:
    reference = at(node_pool.props, "spec", "template", "spec", "nodeClassRef")
    found = (text_at(reference, part) for part in ("group", "kind", "name"))
    group, kind, name = (each if isinstance(each, str) else "" for each in found)
    return group, kind, name


def kubelet_of(
    node_pool: StackResource, node_class: StackResource | None, resources: Sequence[StackResource]
) -> KubeletSettings | None:
    """Return what an EC2NodeClass, and the chart of Karpenter, set of what pods may use of nodes; None elsewhere."""
    if not is_on_aws(node_pool):
        return None
    kubelet = at(node_class.props, "spec", "kubelet") if node_class is not None else None
    kube, system = (
        (cpu_millis(at(kubelet, field, "cpu")), memory_mib(at(kubelet, field, "memory")))
        for field in ("kubeReserved", "systemReserved")
    )
    most, share = whole_number(at(kubelet, "maxPods")), _vm_share(resources, cluster_of(node_pool, resources))
    return KubeletSettings(
        max_pods=most if isinstance(most, int) else None,
        kube=(_known(kube[0]), _known(kube[1])),
        system=(_known(system[0]) or 0, _known(system[1]) or 0),
        vm_share=share if isinstance(share, float) else KubeletSettings().vm_share,
    )


def _known(value: int | Unknown | None) -> int | None:
    return None if value is UNKNOWN else value


def relaxes_min_values(node_pool: StackResource, resources: Sequence[StackResource]) -> bool:
    """Whether Karpenter, by its chart, makes nodes of fewer types where `minValues` cannot be met."""
    return _setting(resources, cluster_of(node_pool, resources), _POLICY) == "BestEffort"


def _vm_share(resources: Sequence[StackResource], cluster: str) -> float | Unknown | None:
    """Return the part of a machine's memory that the chart of Karpenter tells it to take for lost."""
    share = _setting(resources, cluster, _SHARE)
    return None if share is None else float(share) if isinstance(share, int | float) else UNKNOWN


@once
def _setting(resources: Sequence[StackResource], cluster: str, name: str) -> Value:
    """Return a setting in the values of the chart of Karpenter; None if it has none."""
    for each in of_type(resources, RELEASE):
        is_karpenter = chart_of(each) == "karpenter"
        if is_karpenter and is_one_cluster(resources, cluster, cluster_of(each, resources)) is True:
            found = at(each.props, "values", "settings", name)
            if found is not None:
                return found
    return None


def open_settings(
    node_pool: StackResource, node_class: StackResource | None, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what is set of the nodes of a class, and not judged."""
    if _vm_share(resources, cluster_of(node_pool, resources)) is UNKNOWN:
        yield f"what the chart of Karpenter sets as {_SHARE} is not known"
    if node_class is None:
        return
    yield from unread(node_class)
    yield from open_user_data(node_class, at(node_class.declared, "spec", "userData"))
    kubelet = at(node_class.props, "spec", "kubelet")
    reserved = [
        at(kubelet, kind, part) for kind in ("kubeReserved", "systemReserved") for part in ("cpu", "memory")
    ]
    if kubelet is UNKNOWN or UNKNOWN in reserved:
        yield f"what the kubelet settings of {node_class.logical_name!r} leave to pods is not known"


def open_user_data(resource: StackResource, data: Value) -> Iterator[str]:
    """Yield that a script which machines run at their start may change what they offer to pods."""
    if data is UNKNOWN:
        yield f"the userData of {resource.logical_name!r} is not known yet"
    elif isinstance(data, str) and _KUBELET.search(_decoded(data)):
        yield f"what the userData of {resource.logical_name!r} sets of the kubelet is not judged"


def _decoded(data: str) -> str:
    try:
        return b64decode(data, validate=True).decode()
    except ValueError:
        return data


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
