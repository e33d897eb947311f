"""Checks the AWS account before a training cluster registers its parts: identity, zones, quotas and offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.aws.preflight.checks import Account, preflight_problems, preflight_warnings
from pulumi_holdfast.aws.preflight.queries import AccountQueries
from pulumi_holdfast.ladder.errors import ConfigError

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform

__all__ = ["Account", "check_account"]


def check_account(platform: AwsPlatform, stack: str, *, parent: pulumi.Resource) -> Account:
    """Query the account of the provider of the component `parent`, and check that it can hold the stack of this name.

    Logs warnings to the engine; raises ConfigError with every problem. A query that fails causes no problem.
    """
    account = AccountQueries(platform, stack, parent=parent).account()
    problems = list(preflight_problems(platform, account))
    if problems:
        raise ConfigError(problems)
    for warning in preflight_warnings(platform, account):
        pulumi.log.warn(warning)
    return account
