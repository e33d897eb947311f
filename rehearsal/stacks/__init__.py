"""A stack of this project, with everything it needs on this machine."""

from rehearsal.stacks.stack import Stack
from rehearsal.stacks.surroundings import Surroundings

__all__ = ["Stack", "Surroundings"]
