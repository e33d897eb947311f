"""Reads the agents without which pods do not run on a node: its network, drivers of volumes and GPUs, and what removes its startup taints.

They are DaemonSets of the program, DaemonSets of others that it patches, and those that charts and EKS' add-ons make.
Of the latter two only what the program sets is known: where nothing places an agent, it is taken for granted that it runs everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.node_selection import matches
from pulumi_holdfast.ladder.reachability.shape import Shape
from pulumi_holdfast.ladder.taints import untolerated
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
from pulumi_holdfast.program.patches import is_patch
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import (
    RELEASE,
    StackResource,
    Value,
    at,
    chart_of,
    is_list,
    is_object,
    items_at,
    known_items,
    of_type,
    once,
    text_at,
)

DAEMON_SET: Final = "kubernetes:apps/v1:DaemonSet"
_ADD_ON: Final = "aws:eks/addon:Addon"
#: The image of NVIDIA's device plugin.
_GPU_PLUGIN: Final = re.compile(r"nvidia.*device-plugin")
_PLUGIN_CHART: Final = "nvidia-device-plugin"
#: The chart's defaults: its pods run where Node Feature Discovery, or a person, says that there are GPUs.
_PLUGIN_TOLERATIONS: Final = (
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
_PRESENT: Final = {
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "feature.node.kubernetes.io/cpu-model.vendor_id": "NVIDIA",
    "nvidia.com/gpu.present": "true",
}
_DISCOVERING: Final = frozenset({"node-feature-discovery", "gpu-operator", "gpu-feature-discovery"})
#: Agents of which one has to run on each node, by their names.
_NETWORK: Final = re.compile(
    r"aws-node|(?:amazon-|aws-)?vpc-cni|cilium|calico-node|antrea-agent|kube-flannel.*"
)
#: Agents each of which has to run on the nodes of pods that use it.
_NEEDED: Final = re.compile(r"kube-proxy|.*csi.*|.*pod-identity-agent|.*dra-driver.*")
#: Where charts and add-ons have what places the pods of their agents.
_OF_AGENT: Final = ("node", "agent", "daemonset", "daemonSet")
_PLACING: Final = ("nodeSelector", "affinity", "tolerations")
_ANYWHERE: Final = ({"operator": "Exists"},)


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """Pods of which one is on each node that they select: their shape as it is written, UNKNOWN if not all of it is known."""

    resource: StackResource
    name: str
    template: Value
    shape: Shape | Unknown

    def runs_on(self, facts: PoolFacts, machine: MachineCapacity) -> bool | Unknown:
        """Whether they run on nodes of this type; UNKNOWN also if what they request is not known."""
        if self.shape is UNKNOWN or facts.taints is UNKNOWN:
            return UNKNOWN
        if untolerated(facts.taints, self.shape.tolerations):
            return False
        return matches(self.shape, facts, machine)

    @property
    def offers_gpus(self) -> bool:
        """Whether it is NVIDIA's device plugin."""
        containers = items_at(self.template, "spec", "containers")
        images = [] if containers is UNKNOWN else [str(text_at(each, "image")) for each in containers]
        return any(_GPU_PLUGIN.search(each) for each in (self.name, *images))


@once
def daemon_sets(resources: Sequence[StackResource]) -> tuple[Daemon, ...]:
    """Return the DaemonSets of the program."""
    return tuple(
        _daemon(each, _own_name(each), at(each.props, "spec", "template"))
        for each in of_type(resources, DAEMON_SET)
    )


