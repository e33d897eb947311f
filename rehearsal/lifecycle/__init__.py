"""The whole life of a stack, rehearsed: planned, made, used, read back and removed."""

from holdfast.rehearsal.lifecycle.run import Course

__all__ = ["Course"]
