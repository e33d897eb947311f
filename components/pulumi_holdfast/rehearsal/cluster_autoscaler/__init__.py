"""Simulates a cloud's cluster autoscaler: it adds nodes for unschedulable pods, and removes empty nodes.

Not simulated: pod affinity, topology spread constraints, volumes, consolidation of under-used nodes, and the minutes
that a machine takes to start.
"""

from pulumi_holdfast.rehearsal.cluster_autoscaler.autoscaler import Autoscaler

__all__ = ["Autoscaler"]
