"""Plays a cloud's cluster autoscaler: nodes come for pods that find no room, and go when nothing runs on them.

Not played: pods' rules about other pods (affinity, spreading) and volumes, under-used nodes that are emptied, and the
minutes that a machine takes to start.
"""

from holdfast.simulator.cluster_autoscaler.autoscaler import Autoscaler

__all__ = ["Autoscaler"]
