"""Settings that the pods of all operators share: system nodes, zone spread and image registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulumi import ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE, ZONE
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT

SYSTEM_NODE_SELECTOR: Final[Mapping[str, str]] = {SYSTEM: SYSTEM_VALUE}

# By key, because the taint's value differs between clouds. GKE's system nodes have no taint.
SYSTEM_TOLERATIONS: Final[Sequence[Json]] = ({"key": SYSTEM_TAINT.key, "operator": "Exists"},)

#: The priority class of operators: no pod of a training namespace may have one that high, so none preempts them.
SYSTEM_PRIORITY_CLASS: Final = "system-cluster-critical"


def allow_system_priority(name: str, namespace: str, opts: ResourceOptions) -> KubernetesObject:
    """Let the pods of a namespace have SYSTEM_PRIORITY_CLASS: GKE refuses it where no ResourceQuota says so."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": [SYSTEM_PRIORITY_CLASS]}
    return KubernetesObject(
        name,
        "v1",
        "ResourceQuota",
        {
            "metadata": {"name": SYSTEM_PRIORITY_CLASS, "namespace": namespace},
            "spec": {"hard": {"pods": "100"}, "scopeSelector": {"matchExpressions": [scope]}},
        },
        opts=opts,
    )


def spread_over_zones(labels: Mapping[str, str]) -> Json:
    """Return the affinity that puts pods with these labels into different zones.

    It is a preference: with a requirement, two replicas on two nodes could not be updated, because the third
    pod of a rolling update would have no node.
    """
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}},
                }
            ]
        }
    }


def image(mirror: str | None, repository: str) -> str:
    """Return an image's repository without a tag, from the project's own registry or from a mirror.

    A mirror (`registry.example.com/holdfast`) replaces the registry's host: `quay.io/kuberay/operator`
    becomes `registry.example.com/holdfast/kuberay/operator`.
    """
    if mirror is None:
        return repository
    _, _, path = repository.partition("/")
    return f"{mirror.rstrip('/')}/{path}"
