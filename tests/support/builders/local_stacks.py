"""Local stacks as a whole, composed under mocks: that of `stacks/`, and others after a change of its document."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, cast

from pulumi_holdfast.local.config.sections import LocalPlatform
from pulumi_holdfast.local.training_cluster import TrainingCluster, TrainingClusterArgs
from pulumi_holdfast.stack_program import load_platform
from tests.support.doc_pages import ROOT
from tests.support.fakes.pulumi_engine import Recording, record, recorded_once


def _tracked() -> LocalPlatform:
    return cast("LocalPlatform", load_platform(ROOT / "stacks/Pulumi.local.yaml"))


#: Name → platform: the repository's own.
PLATFORMS: Final[Mapping[str, Callable[[], LocalPlatform]]] = {"local": _tracked}


@cache
def stack(name: str, *, preview: bool = False) -> Recording:
    """The stack, composed."""
    return composed(PLATFORMS[name](), name=name, preview=preview)


def composed(platform: LocalPlatform, *, name: str = "local-test", preview: bool = False) -> Recording:
    """A stack of this name, composed."""
    return recorded_once(
        (repr(platform), name, preview),
        lambda: record(
            lambda: TrainingCluster("main", TrainingClusterArgs(platform=platform, environment=name)),
            preview=preview,
        ),
    )
