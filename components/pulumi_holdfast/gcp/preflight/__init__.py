"""Checks the Google Cloud project before a training cluster registers its parts: what it offers, and what an earlier update made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.gcp.preflight.checks import Project, preflight_problems, preflight_warnings
from pulumi_holdfast.gcp.preflight.queries import ProjectQueries
from pulumi_holdfast.ladder.errors import ConfigError

if TYPE_CHECKING:
    from pulumi_holdfast.gcp.config.sections import GcpPlatform

__all__ = ["Project", "check_project"]


def check_project(platform: GcpPlatform, stack: str, *, parent: pulumi.Resource) -> Project:
    """Query the project with the provider of the component `parent`, and check that it can hold the stack.

    Logs warnings to the engine; raises ConfigError with every problem. A query that fails causes no problem.
    """
    project = ProjectQueries(platform, stack, parent=parent).project()
    problems = list(preflight_problems(platform, project))
    if problems:
        raise ConfigError(problems)
    for warning in preflight_warnings(platform, project):
        pulumi.log.warn(warning)
    return project
