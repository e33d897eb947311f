"""Sees whether a subscription is fit for a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.infra.azure.preflight.checks import refusals
from holdfast.infra.azure.preflight.queries import ask
from holdfast.scheduling.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.infra.azure.config.stack import AzurePlatform
    from holdfast.infra.azure.preflight.checks import Subscription


def survey(platform: AzurePlatform) -> Subscription:
    """The subscription of a stack, seen fit for it. Raises ConfigError with everything that cannot work there."""
    subscription = ask(platform)
    wrong = list(refusals(subscription))
    if wrong:
        raise ConfigError(wrong)
    return subscription
