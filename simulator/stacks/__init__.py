"""A stack of this project, with everything it needs on this machine."""

from holdfast.simulator.stacks.stack import Stack
from holdfast.simulator.stacks.surroundings import Surroundings

__all__ = ["Stack", "Surroundings"]
