"""CEL expressions for how the pods of a template are placed beside each other: whether no two of them share a node.

They express `one_per_node` of `scheduling.reachability.shape.Shape`, as `policies.program.jobs.pod_templates` and
`policies.program.jobs` read it. What is not certain, such as a selector with expressions, counts as no such rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.admission.expressions import text
from holdfast.components.admission.shape_checks import child_job_pods
from holdfast.scheduling.labels import (
    EXCLUSIVE_TOPOLOGY,
    HOSTNAME,
    JOBSET_NAME,
    RAY_GROUP,
    RAY_NODE_TYPE,
    RAY_WORKER,
    REPLICATED_JOB,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.admission.job_expressions import JobKind

_SPEC: Final = "variables.specs[i]"
_ITEM: Final = "variables.items[i]"
#: Each of them makes it uncertain that a term is about the pods of its own template.
_NARROWING: Final = ("namespaces", "matchLabelKeys", "mismatchLabelKeys")


def one_per_node(kind: JobKind, labels: Sequence[str], *others: str) -> str:
    """Return for each template that follows whether no two of its pods share a node.

    `labels` are expressions for the labels that the kind's operator sets on the pods of item `i`, each in place of those after
    it. `others` are further conditions on the item, each of which is enough.
    """
    ways = (_repels_itself(kind, labels), _takes_host_ports(), *others)
    return f"variables.following.map(i, {' || '.join(f'({each})' for each in ways)})"


def _repels_itself(kind: JobKind, labels: Sequence[str]) -> str:
    """Return whether a term of the required anti-affinity between nodes selects the pods of the template itself."""
    required = f"{_SPEC}.?affinity.?podAntiAffinity.?requiredDuringSchedulingIgnoredDuringExecution"
    own = f"{kind.template_of(_ITEM)}.?metadata.?labels"
    selector = "t.?labelSelector"
    empty = [*(f"t.?{field}" for field in _NARROWING), f"{selector}.?matchExpressions"]
    certain = " && ".join(f"size({each}.orValue([])) == 0" for each in empty)
    first, *others = (f"{each}[?k]" for each in (*labels, own))
    label = first + "".join(f".or({each})" for each in others)
    selects = f"{selector}.?matchLabels.orValue({{}}).all(k, {label} == {selector}.?matchLabels[?k])"
    return (
        f'{required}.orValue([]).exists(t, t.?topologyKey.orValue("") == {text(HOSTNAME)} && '
        f"{selector}.hasValue() && !t.?namespaceSelector.hasValue() && {certain} && {selects})"
    )


def _takes_host_ports() -> str:
    """Return whether a container takes a port of its node; with the node's network it takes all that it lists."""
    ports = "c.?ports.orValue([])"
    takes = f"p.?hostPort.orValue(0) > 0 || {_SPEC}.?hostNetwork.orValue(false)"
    return f"{_SPEC}.?containers.orValue([]).exists(c, {ports}.exists(p, {takes}))"


def jobset_labels(kind: JobKind) -> Sequence[str]:
    """Return the labels that JobSet sets on all pods of item `i` alike."""
    return [_labels({JOBSET_NAME: "object.metadata.name", REPLICATED_JOB: f"{_ITEM}.{kind.name}"})]


def jobset_exclusive() -> str:
    """Return whether JobSet gives each child Job of item `i` a node for itself, and the Job has one pod.

    The annotation of the item replaces that of the JobSet.
    """
    key = text(EXCLUSIVE_TOPOLOGY)
    of_all = f'object.metadata.?annotations[?{key}].orValue("")'
    topology = f"{_ITEM}.?template.?metadata.?annotations[?{key}].orValue({of_all})"
    return f"{topology} == {text(HOSTNAME)} && {child_job_pods(_ITEM)} == 1"


def rayjob_labels(kind: JobKind) -> Sequence[str]:
    """Return the labels that KubeRay sets on all workers of item `i` alike: its own, and those of the group.

    (v1.6.2, `labelPod` and `mergeLabels` in ray-operator/controllers/ray/common/pod.go)
    """
    return [_labels({RAY_GROUP: f"{_ITEM}.{kind.name}", RAY_NODE_TYPE: text(RAY_WORKER)}), f"{_ITEM}.?labels"]


def _labels(values: Mapping[str, str]) -> str:
    # Without `dyn` the type checker does not take them for the labels of a template.
    return f"{{{', '.join(f'{text(key)}: dyn({value})' for key, value in values.items())}}}"