def missing_agents(pool: DeclaredPool, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield which agents do not run on the nodes of a pool, by what the program says of them."""
    agents, facts = _near(pool, _placed(resources), resources), pool.facts
    machines = () if facts.machines is UNKNOWN else facts.machines
    network = [each for each in agents if _NETWORK.fullmatch(each.name)]
    for group in (network, *([each] for each in agents if _NEEDED.fullmatch(each.name))):
        if group and not any(each.offers_gpus for each in group) and _miss_one(group, facts, machines):
            yield f"{_listed(group)} does not run on its nodes, by the selectors and tolerations that this program sets"
    for taint in known_items(pool.resource.props, "spec", "template", "spec", "startupTaints"):
        key = text_at(taint, "key")
        naming = [
            each
            for each in _near(pool, daemon_sets(resources), resources)
            if isinstance(key, str) and _names(each.resource.props, key)
        ]
        if naming and _miss_one(naming, facts, machines):
            yield f"{_listed(naming)}, which names its startup taint {key}, does not run on its nodes, so the taint may stay"


def missing_gpu_plugins(pool: DeclaredPool, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield that no device plugin of the program, one or more, runs on its nodes with GPUs, so that pods can request none."""
    if pool.provisioner.has_device_plugin:
        return
    made = [each for each in (*daemon_sets(resources), *_placed(resources)) if each.offers_gpus]
    plugins, facts = _near(pool, made, resources), pool.facts
    machines = [each for each in (() if facts.machines is UNKNOWN else facts.machines) if each.capacity.gpus]
    if machines and made and not plugins:
        yield f"{_listed(made)}, which offers GPUs to pods, runs in another cluster of this program, and none in this one"
    elif plugins and _miss_one(plugins, facts, machines):
        yield f"{_listed(plugins)}, which offers GPUs to pods, does not run on its nodes, by its selectors and tolerations"


def _near(pool: DeclaredPool, found: Sequence[Daemon], resources: Sequence[StackResource]) -> list[Daemon]:
    """Return those that may be in the cluster of a pool."""
    return [each for each in found if is_same_cluster(each.resource, pool.resource, resources) is not False]


def _miss_one(found: Sequence[Daemon], facts: PoolFacts, machines: Sequence[MachineCapacity]) -> bool:
    """Whether none of these runs on one of the machines."""
    return any(all(each.runs_on(facts, machine) is False for each in found) for machine in machines)


@once
def _placed(resources: Sequence[StackResource]) -> tuple[Daemon, ...]:
    """Return the agents that the program places, of its own DaemonSets those that pods need, of others' what it sets of them."""
    return (
        *(
            each
            for each in daemon_sets(resources)
            if _NEEDED.fullmatch(each.name) or _NETWORK.fullmatch(each.name)
        ),
        *(
            _daemon(each, _own_name(each), _template(at(each.props, "spec", "template", "spec")))
            for each in resources
            if is_patch(each, "DaemonSet") and _is_placed(at(each.props, "spec", "template", "spec"))
        ),
        *(
            _daemon(each, chart, _of_plugin_chart(values, resources))
            if chart == _PLUGIN_CHART
            else _daemon(each, chart, _template(found))
            for each, chart, values in _installed(resources)
            for found in [_of_agent(values)]
            if chart == _PLUGIN_CHART or _is_placed(found)
        ),
    )


def _installed(resources: Sequence[StackResource]) -> Iterator[tuple[StackResource, str, Value]]:
    """Yield the charts and add-ons of the program: their names and values."""
    for each in of_type(resources, RELEASE):
        yield each, chart_of(each), at(each.props, "values")
    for each in of_type(resources, _ADD_ON):
        text = at(each.props, "configurationValues")
        try:
            values = cast("Value", json.loads(text)) if isinstance(text, str) else None
        except ValueError:
            values = None
        yield each, str(at(each.props, "addonName")), values


def _of_agent(values: Value) -> Value:
    """Return what a chart's values set of its agent's pods."""
    return {
        key: next(
            (
                found
                for part in (*(at(values, name) for name in _OF_AGENT), values)
                if (found := at(part, key)) is not None
            ),
            None,
        )
        for key in _PLACING
    }


def _is_placed(spec: Value) -> bool:
    return any(at(spec, key) for key in _PLACING)


def _template(spec: Value) -> Value:
    """Return pods that tolerate everything, unless something else is set."""
    tolerations = at(spec, "tolerations")
    placed = {key: at(spec, key) for key in ("nodeSelector", "affinity")}
    return {
        "spec": {
            **placed,
            "tolerations": [*_ANYWHERE] if tolerations is None else tolerations,
            "containers": [],
        }
    }


def _of_plugin_chart(values: Value, resources: Sequence[StackResource]) -> Value:
    """Return the pods of NVIDIA's device plugin, as its chart makes them with these values."""
    tolerations, affinity = at(values, "tolerations"), at(values, "affinity")
    discovers = any(at(values, key, "enabled") is True for key in ("gfd", "nfd")) or any(
        chart in _DISCOVERING for _, chart, _ in _installed(resources)
    )
    present = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        for key, value in _PRESENT.items()
    ]
    by_default: Value = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": present}}}  # fmt: skip
    return {
        "spec": {
            "nodeSelector": at(values, "nodeSelector"),
            "affinity": affinity if affinity is not None or discovers else by_default,
            "tolerations": [*_PLUGIN_TOLERATIONS] if tolerations is None else tolerations,
            "containers": [{"name": _PLUGIN_CHART, "image": f"nvidia/{_PLUGIN_CHART}"}],
        }
    }


def _daemon(resource: StackResource, name: str, template: Value) -> Daemon:
    shape = PodTemplate(name=resource.logical_name, pods=1, template=template).written
    return Daemon(resource=resource, name=name, template=template, shape=shape)


def _own_name(resource: StackResource) -> str:
    name = text_at(resource.props, "metadata", "name")
    return name if isinstance(name, str) else resource.logical_name


def _listed(found: Sequence[Daemon]) -> str:
    return f"DaemonSet {', '.join(sorted({each.name for each in found}))}"


def _names(value: Value, text: str) -> bool:
    """Whether a text anywhere in a value contains this one."""
    if is_object(value):
        return any(text in key or _names(each, text) for key, each in value.items())
    if isinstance(value, str):
        return text in value
    return is_list(value) and any(_names(each, text) for each in value)
