"""A stack of this project with its environment on this machine."""

from holdfast.simulator.stacks.stack import Stack, StackEnvironment

__all__ = ["Stack", "StackEnvironment"]
