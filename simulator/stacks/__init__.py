"""A stack of this project, with everything it needs on this machine."""

from holdfast.simulator.stacks.stack import Stack, StackEnvironment

__all__ = ["Stack", "StackEnvironment"]
