"""Label and annotation keys: what job authors select by, and what the rules recognise."""

from enum import StrEnum
from typing import Final


class CapacityType(StrEnum):
    """How a pool's machines are bought, as Karpenter spells it; a pool has exactly one."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


# The single selector key that every tier of a ladder uses: JobSet merges selectors when it resumes a job, so a
# second key left over from a spot tier would make the on-demand tier unschedulable for ever.
POOL: Final = "holdfast.dev/pool"

# On a Namespace: jobs run here, so admission and the policies look at it.
TRAINING: Final = "holdfast.dev/training"
TRAINING_VALUE: Final = "true"

# The name of the one FallbackPolicy in each training namespace.
LADDER: Final = "ladder"

# On a JobSet or RayJob: it follows the ladder of its namespace ("true"), or is left as it was written ("false").
FOLLOWS: Final = "holdfast.dev/fallback"
FOLLOWS_VALUE: Final = "true"
STAYS_VALUE: Final = "false"

# Annotation on a job that follows: where it is on its ladder, written in the same update as what was done.
STATE: Final = "fallback.holdfast.dev/state"

# Annotation on a job that follows: what admission took out of the manifest, as JSON.
ORIGINAL: Final = "fallback.holdfast.dev/original"

# Annotation on a RayJob: one that failed by an eviction may be made anew under another name ("true").
RECREATE: Final = "fallback.holdfast.dev/recreate"

# Annotation on a Namespace: the volume claims, with commas between them, that its jobs may mount although they follow a
# ladder, since nothing ties these to a zone.
VOLUME_CLAIMS: Final = "holdfast.dev/volume-claims"

# On a node, as label and as taint: capacity that is held for the job of this uid, and for no other.
HELD_FOR: Final = "holdfast.dev/held-for"

# On the nodes that carry operators; they are not part of any pool.
SYSTEM: Final = "holdfast.dev/system"
SYSTEM_VALUE: Final = "true"

# Karpenter's own label, which users' manifests select spot by.
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
SPOT: Final = CapacityType.SPOT.value
ON_DEMAND: Final = CapacityType.ON_DEMAND.value

# GKE's own labels on its spot nodes, which users' manifests select spot by.
GKE_SPOT: Final = "cloud.google.com/gke-spot"
GKE_SPOT_VALUE: Final = "true"
GKE_PROVISIONING: Final = "cloud.google.com/gke-provisioning"

# AKS's own labels on its spot nodes, under node auto-provisioning and in scale sets alike; the first one is also the key
# of the taint that scale sets have.
AKS_SCALE_SET_PRIORITY: Final = "kubernetes.azure.com/scalesetpriority"
AKS_PRIORITY: Final = "kubernetes.azure.com/priority"
AKS_SPOT_VALUE: Final = "spot"

# On the nodes of a ComputeClass, and what pods select one by.
COMPUTE_CLASS: Final = "cloud.google.com/compute-class"

# What pods select capacity by, on any cloud, other than by a pool's name. All of them go when a pool is selected: one left
# over from a spot tier would make the on-demand tier unschedulable for ever.
CAPACITY_KEYS: Final = frozenset(
    {CAPACITY_TYPE, GKE_SPOT, GKE_PROVISIONING, COMPUTE_CLASS, AKS_SCALE_SET_PRIORITY, AKS_PRIORITY}
)

# Labels that clouds, Kubernetes and the makers of devices put on nodes by themselves, by the domain of their keys: what
# declares a pool does not know all of them. RE2 and Python read it alike.
GIVEN_LABEL_PATTERN: Final = (
    r"^([^/]*\.)?(kubernetes\.io|k8s\.io|x-k8s\.io|karpenter\.sh|k8s\.aws|aws\.com|amazonaws\.com|google\.com|gke\.io|azure\.com"
    r"|nvidia\.com|amd\.com|intel\.com)/"
)

ARCH: Final = "kubernetes.io/arch"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
OS: Final = "kubernetes.io/os"
ZONE: Final = "topology.kubernetes.io/zone"

# The resource that GPU machines offer and GPU pods request.
GPU_RESOURCE: Final = "nvidia.com/gpu"

# On the nodes of GPU pools: the label by which NVIDIA's chart is told of a GPU without looking for one on the bus.
GPU_NODE: Final = "nvidia.com/gpu.present"
GPU_NODE_VALUE: Final = "true"

# The resource that machines with an Elastic Fabric Adapter offer, and pods which use one request.
EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"

# On the nodes of pools whose machines talk to each other by such an adapter.
EFA_NODE: Final = "holdfast.dev/efa"
EFA_NODE_VALUE: Final = "true"

# Annotation on a MutatingAdmissionPolicy: the rule it was made of, as JSON. Its CEL is for the API server; what it lets
# pods tolerate is read from here.
TOLERATES: Final = "holdfast.dev/tolerates"


#: The controller's own namespace; there its service account, what its pods are known by, and the lease of the one that leads.
CONTROLLER_NAMESPACE: Final = "holdfast-system"
CONTROLLER: Final = "fallback-controller"
LEASE: Final = "holdfast-fallback"

#: Where placeholder pods stand: no quota of a team's counts them.
RESERVATION_NAMESPACE: Final = "holdfast-holding"

#: The priority class of placeholder pods. Below every job, so that the pods they stand in for push them out; but no lower:
#: below -10 GKE's autoscaler buys no node for a pod, and Karpenter takes a node with such pods alone for empty.
RESERVATION_PRIORITY_CLASS: Final = "holdfast-holding"
RESERVATION_PRIORITY: Final = -10
