"""GCP stacks as a whole, composed under mocks in a project that answers: those of `stacks/`, and other ways to write one."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.gcp.config.sections import GcpPlatform
from pulumi_holdfast.gcp.training_cluster import TrainingCluster, TrainingClusterArgs
from pulumi_holdfast.stack_program import export, load_platform
from tests.support.builders.configurations import GCP_KEY, HOMES, Document, entry, gcp_platform, section
from tests.support.fakes.gcp_project import answers
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import Recording, record, recorded_once

CHARTS: Final = "oci://mirror.example.com/charts"
IMAGES: Final = "mirror.example.com/images"
BROUGHT: Final[Mapping[str, str]] = {
    "network": "projects/host-project/global/networks/shared",
    "subnetwork": "projects/host-project/regions/us-central1/subnetworks/training",
    "podsRange": "team-pods",
    "servicesRange": "team-services",
}
CLASSES: Final = ("gpus-on-spot", "gpus-kept")

_STACKS: Final = Path(__file__).parents[3] / "stacks"


def _tracked(name: str) -> Callable[[], GcpPlatform]:
    return lambda: cast("GcpPlatform", load_platform(_STACKS / f"Pulumi.{name}.yaml"))


def _mirrored(document: Document) -> None:
    document.update(mirror={"charts": CHARTS, "images": IMAGES})
    section(document, "cluster").update(secretsKey=GCP_KEY)


def _brought(document: Document) -> None:
    document.update(network={**BROUGHT})
    section(document, "cluster").update(access={"dnsEndpoint": {"allowExternal": True}})


def _with_classes(document: Document) -> None:
    for index, name in zip((2, 3), CLASSES, strict=True):
        entry(document, "pools", index).update(computeClass=name)


def _accepting(document: Document) -> None:
    document.update(acceptsFrom=[dict(each) for each in HOMES])


#: Name → platform. The first three are the repository's own.
PLATFORMS: Final[Mapping[str, Callable[[], GcpPlatform]]] = {
    "gcp-dev": _tracked("gcp-dev"),
    "gcp-data": _tracked("gcp-data"),
    "gcp-prod": _tracked("gcp-prod"),
    "mirrored": lambda: gcp_platform(_mirrored),
    "brought": lambda: gcp_platform(_brought),
    "with-classes": lambda: gcp_platform(_with_classes),
    "accepting": lambda: gcp_platform(_accepting),
}


@cache
def stack(name: str, *, preview: bool = False) -> Recording:
    """One of the stacks, composed."""
    return composed(PLATFORMS[name](), name=name, preview=preview)


def composed(
    platform: GcpPlatform, *, name: str = "gcp-test", preview: bool = False, other: OtherStack | None = None
) -> Recording:
    """A stack of this name, composed; `other` is the stack that it refers to."""
    return recorded_once(
        (repr(platform), name, preview, other),
        lambda: record(lambda: make(platform, name), preview=preview, answer=answers, other=other),
    )


def make(platform: GcpPlatform, name: str) -> None:
    """Make the cluster of a stack of this name, as the program does."""
    export(TrainingCluster("main", TrainingClusterArgs(platform=platform, environment=name)).outputs)
