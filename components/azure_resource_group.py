"""The resource group that everything of a stack on Azure is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.resources import ResourceGroup

from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class StackResourceGroupArgs:
    """The group's name in the subscription, and where what Azure knows of it is kept. `protected`: it is not deleted."""

    group_name: str
    location: str
    protected: bool
    tags: Mapping[str, str] | None = None


class StackResourceGroup(ComponentResource):
    """A resource group of the stack's own.

    Creates the group. `group_name` is its name, known on preview and tied to it: what is in the group is made after it,
    and gone before.
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
