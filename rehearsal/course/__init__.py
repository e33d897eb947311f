"""The whole life of a stack, rehearsed: planned, made, used, read back and removed."""

from rehearsal.course.running import Course

__all__ = ["Course"]
