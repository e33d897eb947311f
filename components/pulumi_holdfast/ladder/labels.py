"""Label and annotation keys that job authors use and that the rules recognize."""

from enum import StrEnum
from typing import Final


class CapacityType(StrEnum):
    """How a pool's machines are bought, as Karpenter spells it; each pool has exactly one."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"


# The only selector key that all tiers of a ladder use: JobSet merges selectors when it resumes a job, so a second key left
# over from a spot tier would make the pods unschedulable on the on-demand tier.
POOL: Final = "holdfast.dev/pool"

# On a Namespace: training jobs run here, so admission and the policies apply to it.
TRAINING: Final = "holdfast.dev/training"
TRAINING_VALUE: Final = "true"

# The name of the one FallbackPolicy in each training namespace.
LADDER: Final = "ladder"

# The ConfigMap of a training namespace from which pods get the address of their checkpoints (`envFrom`), and its key.
CHECKPOINTS: Final = "checkpoints"
CHECKPOINT_URI: Final = "CHECKPOINT_URI"

# On a JobSet or RayJob: it follows the ladder of its namespace ("true"), or stays as it was created ("false").
FOLLOWS: Final = "holdfast.dev/fallback"
FOLLOWS_VALUE: Final = "true"
STAYS_VALUE: Final = "false"

# On a job that follows: the pool of the tier that it is on, or moves to, for its users.
TIER: Final = "holdfast.dev/tier"

# Annotation on a job that follows: its state on the ladder, written in the same update as the action.
STATE: Final = "fallback.holdfast.dev/state"

# Annotation on a job that follows: the controller suspended it, and resumes it on a pool. Every version can read it.
SUSPENDED_FOR: Final = "fallback.holdfast.dev/suspended-for"

# On a job that is transferred to another cluster: the annotation with the transfer's record, and the finalizer that keeps the
# job until no copy of it can run.
TRANSFER: Final = "fallback.holdfast.dev/transfer"

# Annotation on such a job: its user declares that the copy of this epoch is lost with its cluster.
LOST_COPY: Final = "fallback.holdfast.dev/lost-copy"

# Annotations on a copy of a job: the uids of the job's cluster and of the job, and the epoch; and whether the copy may run.
# The first is also a label of the copy, its child Jobs and its pods, with the uid of the job.
COPY_OF: Final = "fallback.holdfast.dev/copy-of"
PERMIT: Final = "fallback.holdfast.dev/permit"

# The values of PERMIT. One never goes back to an earlier one.
PERMITS: Final = ("Waiting", "Granted", "Recalled")

# Annotation on a job that follows: what admission removed from the manifest, as JSON.
ORIGINAL: Final = "fallback.holdfast.dev/original"

# Annotation on a job that follows: its user asks to stop it ("true"), also in the middle of a move.
STOP: Final = "fallback.holdfast.dev/stop"

# Annotation on a RayJob: if an eviction fails it, it may be created again under another name ("true").
RECREATE: Final = "fallback.holdfast.dev/recreate"

# Annotation on a job: its program answers checkpoint requests ("true").
CHECKPOINTS_ON_REQUEST: Final = "fallback.holdfast.dev/checkpoints-on-request"

# Annotations with times: the request, on a job and its pods; the answer of the program, on a pod, not before the request.
CHECKPOINT_REQUESTED: Final = "fallback.holdfast.dev/checkpoint-requested"
CHECKPOINTED: Final = "fallback.holdfast.dev/checkpointed"

# Annotations on a job: the time by which it must have finished, and the duration of its training without interruptions.
FINISH_BY: Final = "fallback.holdfast.dev/finish-by"
WORK: Final = "fallback.holdfast.dev/work"

# Annotation on a copy: the work that its job has done before it, as a duration.
WORK_DONE: Final = "fallback.holdfast.dev/work-done"

# Annotations on a job: what it may spend on on-demand nodes, in the currency of the tiers' prices; and what it does after that.
MAX_COST: Final = "fallback.holdfast.dev/max-cost"
AFTER_MAX_COST: Final = "fallback.holdfast.dev/after-max-cost"

# Annotation on a job's pod, or on the job: the share of the work that is done, as 0.42 or 4200/10000.
PROGRESS: Final = "fallback.holdfast.dev/progress"

# Annotations on RayJobs: the name of a failed one's successor; and on a successor the name of the first RayJob, and the uid of the one
# that failed, which admission adds if it knows that one.
SUCCESSOR: Final = "fallback.holdfast.dev/successor"
SUCCESSOR_OF: Final = "fallback.holdfast.dev/successor-of"
PREDECESSOR: Final = "fallback.holdfast.dev/predecessor"

# Annotation on a successor: when the first RayJob was created. Its `deadline` and its age count from then.
FIRST_CREATED: Final = "fallback.holdfast.dev/first-created"

# On a placeholder pod: the number of the pod template of its job that it stands for.
SHAPE: Final = "holdfast.dev/shape"

# Annotation on a placeholder pod: the job that it reserves capacity for, for users.
RESERVED_BY: Final = "holdfast.dev/reserved-by"

# Annotation on a Namespace: a comma-separated list of volume claims that jobs which follow the ladder may mount, because they
# are not bound to a zone.
VOLUME_CLAIMS: Final = "holdfast.dev/volume-claims"

# The start of the annotations of the controller and of job authors; and those that authors set, or admission for them. All others
# are records, which the controller alone writes.
RECORDS_PREFIX: Final = "fallback.holdfast.dev/"
AUTHORS_ANNOTATIONS: Final = frozenset(
    {
        AFTER_MAX_COST,
        CHECKPOINTED,
        CHECKPOINTS_ON_REQUEST,
        FINISH_BY,
        LOST_COPY,
        MAX_COST,
        ORIGINAL,
        PROGRESS,
        RECREATE,
        STOP,
        WORK,
    }
)

# Annotation on a training Namespace: the highest priority of its pods; 0 without it.
HIGHEST_PRIORITY: Final = "holdfast.dev/highest-priority"

# In the node affinity that admission adds to each pod of a training namespace, beside the pools that it may use. It is the name of
# no pool: an affinity with it selects no pool, it only excludes those of others.
OF_LADDER: Final = "of.the.ladder"

# On a node, as label and as taint: its capacity is reserved for the job with this uid.
RESERVED_FOR: Final = "holdfast.dev/reserved-for"

# On nodes that run operators; they belong to no pool.
SYSTEM: Final = "holdfast.dev/system"
SYSTEM_VALUE: Final = "true"

# Karpenter's label for the capacity type; users' manifests select spot by it.
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
SPOT: Final = CapacityType.SPOT.value
ON_DEMAND: Final = CapacityType.ON_DEMAND.value
RESERVED: Final = CapacityType.RESERVED.value

# EC2's label for the reservation of a node, by which NodePools choose it.
RESERVATION_ID: Final = "karpenter.k8s.aws/capacity-reservation-id"

# GKE's labels on its spot nodes; users' manifests select spot by them.
GKE_SPOT: Final = "cloud.google.com/gke-spot"
GKE_SPOT_VALUE: Final = "true"
GKE_PROVISIONING: Final = "cloud.google.com/gke-provisioning"

# AKS' labels on its spot nodes, with node auto-provisioning and in scale sets alike; the first one is also the key of the
# taint of scale sets.
AKS_SCALE_SET_PRIORITY: Final = "kubernetes.azure.com/scalesetpriority"
AKS_PRIORITY: Final = "kubernetes.azure.com/priority"
AKS_SPOT_VALUE: Final = "spot"
#: The data plane of a node; AKS selects the nodes of Cilium's agent by it.
AKS_DATAPLANE: Final = "kubernetes.azure.com/ebpf-dataplane"
AKS_CILIUM: Final = "cilium"

# On the nodes of a ComputeClass; pods select a class by it.
COMPUTE_CLASS: Final = "cloud.google.com/compute-class"

# The labels by which pods select capacity on any cloud, other than by pool. All of them are removed when a pool is selected:
# one left over from a spot tier would make the pods unschedulable on the on-demand tier.
CAPACITY_KEYS: Final = frozenset(
    {CAPACITY_TYPE, GKE_SPOT, GKE_PROVISIONING, COMPUTE_CLASS, AKS_SCALE_SET_PRIORITY, AKS_PRIORITY}
)

# The domains of labels that clouds, Kubernetes and device vendors set on nodes: a pool's declaration does not list all of
# them. RE2 and Python read the pattern alike.
GIVEN_LABEL_PATTERN: Final = (
    r"^([^/]*\.)?(kubernetes\.io|k8s\.io|x-k8s\.io|karpenter\.sh|k8s\.aws|aws\.com|amazonaws\.com|google\.com|gke\.io|azure\.com"
    r"|nvidia\.com|amd\.com|intel\.com)/"
)

ARCH: Final = "kubernetes.io/arch"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
OS: Final = "kubernetes.io/os"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"

# JobSet's labels on the pods of a JobSet, and of one of its replicated jobs.
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
# JobSet's label on a child Job and its pods: how many restarts came before them.
RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"

# Annotation on a JobSet, or on one of its Job templates: each child Job gets a domain of this topology for itself.
EXCLUSIVE_TOPOLOGY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"

# KubeRay's labels on the pods of a worker group, and of all workers with the value.
RAY_GROUP: Final = "ray.io/group"
RAY_NODE_TYPE: Final = "ray.io/node-type"
RAY_WORKER: Final = "worker"

# The extended resource of GPUs.
GPU_RESOURCE: Final = "nvidia.com/gpu"

# On the nodes of GPU pools: with this label NVIDIA's chart does not need to detect the GPU on the PCI bus.
GPU_NODE: Final = "nvidia.com/gpu.present"
GPU_NODE_VALUE: Final = "true"

# The extended resource of Elastic Fabric Adapters.
EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"

# On the nodes of pools whose machines have such an adapter, and on the pods of a gang that request one.
EFA_NODE: Final = "holdfast.dev/efa"
EFA_NODE_VALUE: Final = "true"

# Annotation on a MutatingAdmissionPolicy: the rule it was made from, as JSON. The policies of the pack read the annotation,
# because its CEL is only for the API server.
TOLERATES: Final = "holdfast.dev/tolerates"


#: The controller's namespace; the name of its service account and its pods; and the lease of its leader.
CONTROLLER_NAMESPACE: Final = "holdfast-system"
CONTROLLER: Final = "fallback-controller"
LEASE: Final = "holdfast-fallback"

#: The source of the Events that the controller writes.
EVENT_COMPONENT: Final = "holdfast-fallback"

#: The namespace of placeholder pods, which no team's quota counts.
RESERVATION_NAMESPACE: Final = "holdfast-reservations"

#: The priority class of placeholder pods: below every job, so that the job's own pods preempt them, but not below -10, where
#: GKE's autoscaler buys no node for a pod, and Karpenter takes a node with only such pods for empty.
RESERVATION_PRIORITY_CLASS: Final = "holdfast-reservations"
RESERVATION_PRIORITY: Final = -10
