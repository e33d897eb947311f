"""Azure stacks as a whole, composed under mocks in a subscription that answers: those of `stacks/`, and other ways to write one."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, cast

from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.azure.training_cluster import TrainingCluster, TrainingClusterArgs
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.stack_program import export, load_platform
from tests.support.builders.aks_components import DEPLOYER, TENANT, seen
from tests.support.builders.configurations import (
    DISK_ENCRYPTION_SET,
    EXISTING_AZURE_NETWORK,
    HOMES,
    REGISTRY,
    SUBSCRIPTION,
    WORKSPACE,
    Document,
    fixed_platform,
    nap_platform,
    section,
)
from tests.support.doc_pages import ROOT
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import Recording, record, recorded_once

CHARTS: Final = "oci://mirror.example.com/charts"
IMAGES: Final = "mirror.example.com/images"


def _tracked(name: str) -> Callable[[], AzurePlatform]:
    return lambda: cast("AzurePlatform", load_platform(ROOT / f"stacks/Pulumi.{name}.yaml"))


def _mirrored(document: Document) -> None:
    document.update(mirror={"charts": CHARTS, "images": IMAGES})
    section(document, "cluster").update(
        diskEncryptionSet=DISK_ENCRYPTION_SET, logWorkspace=WORKSPACE, registry=REGISTRY
    )
    section(document, "checkpoints").update(privateEndpoint={})


def _brought(document: Document) -> None:
    document.update(network={**EXISTING_AZURE_NETWORK})
    section(document, "cluster").update(login="workloadidentity")


def _accepting(document: Document) -> None:
    document.update(acceptsFrom=[dict(each) for each in HOMES])


#: Name → platform. The first three are the repository's own.
PLATFORMS: Final[Mapping[str, Callable[[], AzurePlatform]]] = {
    "azure-dev": _tracked("azure-dev"),
    "azure-data": _tracked("azure-data"),
    "azure-prod": _tracked("azure-prod"),
    "mirrored": lambda: nap_platform(_mirrored),
    "brought": lambda: nap_platform(_brought),
    "brought-fixed": lambda: fixed_platform(_brought),
    "accepting": lambda: nap_platform(_accepting),
}


def answers(token: str, arguments: Json) -> Json:
    """What a subscription answers to each question."""
    if token.endswith(":getClientConfig"):
        ids = {"subscriptionId": SUBSCRIPTION, "tenantId": TENANT, "objectId": DEPLOYER}
        return {**ids, "clientId": "00000000-0000-0000-0000-00000000000c"}
    return seen(token, arguments)


@cache
def stack(name: str, *, preview: bool = False) -> Recording:
    """One of the stacks, composed."""
    return composed(PLATFORMS[name](), name=name, preview=preview)


def composed(
    platform: AzurePlatform,
    *,
    name: str = "azure-test",
    preview: bool = False,
    other: OtherStack | None = None,
) -> Recording:
    """A stack of this name, composed; `other` is the stack that it refers to."""
    return recorded_once(
        (repr(platform), name, preview, other),
        lambda: record(lambda: make(platform, name), preview=preview, answer=answers, other=other),
    )


def make(platform: AzurePlatform, name: str) -> None:
    """Make the cluster of a stack of this name, as the program does."""
    export(TrainingCluster("main", TrainingClusterArgs(platform=platform, environment=name)).outputs)
