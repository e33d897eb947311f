"""The running platform of a scenario: its training namespace, and objects that are applied for the length of a block."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pulumi_holdfast.controller.kube.objects import name_of, namespace_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.scenarios.karpenter import Karpenter
from pulumi_holdfast.rehearsal.scenarios.placement import PodPlacement, placements
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS, Provisioner

FIELD_MANAGER = "holdfast-scenarios"


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A platform that is up: its API server, a training namespace, and where to print what happens.

    `machines` is what makes its nodes; None means Karpenter.
    """

    client: KubeClient
    namespace: str
    say: Callable[[str], None] = field(default=print)
    machines: Provisioner | None = None

    @property
    def provisioner(self) -> Provisioner:
        """What makes the platform's nodes."""
        return self.machines or Karpenter(self.client)

    def trainer(self) -> str:
        """The service account of the training namespace. Raises RehearsalError if there is none."""
        accounts = self.client.list("v1", "ServiceAccount", namespace=self.namespace)
        names = sorted(name for name in map(name_of, accounts) if name != "default")
        if not names:
            raise RehearsalError(
                f"namespace {self.namespace} has no service account: run `holdfast rehearse up` again"
            )
        return names[0]

    def nodes(self) -> list[Json]:
        """All nodes."""
        return self.client.list("v1", "Node")

    def pods(self, label_selector: str | None = None) -> list[Json]:
        """The pods of the training namespace."""
        return self.client.list("v1", "Pod", namespace=self.namespace, label_selector=label_selector)

    def wait_for_pods(
        self, label_selector: str, condition: Callable[[list[Json]], bool], what: str
    ) -> tuple[PodPlacement, ...]:
        """Wait until `condition` holds for the selected pods; return their placements."""
        pods = self.client.wait_list(
            "v1",
            "Pod",
            namespace=self.namespace,
            label_selector=label_selector,
            timeout_seconds=WAIT_SECONDS,
            condition=condition,
            what=what,
        )
        return placements(pods, self.nodes())


def training_platform(
    client: KubeClient, stack: str, say: Callable[[str], None], machines: Provisioner | None = None
) -> Platform:
    """Return the platform of a stack with its first training namespace; `machines` is what makes its nodes.

    Raises RehearsalError if there is no training namespace.
    """
    namespaces = client.list("v1", "Namespace", label_selector=f"{TRAINING}={TRAINING_VALUE}")
    if not namespaces:
        raise RehearsalError(
            f"the platform {stack} has no training namespace: add one under `namespaces` in its stack file, "
            "and bring it up again"
        )
    namespace = min(map(name_of, namespaces))
    return Platform(client=client, namespace=namespace, say=say, machines=machines)


def where_gpus_are(platform: Platform) -> Platform:
    """Return the platform with a training namespace whose ladder begins with GPUs.

    A job starts on the first tier of its ladder, whatever spot nodes it selects. Raises RehearsalError if there is none.
    """
    found = where_gpus_may_be(platform)
    if found is None:
        raise RehearsalError(
            "no training namespace has a ladder that begins with GPUs: add one under `namespaces` in the stack file, "
            "and bring the stack up again"
        )
    return found


def where_gpus_may_be(platform: Platform) -> Platform | None:
    """Return the same, or None: the quotas of other namespaces admit no pod that requests a GPU."""
    policies = platform.client.list("holdfast.dev/v1alpha1", "FallbackPolicy")
    namespaces = [namespace_of(policy) for policy in policies if begins_with_gpus(policy)]
    return replace(platform, namespace=min(namespaces)) if namespaces else None


def begins_with_gpus(policy: Json) -> bool:
    """Whether the first tier of a FallbackPolicy has GPUs."""
    tiers = sequence(mapping(policy.get("spec")).get("tiers"))
    facts = mapping(mapping(next(iter(tiers), None)).get("facts"))
    return bool(mapping(facts.get("machine")).get("gpus"))


def apply(platform: Platform, obj: Json) -> None:
    """Apply an object in the training namespace, as a user does."""
    platform.client.apply(_placed(platform, obj), field_manager=FIELD_MANAGER, force=True)


@contextmanager
def applied(platform: Platform, *objects: Json) -> Generator[None]:
    """Apply `objects` for the length of the block, and remove them and the nodes they caused.

    Objects of the same names from an interrupted scenario are removed first, and so are empty nodes.
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
        kind, namespace = (str(obj["apiVersion"]), str(obj["kind"])), platform.namespace
        if platform.client.delete(*kind, name_of(obj), namespace=namespace):
            platform.client.wait_until_gone(
                *kind, name_of(obj), namespace=namespace, timeout_seconds=WAIT_SECONDS
            )
    platform.provisioner.release_empty_nodes()


def _placed(platform: Platform, obj: Json) -> Json:
    return {**obj, "metadata": {**mapping(obj.get("metadata")), "namespace": platform.namespace}}
