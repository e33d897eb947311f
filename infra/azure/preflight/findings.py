"""What a subscription's answers mean for a stack. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.azure.preflight.facts import Subscription

_SUBSCRIPTION: Final = "azure-native:subscriptionId"
_TENANT: Final = "azure-native:tenantId"


def refusals(subscription: Subscription) -> Iterator[Problem]:
    """What cannot work: nothing should be made before it is mended."""
    if not subscription.subscription_id:
        yield Problem(
            field=_SUBSCRIPTION,
            value="nothing, and the credentials lead to none",
            allowed="the id of a subscription",
            fix="`az account list --output table` shows yours: `pulumi config set azure-native:subscriptionId …`.",
        )
    if subscription.tenant_id != subscription.signed_in_to:
        yield Problem(
            field=_TENANT,
            value=f"{shown(subscription.tenant_id)}, while the credentials are of {subscription.signed_in_to}",
            allowed="the tenant in which whoever runs pulumi is, which is the one that AKS lets in",
            fix=f"Log in there with `az login --tenant {subscription.tenant_id}`, or leave {_TENANT} out.",
        )
    if not subscription.deployer:
        yield Problem(
            field="Azure credentials",
            value="somebody without an object id in Entra ID",
            allowed="a user or a service principal, whom the cluster can let in",
            fix="Log in with `az login`, or as a service principal; `az ad signed-in-user show` shows who you are.",
        )
