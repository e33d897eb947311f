"""Asks the account, refuses what cannot work in it, and warns of what may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.infra.aws.preflight.checks import refusals, warnings
from holdfast.infra.aws.preflight.queries import Lookups
from holdfast.scheduling.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.aws.preflight.checks import Account


def survey(platform: AwsPlatform) -> Account:
    """The account that a stack's credentials lead to, seen fit for the stack.

    Warns on the engine's log; raises ConfigError with everything that cannot work there. What the account does not
    answer refuses nothing.
    """
    account = Lookups(platform).account()
    wrong = list(refusals(platform, account))
    if wrong:
        raise ConfigError(wrong)
    for warning in warnings(platform, account):
        pulumi.log.warn(warning)
    return account
