"""What the platform does, played on a running one: the demo and the cluster tests share these scenes."""

from holdfast.rehearsal.scenarios.demo import demo

__all__ = ["demo"]
