"""What the platform does, played on a running one: the demo and the cluster tests share these scenes."""

from rehearsal.scenes.demo import demo

__all__ = ["demo"]
