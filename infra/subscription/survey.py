"""Sees whether a subscription is fit for a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.subscription.findings import refusals
from infra.subscription.lookups import ask
from scheduling.errors import ConfigError

if TYPE_CHECKING:
    from infra.config.azure import AzurePlatform
    from infra.subscription.facts import Subscription


def survey(platform: AzurePlatform) -> Subscription:
    """The subscription of a stack, seen fit for it. Raises ConfigError with everything that cannot work there."""
    subscription = ask(platform)
    wrong = list(refusals(subscription))
    if wrong:
        raise ConfigError(wrong)
    return subscription
