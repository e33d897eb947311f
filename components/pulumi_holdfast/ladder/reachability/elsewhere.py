"""The checks of a tier in another cluster, beside those of its pool: its stack, its ladder there, and the checkpoints.

No job arrives on such a tier: while its cluster does not answer, only `procurementTimeout` leads on. The copy of a job follows
the ladder of the namespace over there, and reads its checkpoints under the address that the namespace over there has.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.ladder import ELSEWHERE_NEEDS_TIMEOUT, SET_TIMEOUT_FIX
from pulumi_holdfast.ladder.reachability.checks import CheckResult, Failed, Undetermined
from pulumi_holdfast.ladder.reachability.facts import Exported, TierFacts
from pulumi_holdfast.ladder.reachability.messages import MessageTemplate

ENDS_ELSEWHERE: Final = MessageTemplate(
    reason="it is in another cluster, which may not answer, so no job arrives there for certain",
    fix="Append a tier with an on-demand pool of the ladder's own cluster.",
)
NO_NAMESPACE_THERE: Final = MessageTemplate(
    reason="stack {stack} has no training namespace of this name",
    fix="Add the namespace to that stack, or remove the tier.",
)
NOT_ON_LADDER_THERE: Final = MessageTemplate(
    reason="pool {pool} is not on the ladder of this namespace in stack {stack} (which has: {there})",
    fix="Name a pool of that ladder, or add the pool to it.",
)
CHECKPOINTS_UNREACHABLE: Final = MessageTemplate(
    reason="the network of stack {stack} leads to no store in another region, so a job that moves there does not find its checkpoints",
    fix="Give that network a route to the store, or remove the tier.",
)
OTHER_CHECKPOINTS: Final = MessageTemplate(
    reason="jobs keep their checkpoints in {home} here and in {there} there, so a job that moves starts without its own",
    fix="Let both stacks keep the checkpoints of the namespace in one store, or remove the tier.",
)
OTHER_REGISTRY: Final = MessageTemplate(
    reason="the isolated network of stack {stack} leads to no registry but those of {registry}, so its nodes cannot pull {image}",
    fix="Name an image in such a registry, which the ladder's own cluster can pull as well, or remove the tier.",
)
#: What is assumed of the images of jobs whose manifests the program does not have.
IMAGES_ASSUMED: Final = "the isolated network of stack {stack} leads to no registry but those of {registry}, which are assumed to have the images of jobs"
#: What is not known of a tier in another cluster.
NOT_EXPORTED: Final = (
    "nothing is known of cluster {cluster}: it is named by its address, or its stack was not updated yet"
)
EXPORT_LATER: Final = "what the stack of cluster {cluster} exports is not known yet"
OLD_EXPORT: Final = "stack {stack} exports no facts of the pool. Update it with this release"
CHECKPOINTS_LATER: Final = "where jobs keep their checkpoints is not known yet"
CHECKPOINTS_NOT_KNOWN: Final = "whether jobs find their checkpoints there is not known: neither this program nor an output of that cluster's stack says it"
#: What is not known of a job of the program that may move there.
PULL_NOT_KNOWN: Final = (
    "whether nodes of cluster {cluster} may pull {images}, from a registry of one account, is not known"
)
VOLUMES_NOT_KNOWN: Final = (
    "whether cluster {cluster} has {volumes}, with the data that the job expects, is not known"
)
NO_TIMEOUT_FIX: Final = f"{SET_TIMEOUT_FIX}."


#: Registries of one account or project: nodes of another one, and of another region's network, may not pull from them. Those of
#: ECR have a name of each partition of AWS, and another one for IPv6 (matchImages of Bottlerocket's ecr-credential-provider).
_OF_ONE_ACCOUNT: Final = re.compile(
    r"[0-9]{12}\.dkr\.ecr(-fips)?\.[a-z0-9-]+\."
    r"(amazonaws\.com(\.cn)?|amazonaws\.eu|s?c2s\.(ic|sgov)\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)"
    r"|[0-9]{12}\.dkr-ecr(-fips)?\.[a-z0-9-]+\.on\.(aws|amazonwebservices\.com\.cn)"
    r"|[a-z0-9-]+-docker\.pkg\.dev|((us|eu|asia)\.)?gcr\.io|[a-z0-9-]+\.azurecr\.(io|cn|us)"
)


def check_elsewhere(tier: TierFacts, *, is_last: bool) -> Iterator[CheckResult]:
    """Yield why jobs cannot get to a tier in another cluster, or past it, and what is not known of it."""
    if is_last:
        yield Failed.by("cluster", ENDS_ELSEWHERE)
    elif tier.has_timeout is False:
        yield Failed(check="timeout", reason=ELSEWHERE_NEEDS_TIMEOUT, fix=NO_TIMEOUT_FIX)
    exported = tier.exported
    if exported is UNKNOWN:
        yield Undetermined(check="pool", reason=EXPORT_LATER.format(cluster=tier.cluster))
    elif exported is None:
        if not tier.node_pools:
            yield Undetermined(check="pool", reason=NOT_EXPORTED.format(cluster=tier.cluster))
    elif exported.ladder is None:
        yield Failed.by("namespace", NO_NAMESPACE_THERE, stack=exported.stack)
    elif tier.pool not in exported.ladder:
        there = ", ".join(exported.ladder) or "none"
        yield Failed.by("ladder", NOT_ON_LADDER_THERE, pool=tier.pool, stack=exported.stack, there=there)
    elif not tier.node_pools:
        yield Undetermined(check="pool", reason=OLD_EXPORT.format(stack=exported.stack))


def check_images(exported: Exported, images: Iterable[str]) -> Iterator[CheckResult]:
    """Yield the images that nodes over there cannot pull."""
    for image in dict.fromkeys(images):
        if exported.registry is not None and not image.partition("/")[0].endswith(exported.registry):
            values = {"stack": exported.stack, "registry": exported.registry, "image": image}
            yield Failed.by("images", OTHER_REGISTRY, **values)


def check_job_elsewhere(
    tier: TierFacts, images: Sequence[str], volumes: Iterable[str]
) -> Iterator[Undetermined]:
    """Yield what is not known of a job on a tier in another cluster: its images, and the volumes that are of its own cluster.

    Images that nodes over there cannot pull are of `check_images`.
    """
    exported = tier.exported if isinstance(tier.exported, Exported) else None
    refused = {each for each in images if exported and any(check_images(exported, (each,)))}
    named = [each for each in dict.fromkeys(images) if _OF_ONE_ACCOUNT.fullmatch(each.partition("/")[0])]
    unknown = ", ".join(each for each in named if each not in refused)
    if unknown:
        yield Undetermined(check="images", reason=PULL_NOT_KNOWN.format(cluster=tier.cluster, images=unknown))
    mounted = ", ".join(dict.fromkeys(volumes))
    if mounted:
        yield Undetermined(
            check="volumes", reason=VOLUMES_NOT_KNOWN.format(cluster=tier.cluster, volumes=mounted)
        )


def check_checkpoints(exported: Exported) -> Iterator[CheckResult]:
    """Yield why a job that moves does not find its checkpoints over there, or why that is not known."""
    home, there = exported.home_checkpoints, exported.checkpoints
    if exported.reaches_checkpoints is False:
        yield Failed.by("checkpoints", CHECKPOINTS_UNREACHABLE, stack=exported.stack)
    if home is UNKNOWN:
        yield Undetermined(check="checkpoints", reason=CHECKPOINTS_LATER)
    elif home is None or there is None:
        yield Undetermined(check="checkpoints", reason=CHECKPOINTS_NOT_KNOWN)
    elif home.rstrip("/") != there.rstrip("/"):
        yield Failed.by("checkpoints", OTHER_CHECKPOINTS, home=home, there=there)
