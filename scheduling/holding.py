"""Where the fallback controller works, and where it holds capacity for a job that is about to move up."""

from typing import Final

#: The controller's own namespace; there its service account, what its pods are known by, and the lease of the one that leads.
CONTROLLER_NAMESPACE: Final = "holdfast-system"
CONTROLLER: Final = "fallback-controller"
LEASE: Final = "holdfast-fallback"

#: Where placeholder pods stand: no quota of a team's counts them.
HOLDING_NAMESPACE: Final = "holdfast-holding"

#: The priority class of placeholder pods. Below every job, so that the pods they stand in for push them out; but no lower:
#: below -10 GKE's autoscaler buys no node for a pod, and Karpenter takes a node with such pods alone for empty.
HOLDING_PRIORITY_CLASS: Final = "holdfast-holding"
HOLDING_PRIORITY: Final = -10
