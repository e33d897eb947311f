"""What a subscription's answers mean for a stack. Pure."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.components.cluster.aks.access import KUBELOGIN
from holdfast.infra.config.errors import format_value
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """Where a stack is made and who makes it, each by its id.

    `deployer` is whoever runs `pulumi`, as Entra ID knows them: a user, or the principal of a pipeline. `signed_in_to` is
    the tenant they are in.
    """

    subscription_id: str
    tenant_id: str
    deployer: str
    signed_in_to: str


_SUBSCRIPTION: Final = "azure-native:subscriptionId"
_TENANT: Final = "azure-native:tenantId"


def preflight_problems(subscription: Subscription) -> Iterator[Problem]:
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
            value=f"{format_value(subscription.tenant_id)}, while the credentials are of {subscription.signed_in_to}",
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


def credential_plugin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """Why nobody here would get into the cluster; None where kubelogin is there.

    `find` tells the path of a command. A cluster without local accounts lets in nobody without a token of Entra ID's: it
    would be made, ten minutes later nothing could be put into it, and nothing of it could be read or destroyed.
    """
    if find(KUBELOGIN) is not None:
        return None
    return Problem(
        field=KUBELOGIN,
        value="no such command on the PATH of whoever runs pulumi",
        allowed="Azure's plugin, which gets the tokens that clients of the cluster show",
        fix="Install it with `az aks install-cli`, or from https://azure.github.io/kubelogin/install.html.",
    )
