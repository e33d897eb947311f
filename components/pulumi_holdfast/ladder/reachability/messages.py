"""What checks find: message templates of reachability checks, and of faults of jobs, which the API server's admission policies use, too.

`{name}` is a placeholder: Python fills it in with `str.format`, the admission policies with a CEL expression.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.labels import AFTER_MAX_COST, FOLLOWS, MAX_COST, POOL, VOLUME_CLAIMS
from pulumi_holdfast.ladder.reachability import messages


@dataclass(frozen=True, kw_only=True)
class MessageTemplate:
    """Why a check fails, without the full stop, and what to do about it."""

    reason: str
    fix: str

    @property
    def sentence(self) -> str:
        """The reason and the fix, as a message shows them."""
        return f"{self.reason}. {self.fix}"

    def filled(self, **values: object) -> "MessageTemplate":
        """The template with these values."""
        return MessageTemplate(reason=self.reason.format(**values), fix=self.fix.format(**values))


#: The start of a message: which job, on which tier, and why.
CANNOT_FALL_BACK: Final = "{who} cannot fall back: {where}: {why}"
TIER: Final = "tier {number} → pool {pool}"
SHAPE: Final = "shape {name} ({gang} of {requests})"
ALONE: Final = "a pod"
GANG: Final = "{pods} pods"
#: The subject of a message that is not about a single template.
THE_JOB: Final = "the job"

#: Follows the reasons of a tier that is not the last one and that a job cannot leave.
NO_WAY_PAST: Final = (
    "No pod runs there, so no failure leads past it: set a `procurementTimeout` on the tier, or fix the pool."
)

ACCELERATOR: Final = MessageTemplate(
    reason="its machines have {kinds}, not {accelerator}",
    fix="Add machine types with {accelerator} to the pool, or a pool with them to the ladder.",
)
SELECTOR: Final = MessageTemplate(
    reason="the pods select {key}={value}, but its nodes {has}",
    fix="Remove {key} from the job, or add the label to the pool's nodes.",
)
NO_SUCH_LABEL: Final = "do not have this label"
OTHER_LABEL: Final = "have {key}={there}"
NO_TYPE: Final = MessageTemplate(
    reason="none of its machine types has all the labels that the pods select ({keys}) at once",
    fix="Select fewer labels in the job, or add machine types that have them to the pool.",
)
UNSATISFIABLE: Final = MessageTemplate(
    reason="no machine type meets its requirements on {keys}",
    fix="Change the requirements of the pool so that they allow a machine type.",
)
ARCHITECTURE: Final = MessageTemplate(
    reason="its machines are {there}, and the images run on {wanted}",
    fix="Add machine types of that architecture to the pool, or build the images for both and list both in `architectures`.",
)
STOPPED: Final = MessageTemplate(
    reason="it is stopped, and nothing starts it",
    fix="Set `powerState.code: Running`, or name another pool in the ladder.",
)
NO_RESERVATION: Final = MessageTemplate(
    reason="its node class names no capacity reservation, so Karpenter makes no reserved node",
    fix="Set `capacityReservationSelectorTerms` in the node class, or allow on-demand in the pool.",
)
NO_IMAGE: Final = MessageTemplate(
    reason="its node class {name} asks for Amazon Linux 2, which has no image for Kubernetes {version}",
    fix="Name another image in `amiSelectorTerms`, such as the alias of AL2023.",
)
NO_AUTO_MODE: Final = MessageTemplate(
    reason="its nodes are made by EKS Auto Mode, which is off in cluster {cluster}",
    fix="Set `computeConfig.enabled: true`, or name a node class of Karpenter.",
)
WRONG_DISK: Final = MessageTemplate(
    reason="its machines of type {machine} attach Hyperdisk only, and it asks for {disk}",
    fix="Set `diskType: hyperdisk-balanced`, or name a machine type that attaches Persistent Disk.",
)
NOT_SOLD: Final = MessageTemplate(
    reason="machines of type {machine} are sold on spot or by reservation only, so GKE makes no node of it",
    fix="Name a machine type that is sold on demand, or the reservation by `reservationAffinity`.",
)
NOT_COMPACT: Final = MessageTemplate(
    reason="machines of type {machine} are not placed close to each other, so GKE refuses it with `placementPolicy.type: COMPACT`",
    fix="Remove `placementPolicy`, or name another machine type.",
)
NOT_CONFIDENTIAL: Final = MessageTemplate(
    reason="machines of type {machine} are never confidential, and `confidentialNodes` of it or of its cluster asks for that",
    fix="Name a machine type such as those of N2D or C3D.",
)
NO_LOCAL_DISK: Final = MessageTemplate(
    reason="machines of size {machine} have no disk of their own, so AKS refuses it with `osDiskType: Ephemeral`",
    fix="Set `osDiskType: Managed`, or name a size with a local disk.",
)
GROUP_OF_ONE_ZONE: Final = MessageTemplate(
    reason="a proximity placement group is in one zone, and it asks for zones {zones} in it",
    fix="Name one zone in `availabilityZones`, or remove `proximityPlacementGroupID`.",
)
EXPENDABLE: Final = MessageTemplate(
    reason="the cluster autoscaler makes no node for pods of a priority below {least}, and the pods have {priority}",
    fix="Set the `value` of their PriorityClass to {least} or more.",
)
MIN_VALUES: Final = MessageTemplate(
    reason="too few of its machine types fit a pod for `minValues` of {keys}, so Karpenter makes no node for it",
    fix="Lower `minValues`, or allow more machine types that the pods fit on.",
)
AFFINITY: Final = MessageTemplate(
    reason="the pods require {keys} by node affinity, and no term of it matches its nodes",
    fix="Remove the affinity from the job, or add the labels to the pool's nodes.",
)
TAINT: Final = MessageTemplate(
    reason="taint {taint} is not tolerated",
    fix="Let admission add the toleration to pods that select this pool, or add it to the jobs.",
)
MACHINE: Final = MessageTemplate(
    reason="none of its machine types fits a pod of {requests}: {machine} has {room} allocatable",
    fix="Request less, or add machine types that have as much to the pool.",
)
TOO_MANY: Final = MessageTemplate(
    reason="it has room for at most {room} of the {pods} pods that have to run together",
    fix="Raise `{field}` to {nodes} or more nodes, or declare a smaller gang.",
)
TOO_MUCH: Final = MessageTemplate(
    reason="all its nodes together have {room} allocatable, and the job's pods request {total}",
    fix="Raise `{field}`, or request less.",
)
TOO_FEW_DOMAINS: Final = MessageTemplate(
    reason="each of its {groups} child Jobs needs a value of {key} for itself (exclusive-topology), and the nodes of a tier have "
    "{there}",
    fix="Remove the annotation, or name a label that differs between nodes, such as {example}.",
)
ZONES: Final = MessageTemplate(
    reason="the pods' volumes are in {volumes}, but its nodes are in {nodes}",
    fix="Keep checkpoints in the bucket, or on a volume that is not bound to a zone.",
)
NO_ZONE: Final = MessageTemplate(
    reason="the pods' volumes are in different zones, so no node can mount them all",
    fix="Keep checkpoints in the bucket, or on a volume that is not bound to a zone.",
)
OTHER_ZONE: Final = MessageTemplate(
    reason="the pods' volumes are in {volumes}, but the pods select nodes in {selected}",
    fix="Select a zone of the volumes, or keep checkpoints in the bucket.",
)
ENDED: Final = MessageTemplate(
    reason="its reserved capacity ended at {time}",
    fix="Name the pool of the reservation that follows it, or remove the tier.",
)
CAPACITY: Final = MessageTemplate(
    reason="{title} makes {kinds} nodes, not only on-demand ones",
    fix="Append a tier with an on-demand pool, or set `maxFailures: -1` on this tier to stay on it indefinitely.",
)

# About a job by itself, whatever tiers its ladder has. `{name}` is the name of the pod template.
PINNED: Final = MessageTemplate(
    reason="{name} requires {keys} by node affinity, which binds it to one kind of capacity: the ladder cannot move it",
    fix="Use a nodeSelector instead.",
)
NOT_ON_LADDER: Final = MessageTemplate(
    reason="{name} selects the pool {pool}, but the ladder of its namespace has {pools}",
    fix=f"Select one of them, or remove {POOL} to start on the first.",
)
NOTHING_FOLLOWS: Final = MessageTemplate(
    reason="none of its templates can follow the ladder of its namespace, which has {pools}: they select other capacity",
    fix=f"Remove {POOL} and the capacity type from the templates that should follow it.",
)
APART: Final = MessageTemplate(
    reason="its templates start on different tiers: {pools}. Pods that run together move together",
    fix="Select the same pool in all of them, or in none.",
)
CLAIM: Final = MessageTemplate(
    reason="{name} mounts the volume claim {claim}, which may be bound to a zone where another tier has no nodes",
    fix="Keep checkpoints in the bucket (CHECKPOINT_URI). If the claim can be mounted in every zone, add its name to the "
    f"namespace's annotation {VOLUME_CLAIMS} (comma-separated).",
)
# About a job that is admitted although the ladder does nothing for it; the API server warns its author.
NOT_FOLLOWING: Final = MessageTemplate(
    reason="the job selects spot, but does not follow the ladder of its namespace, which has {pools}: {why}. Nothing moves it "
    "to on-demand",
    fix=f'Select what the ladder has, or set the label {FOLLOWS}: "true" on the job to follow it, or "false" if this is '
    "intended.",
)
NO_GPUS_ON_LADDER: Final = "the job requests GPUs, and no tier has any"
ONLY_GPUS_ON_LADDER: Final = "its pods on spot request no GPUs, and the tiers have GPU machines"
NOT_MARKED: Final = "admission did not select it"
NO_TEMPLATE: Final = MessageTemplate(
    reason="the job has no pod template, so nothing of it can run", fix="Add one to `spec`."
)
ONLY_THE_HEAD: Final = MessageTemplate(
    reason="only its head is on spot, and a move does not move a head",
    fix="Remove the selector from the head, which then runs on the default on-demand pool, or train in a worker group.",
)

MAX_COST_AMOUNT: Final = MessageTemplate(
    reason=f'its annotation {MAX_COST} is "{{written}}"',
    fix="Write a number above 0, such as 250 or 99.50, in quotes.",
)
AFTER_MAX_COST_ALONE: Final = MessageTemplate(
    reason=f"its annotation {AFTER_MAX_COST} needs {MAX_COST}", fix="Add it, or remove this one."
)
AFTER_MAX_COST_VALUE: Final = MessageTemplate(
    reason=f'its annotation {AFTER_MAX_COST} is "{{written}}"', fix="Write wait or give-up."
)
NOWHERE_TO_WAIT: Final = MessageTemplate(
    reason=f"its annotation {AFTER_MAX_COST} is wait, and all tiers of its ladder are on-demand",
    fix="Write give-up, or add a spot tier to the ladder.",
)
ENDS_AT_ONCE: Final = MessageTemplate(
    reason="its failure policy fails it at the first pod that is lost, and a failed JobSet cannot be resumed",
    fix="Remove `failurePolicy`, or set its `maxRestarts` and remove rules that fail the JobSet on `PodFailurePolicy`.",
)
ENDS_ON_FAILURE: Final = MessageTemplate(
    reason="without a `backoffLimit` it fails at the first attempt that fails, and a failed RayJob cannot be resumed",
    fix="Set a `backoffLimit`, such as 5.",
)
CANNOT_STOP: Final = MessageTemplate(
    reason="it cannot be suspended, so it cannot be moved: a RayJob with `{field}` keeps its cluster",
    fix="Remove `{field}`.",
)


def tier_title(number: int, pool: str, cluster: str = "") -> str:
    """A tier in a message; a pool of another cluster has the cluster in front, as in the status of jobs."""
    return TIER.format(number=number, pool=f"{cluster}/{pool}" if cluster else pool)


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A check that fails: why the job's pods cannot run on the pool's nodes, and the fix."""

    check: str
    reason: str
    fix: str = ""

    @classmethod
    def by(cls, check: str, template: messages.MessageTemplate, **values: object) -> "Failed":
        """A failed check with the message of this template."""
        return cls(check=check, reason=template.reason.format(**values), fix=template.fix.format(**values))


@dataclass(frozen=True, kw_only=True)
class Undetermined:
    """A check that depends on a value which is not known yet."""

    check: str
    reason: str


#: What a check yields; a check that passes yields nothing.
CheckResult: TypeAlias = Failed | Undetermined
