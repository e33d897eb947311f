"""Checks an Azure subscription against a stack. Pure, except for the PATH."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.azure.control_plane.access import KUBELOGIN
from pulumi_holdfast.azure.pools import ExistingPool
from pulumi_holdfast.azure.preflight.existing_cluster import ExistingAks, existing_aks_problems
from pulumi_holdfast.azure.preflight.quotas import LocationLimits, quota_uses, size_warnings
from pulumi_holdfast.azure.preflight.subnet import subnet_problems
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.preflight import advice
from pulumi_holdfast.ladder.errors import Problem


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """The subscription of a stack and its deployer, by id.

    `deployer` is the Entra ID object of the caller: a user or a service principal. `signed_in_to` is its tenant. `pools` are
    the scale sets of the stack that exist, by the name of the configuration. `cluster` is the existing cluster that the
    stack uses, None if it creates one. `limits` are those of its location, `subnet_services` the service endpoints of
    its existing subnet; they are None if the query failed, for the reason in `failed_queries`.
    """

    subscription_id: str
    tenant_id: str
    deployer: str
    signed_in_to: str
    pools: Mapping[str, ExistingPool] = field(default_factory=dict[str, "ExistingPool"])
    limits: LocationLimits | None = None
    subnet_services: frozenset[str] | None = None
    cluster: ExistingAks | None = None
    failed_queries: tuple[str, ...] = ()


_SUBSCRIPTION: Final = "azure-native:subscriptionId"
_TENANT: Final = "azure-native:tenantId"


def preflight_problems(platform: AzurePlatform, subscription: Subscription) -> Iterator[Problem]:
    """The problems that stop a stack in this subscription."""
    if subscription.cluster is not None:
        yield from existing_aks_problems(platform, subscription.cluster)
    yield from subnet_problems(platform, subscription.cluster, subscription.subnet_services)
    if not subscription.subscription_id:
        yield Problem(
            field=_SUBSCRIPTION,
            value="nothing, and the credentials have none",
            allowed="the id of a subscription",
            fix="Find it with `az account list --output table`, and run `pulumi config set azure-native:subscriptionId …`.",
        )
    if subscription.tenant_id != subscription.signed_in_to:
        yield Problem(
            field=_TENANT,
            value=f"{format_value(subscription.tenant_id)}, but the credentials are of {subscription.signed_in_to}",
            allowed="the tenant of the credentials, the one that AKS gives access to",
            fix=f"Log in with `az login --tenant {subscription.tenant_id}`, or leave out {_TENANT}.",
        )
    if not subscription.deployer:
        yield Problem(
            field="Azure credentials",
            value="an identity without an object id in Entra ID",
            allowed="a user or a service principal, which the cluster can give access to",
            fix="Log in with `az login`, or as a service principal; check with `az ad signed-in-user show`.",
        )


def preflight_warnings(platform: AzurePlatform, subscription: Subscription) -> Iterator[str]:
    """Quotas that are too small, VM sizes that are not offered, and the checks that did not run: a line each."""
    if subscription.limits is not None:
        yield from size_warnings(platform, subscription.limits)
        yield from advice(quota_uses(platform, subscription.limits))
    if subscription.failed_queries:
        yield f"not checked, because these queries failed: {'; '.join(subscription.failed_queries)}."


def credential_plugin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """The problem of a missing kubelogin, the credential plugin of AKS clusters; None if it is installed.

    `find` returns the path of a command. A cluster without local accounts needs a token from Entra ID. Without the
    plugin, `pulumi up` would create the cluster and then fail ten minutes later, and no object in it could be deleted.
    """
    if find(KUBELOGIN) is not None:
        return None
    return Problem(
        field=KUBELOGIN,
        value="no such command on the PATH of pulumi",
        allowed="Azure's credential plugin, which gets tokens for clients of the cluster",
        fix="Install it with `az aks install-cli`, or from https://azure.github.io/kubelogin/install.html.",
    )
