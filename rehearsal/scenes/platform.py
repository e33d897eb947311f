"""The running platform a scene plays on, and the state it is left in."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rehearsal.errors import RehearsalError
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import identity, mapping
from rehearsal.scenes.placement import Placement, name_of, node_of, placements
from scheduling.json import Json
from scheduling.labels import TRAINING, TRAINING_VALUE

FIELD_MANAGER = "holdfast-scenes"
# Karpenter waits up to 10 s for more pods before it buys; a busy machine takes its time for the rest.
SECONDS = 180.0


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A platform that is up: its API server, a training namespace, and who is told what happens."""

    client: KubeClient
    namespace: str
    say: Callable[[str], None] = field(default=print)

    def nodes(self) -> list[Json]:
        """All nodes."""
        return self.client.list("v1", "Node")

    def pods(self, label_selector: str | None = None) -> list[Json]:
        """The pods of the training namespace."""
        return self.client.list("v1", "Pod", namespace=self.namespace, label_selector=label_selector)

    def wait_for_pods(
        self, label_selector: str, condition: Callable[[list[Json]], bool], what: str
    ) -> tuple[Placement, ...]:
        """Wait until `condition` holds for the selected pods; returns where they are then."""
        pods = self.client.wait_list(
            "v1",
            "Pod",
            namespace=self.namespace,
            label_selector=label_selector,
            timeout_seconds=SECONDS,
            condition=condition,
            what=what,
        )
        return placements(pods, self.nodes())


def training_platform(client: KubeClient, stack: str, say: Callable[[str], None]) -> Platform:
    """Return the platform of a stack, its first training namespace to play in. Raises RehearsalError without one."""
    namespaces = client.list("v1", "Namespace", label_selector=f"{TRAINING}={TRAINING_VALUE}")
    if not namespaces:
        raise RehearsalError(
            f"the platform {stack} has no training namespace: add one under `namespaces` in its stack file, "
            "and bring it up again"
        )
    return Platform(client=client, namespace=min(map(name_of, namespaces)), say=say)


def apply(platform: Platform, obj: Json) -> None:
    """Apply an object in the training namespace, as its user would."""
    platform.client.apply(_placed(platform, obj), field_manager=FIELD_MANAGER, force=True)


@contextmanager
def played(platform: Platform, *objects: Json) -> Generator[None]:
    """Apply `objects` for the length of the block, and leave the platform as if they had never been there.

    Objects of the same names that an interrupted scene left are removed first, and so are empty nodes: what
    the block sees come was caused by its objects.
    """
    _remove(platform, objects)
    try:
        for obj in objects:
            apply(platform, obj)
        yield
    finally:
        _remove(platform, objects)


def _remove(platform: Platform, objects: Sequence[Json]) -> None:
    for obj in reversed(objects):
        api_version, kind, name = str(obj["apiVersion"]), str(obj["kind"]), name_of(obj)
        if platform.client.delete(api_version, kind, name, namespace=platform.namespace):
            platform.client.wait_for(
                api_version,
                kind,
                name,
                namespace=platform.namespace,
                timeout_seconds=SECONDS,
                condition=lambda found: found is None,
                what=f"{identity(obj)} is gone",
            )
    release_empty_nodes(platform)


def release_empty_nodes(platform: Platform) -> None:
    """Give back every machine on which no pod runs, as consolidation does minutes later.

    A machine that is still starting was bought for a pod that waits for it: it stays.
    """
    busy = {node_of(pod) for pod in platform.client.list("v1", "Pod")}
    claims = {
        str(mapping(claim.get("status")).get("nodeName") or ""): name_of(claim)
        for claim in platform.client.list("karpenter.sh/v1", "NodeClaim")
    }
    empty = [claim for node, claim in claims.items() if node and node not in busy]
    for claim in empty:
        platform.client.delete("karpenter.sh/v1", "NodeClaim", claim)
    for claim in empty:
        wait_until_claim_is_gone(platform, claim)


def wait_until_claim_is_gone(platform: Platform, claim: str) -> None:
    """Wait until a NodeClaim is gone, and so its machine."""
    platform.client.wait_for(
        "karpenter.sh/v1",
        "NodeClaim",
        claim,
        timeout_seconds=SECONDS,
        condition=lambda found: found is None,
        what=f"NodeClaim {claim} is gone",
    )


def _placed(platform: Platform, obj: Json) -> Json:
    return {**obj, "metadata": {**mapping(obj.get("metadata")), "namespace": platform.namespace}}
