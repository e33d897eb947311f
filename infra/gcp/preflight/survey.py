"""Sees whether a project is fit for a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.infra.gcp.preflight.checks import refusals, warnings
from holdfast.infra.gcp.preflight.queries import Lookups
from holdfast.scheduling.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.infra.gcp.preflight.checks import Project


def survey(platform: GcpPlatform) -> Project:
    """The project of a stack, seen fit for it.

    Warns on the engine's log; raises ConfigError with everything that cannot work there. What the project does not
    answer refuses nothing.
    """
    project = Lookups(platform).project()
    wrong = list(refusals(platform, project))
    if wrong:
        raise ConfigError(wrong)
    for warning in warnings(project):
        pulumi.log.warn(warning)
    return project
