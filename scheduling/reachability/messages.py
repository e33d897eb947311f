"""What is said of a job that cannot be somewhere, and the fix: the words of the policy pack and of the API server.

Templates: `{name}` stands for a value that Python fills in by `str.format`, and the API server by an expression.
"""

from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.labels import POOL, VOLUME_CLAIMS


@dataclass(frozen=True, kw_only=True)
class MessageTemplate:
    """Why not, without its full stop, and what would fix it."""

    reason: str
    fix: str

    @property
    def sentence(self) -> str:
        """Both, as a message has them."""
        return f"{self.reason}. {self.fix}"


#: How a message begins: whose way down ends where, and why.
CANNOT_FALL_BACK: Final = "{who} cannot fall back: {where}: {why}"
TIER: Final = "tier {number} → pool {pool}"
SHAPE: Final = "shape {name} ({gang} of {requests})"
ALONE: Final = "a pod"
GANG: Final = "{pods} pods"
#: Who it is where no template is meant alone.
THE_JOB: Final = "the job"

#: Behind the reasons of a tier that is not the last, and that nothing leads past.
NO_WAY_PAST: Final = (
    "Nothing that fails there leads past it either: give the tier a `procurementTimeout`, or fix the pool."
)

ACCELERATOR: Final = MessageTemplate(
    reason="its machines have {kinds}, not {accelerator}",
    fix="Give the pool machine types with {accelerator}, or the ladder a pool that has them.",
)
SELECTOR: Final = MessageTemplate(
    reason="the pods select {key}={value}, and its nodes {has}",
    fix="Leave {key} out of the job, or label the pool's nodes so.",
)
NO_SUCH_LABEL: Final = "have no such label"
OTHER_LABEL: Final = "have {key}={there}"
AFFINITY: Final = MessageTemplate(
    reason="the pods' node affinity asks for {keys}, and no alternative of it is true of its nodes",
    fix="Leave it out of the job, or label the pool's nodes so.",
)
TAINT: Final = MessageTemplate(
    reason="taint {taint} is not tolerated",
    fix="Let admission add the toleration to pods that ask for this pool, or give it to the jobs.",
)
MACHINE: Final = MessageTemplate(
    reason="no machine of it has room for a pod of {requests}: {machine} has {room} left for pods",
    fix="Ask for less, or give the pool larger machines.",
)
TOO_MANY: Final = MessageTemplate(
    reason="it may have room for {room} of the {pods} pods that have to run together",
    fix="Let it have {nodes} nodes or more (`maxNodes`), or declare a smaller gang.",
)
TOO_MUCH: Final = MessageTemplate(
    reason="all its nodes have {room} for pods, and the job's pods ask for {total} together",
    fix="Let it have more nodes (`maxNodes`), or ask for less.",
)
ZONES: Final = MessageTemplate(
    reason="the pods' volumes are in {volumes}, its nodes in {nodes}",
    fix="Keep checkpoints in the bucket or on a volume that is not tied to a zone.",
)
CAPACITY: Final = MessageTemplate(
    reason="{title} makes {kinds} nodes and not on-demand ones alone",
    fix="Append a tier with an on-demand pool, or say `maxFailures: -1` on this one to stay there for ever.",
)

# Of a job by itself, whatever its ladder has. `{name}` is the template's.
PINNED: Final = MessageTemplate(
    reason="{name} requires {keys} by node affinity, which ties it to one kind of capacity: no move can change it",
    fix="Write a nodeSelector in its place.",
)
NOT_ON_LADDER: Final = MessageTemplate(
    reason="{name} selects the pool {pool}, and the ladder of its namespace has {pools}",
    fix=f"Select one of them, or leave {POOL} out to begin on the first.",
)
NOTHING_FOLLOWS: Final = MessageTemplate(
    reason="none of its templates can follow the ladder of its namespace, which has {pools}: they select other capacity",
    fix=f"Leave {POOL} and the capacity type out of those that are to follow.",
)
APART: Final = MessageTemplate(
    reason="its templates begin on different tiers: {pools}. What runs together moves together",
    fix="Let all of them select the same pool, or none.",
)
MIXED: Final = MessageTemplate(
    reason="{name} selects {key}={value} beside workers on spot: the gang would pay for one kind of capacity and be lost "
    "with the other",
    fix="Leave it out: what only helps runs on the default pool, on-demand; what trains goes where the workers go.",
)
CLAIM: Final = MessageTemplate(
    reason="{name} mounts the volume claim {claim}, which may be tied to a zone that another tier's nodes are not in",
    fix="Keep checkpoints in the bucket (CHECKPOINT_URI). A claim that can be mounted in every zone may be listed in the "
    f"namespace's annotation {VOLUME_CLAIMS}, names with commas between them.",
)
ENDS_AT_ONCE: Final = MessageTemplate(
    reason="its failure policy ends it at the first pod that is lost, and a JobSet that has failed is lost for good",
    fix="Leave `failurePolicy` out, or give it a `maxRestarts` and no rule that fails the JobSet on `PodFailurePolicy`.",
)
ENDS_ON_FAILURE: Final = MessageTemplate(
    reason="without a `backoffLimit` it ends at the first attempt that fails, and a RayJob that has failed is lost for good",
    fix="Give it a `backoffLimit`, such as 5.",
)
CANNOT_STOP: Final = MessageTemplate(
    reason="it cannot be suspended, and so not be moved: a RayJob with `{field}` keeps its cluster",
    fix="Leave `{field}` out.",
)
