"""Checks the Azure subscription before a training cluster registers its parts: its identity, its tenant, who deploys."""

from __future__ import annotations

import pulumi

from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.azure.preflight.checks import Subscription, preflight_problems, preflight_warnings
from pulumi_holdfast.azure.preflight.queries import query_subscription
from pulumi_holdfast.ladder.errors import ConfigError

__all__ = ["Subscription", "check_subscription"]


def check_subscription(platform: AzurePlatform, stack: str, *, parent: pulumi.Resource) -> Subscription:
    """Query the subscription with the provider of the component `parent`, and check that it can hold the stack.

    Logs warnings to the engine; raises ConfigError with every problem.
    """
    subscription = query_subscription(platform, stack, parent=parent)
    problems = list(preflight_problems(platform, subscription))
    if problems:
        raise ConfigError(problems)
    for warning in preflight_warnings(platform, subscription):
        pulumi.log.warn(warning)
    return subscription
