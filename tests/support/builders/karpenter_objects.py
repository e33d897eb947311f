"""Node classes and NodePools of Karpenter as objects, and what an API server would store of them."""

import json
from typing import cast

from pulumi_holdfast.kubernetes.karpenter_pool import NodeClass
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.inputs import mapping, value


def class_object(made: NodeClass, name: str = "pool", /, **changes: object) -> Json:
    """A node class; `changes` replace fields of its spec."""
    spec = {**made.spec, **changes}
    return cast(
        "Json", {"apiVersion": made.api_version, "kind": made.kind, "metadata": {"name": name}, "spec": spec}
    )


def pool_object(spec: Json, name: str = "pool") -> Json:
    """A NodePool."""
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def stored_spec(client: KubeClient, document: Json) -> Json:
    """The spec that the API server would store, by a dry run."""
    return mapping(client.apply(document, field_manager="tests", dry_run=True), "spec")


def stored_otherwise(client: KubeClient, spec: Json) -> list[str]:
    """The parts of a NodePool's spec that the API server would store otherwise than they are written."""
    kept = stored_spec(client, pool_object(spec))
    parts = (("disruption",), ("limits",), ("template", "spec"), ("template", "metadata", "labels"))
    return [".".join(path) for path in parts if value(kept, *path) != written(value(spec, *path))]


def written(part: object) -> object:
    """A part as JSON: tuples are lists."""
    return json.loads(json.dumps(part))
