"""The stack of another cluster, as a program reads it with a StackReference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

if TYPE_CHECKING:
    from collections.abc import Mapping


class OtherStack:
    """Stands for `pulumi.StackReference`: every reference is to a stack with these outputs. `read` are the full names."""

    def __init__(self, outputs: Mapping[str, object]) -> None:
        self._outputs = outputs
        self.read: list[str] = []
        self.name = ""

    def __call__(
        self, name: str, stack_name: str | None = None, opts: pulumi.ResourceOptions | None = None
    ) -> OtherStack:
        """Return the reference."""
        self.name = stack_name or name
        self.read.append(self.name)
        return self

    def get_output(self, name: str) -> pulumi.Output[object]:
        """An output, None without one of this name."""
        return pulumi.Output.from_input(self._outputs.get(name))

    require_output = get_output
