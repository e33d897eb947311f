"""What marks everything that this program made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

import pulumi

from holdfast.infra import naming

if TYPE_CHECKING:
    from pulumi import Input

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
STACK: Final = "holdfast.dev/stack"

#: What belongs to the whole account, whichever stack makes it first.
_OF_THE_ACCOUNT: Final = frozenset({"aws:iam/serviceLinkedRole:ServiceLinkedRole"})


def stack_labels(stack: str) -> Mapping[str, str]:
    """The labels of every Kubernetes object of a stack."""
    return {MANAGED_BY: "holdfast", STACK: naming.as_label_value(stack)}


def label_kubernetes_objects(marks: Mapping[str, str]) -> None:
    """Put labels on every Kubernetes object that is registered from here on; an object's own labels win.

    At the stack, because a component that took them as an argument could forget one of its children.
    """

    def mark(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        metadata = args.props.get("metadata")
        if not args.type_.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        return pulumi.ResourceTransformationResult(
            props={
                **args.props,
                "metadata": with_labels(cast("Mapping[str, Input[object]]", metadata), marks),
            },
            opts=args.opts,
        )

    pulumi.runtime.register_stack_transformation(mark)


def tag_aws_resources(marks: Mapping[str, str]) -> None:
    """Put tags on every AWS resource, of those that take tags, which is registered from here on; its own win."""

    def mark(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        # The SDK gives a resource every input there is, and None to those that the program left out.
        if not args.type_.startswith("aws:") or "tags" not in args.props or args.type_ in _OF_THE_ACCOUNT:
            return None
        own = cast("Mapping[str, Input[str]]", args.props["tags"] or {})
        return pulumi.ResourceTransformationResult(
            props={**args.props, "tags": {**marks, **own}}, opts=args.opts
        )

    pulumi.runtime.register_stack_transformation(mark)


def label_google_resources(stack: str) -> None:
    """Put labels on every Google Cloud resource, of those that take labels, registered from here on; its own win.

    Their keys and values hold letters, digits, `_` and `-` alone.
    """
    marks = {"managed-by": "holdfast", "holdfast-stack": naming.as_google_label_value(stack)}

    def mark(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        field = next((name for name in ("resource_labels", "labels") if name in args.props), None)
        if not args.type_.startswith("gcp:") or field is None:
            return None
        own = cast("Mapping[str, Input[str]]", args.props[field] or {})
        return pulumi.ResourceTransformationResult(
            props={**args.props, field: {**marks, **own}}, opts=args.opts
        )

    pulumi.runtime.register_stack_transformation(mark)


def azure_tags(stack: str) -> Mapping[str, str]:
    """The tags of a stack's Azure resources. Azure takes no `/` in a tag's name."""
    return {"managed-by": "holdfast", "holdfast-stack": stack}


def tag_azure_resources(marks: Mapping[str, str]) -> None:
    """Put tags on every Azure resource, of those that take tags, which is registered from here on; its own win."""

    def mark(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.type_.startswith("azure-native:") or "tags" not in args.props:
            return None
        own = cast("Mapping[str, Input[str]]", args.props["tags"] or {})
        return pulumi.ResourceTransformationResult(
            props={**args.props, "tags": {**marks, **own}}, opts=args.opts
        )

    pulumi.runtime.register_stack_transformation(mark)


def with_labels(
    metadata: Mapping[str, Input[object]], marks: Mapping[str, str]
) -> Mapping[str, Input[object]]:
    """An object's metadata with these labels beside its own."""
    own = cast("Mapping[str, Input[str]]", metadata.get("labels") or {})
    return {**metadata, "labels": {**marks, **own}}
