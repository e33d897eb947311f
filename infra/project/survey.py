"""Sees whether a project is fit for a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra.project.findings import refusals, warnings
from infra.project.lookups import Lookups
from scheduling.errors import ConfigError

if TYPE_CHECKING:
    from infra.config.gcp import GcpPlatform
    from infra.project.facts import Project


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
