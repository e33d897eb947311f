"""The resource group that contains all resources of a stack on Azure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.resources import ResourceGroup

from pulumi_holdfast.kubernetes.ordering import tied_to


@dataclass(frozen=True, kw_only=True)
class StackResourceGroupArgs:
    """The group's name and location. If `protected`, the group cannot be deleted."""

    group_name: str
    location: str
    protected: bool
    tags: Mapping[str, str] | None = None


class StackResourceGroup(ComponentResource):
    """The stack's own resource group (`holdfast:index:StackResourceGroup`).

    Creates the group. `group_name` is known on preview; resources that use it are created after the group and
    deleted before it.
    """

    group_name: Output[str]

    def __init__(self, name: str, args: StackResourceGroupArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:StackResourceGroup", name, None, opts)
        group = ResourceGroup(
            f"{name}-group",
            resource_group_name=args.group_name,
            location=args.location,
            tags=args.tags,
            opts=ResourceOptions(parent=self, protect=True if args.protected else None),
        )
        self.group_name = tied_to(Output.from_input(args.group_name), [group])
        self.register_outputs({"group_name": self.group_name})
