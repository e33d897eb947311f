"""Labels and tags that mark every resource of a training cluster as managed by Holdfast.

A TrainingCluster has these transformations in its options, and its children inherit them: a component that took labels as an
argument could forget one of its children. They are `transformations` and not `transforms`: a transform gets only the inputs that a
program sets, which do not show whether a resource takes tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

import pulumi
from pulumi import Input, ResourceTransformation

from pulumi_holdfast.config import naming

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
STACK: Final = "holdfast.dev/stack"

#: Resources that belong to the account. The first stack creates them, others share them.
_ACCOUNT_RESOURCES: Final = frozenset({"aws:iam/serviceLinkedRole:ServiceLinkedRole"})

#: The label of Google Cloud's resources, and the tag of Azure's, with the name of their stack.
STACK_LABEL: Final = "holdfast-stack"

_NODE_POOL: Final = "gcp:container/nodePool:NodePool"

_Props: TypeAlias = Mapping[str, object]


def stack_labels(stack: str) -> Mapping[str, str]:
    """The labels of every Kubernetes object of an environment, and the tags of its AWS resources."""
    return {MANAGED_BY: "holdfast", STACK: naming.as_label_value(stack)}


def environment_tags(stack: str) -> Mapping[str, str]:
    """The tags of an environment's Azure resources. Azure allows no `/` in a tag name."""
    return {"managed-by": "holdfast", STACK_LABEL: stack}


def kubernetes_labels(labels: Mapping[str, str]) -> ResourceTransformation:
    """Add labels to every Kubernetes object; an object's own labels take precedence."""

    def label(kind: str, props: _Props) -> _Props | None:
        metadata = props.get("metadata")
        if not kind.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        return {"metadata": with_labels(cast("Mapping[str, Input[object]]", metadata), labels)}

    return transformation(label)


def aws_tags(tags: Mapping[str, str]) -> ResourceTransformation:
    """Add tags to every AWS resource with tags; a resource's own tags take precedence."""

    def tag(kind: str, props: _Props) -> _Props | None:
        return _tagged(props, tags) if kind.startswith("aws:") and kind not in _ACCOUNT_RESOURCES else None

    return transformation(tag)


def azure_tags(tags: Mapping[str, str]) -> ResourceTransformation:
    """Add tags to every Azure resource with tags; a resource's own tags take precedence."""

    def tag(kind: str, props: _Props) -> _Props | None:
        return _tagged(props, tags) if kind.startswith("azure-native:") else None

    return transformation(tag)


def environment_labels(stack: str) -> Mapping[str, str]:
    """The labels of an environment's Google Cloud resources. Google Cloud allows letters, digits, `_` and `-` in keys and values."""
    return {"managed-by": "holdfast", STACK_LABEL: naming.as_google_label_value(stack)}


def google_labels(labels: Mapping[str, str]) -> ResourceTransformation:
    """Add labels to every Google Cloud resource with labels, and to the machines of node pools; its own take precedence."""

    def label(kind: str, props: _Props) -> _Props | None:
        if not kind.startswith("gcp:"):
            return None
        if kind == _NODE_POOL:
            # GKE puts them on machines and their disks.
            config = cast("_Props", props["node_config"])
            return {"node_config": {**config, "resource_labels": {**labels}}}
        return _tagged(props, labels, "resource_labels") or _tagged(props, labels, "labels")

    return transformation(label)


def with_labels(
    metadata: Mapping[str, Input[object]], labels: Mapping[str, str]
) -> Mapping[str, Input[object]]:
    """An object's metadata with these labels added; its own take precedence."""
    own = cast("Mapping[str, Input[str]]", metadata.get("labels") or {})
    return {**metadata, "labels": {**labels, **own}}


def _tagged(props: _Props, tags: Mapping[str, str], field: str = "tags") -> _Props | None:
    # The SDK passes every input a resource has; the value is None for inputs that the program leaves out.
    if field not in props:
        return None
    return {field: {**tags, **cast("Mapping[str, Input[str]]", props[field] or {})}}


def transformation(change: Callable[[str, _Props], _Props | None]) -> ResourceTransformation:
    """A transformation by a function that returns the properties to replace, None for none."""

    def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        changed = change(args.type_, cast("_Props", args.props))
        if changed is None:
            return None
        return pulumi.ResourceTransformationResult(props={**args.props, **changed}, opts=args.opts)

    return transform


def with_transformations(
    opts: pulumi.ResourceOptions | None, *transformations: ResourceTransformation
) -> pulumi.ResourceOptions:
    """A component's options with transformations that its children inherit, after those of its user."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[*transformations]))
