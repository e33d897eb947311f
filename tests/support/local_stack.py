"""The repository's local stack, composed under mocks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from holdfast.infra.local.stack import compose
from holdfast.infra.program import load_platform
from tests.support.doc_pages import ROOT
from tests.support.recorder import record

if TYPE_CHECKING:
    from holdfast.infra.local.config.stack import LocalPlatform
    from tests.support.recorder import Recording


@cache
def local_stack(name: str) -> Recording:
    """The stack of that name."""
    platform = cast("LocalPlatform", load_platform(ROOT / f"stacks/Pulumi.{name}.yaml"))
    return record(lambda: compose(platform, name))
