"""A stack of this project with its environment on this machine."""

from pulumi_holdfast.rehearsal.stacks.stack import Stack, StackEnvironment

__all__ = ["Stack", "StackEnvironment"]
