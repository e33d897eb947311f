"""Asks Azure. The only module of the program that does; every question is a read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_azure_native.authorization import get_client_config
from pulumi_azure_native.containerservice import get_managed_cluster

from holdfast.infra.azure.preflight.facts import Subscription
from holdfast.infra.questions import Questions

if TYPE_CHECKING:
    from holdfast.infra.azure.config.stack import AzurePlatform


def ask(platform: AzurePlatform) -> Subscription:
    """The subscription of a stack: what is written beside it, else what its credentials lead to.

    Raises ConfigError where nobody answers. Azure is asked for no more: what a location offers (versions of Kubernetes, VM
    sizes, vCPUs of a quota) no function of the provider tells.
    """
    questions = Questions(
        credentials="Azure credentials",
        fix="Log in with `az login`, or set ARM_CLIENT_ID and what belongs to it; `az account show` shows who you are.",
    )
    client = questions.needed("authorization:getClientConfig", get_client_config)
    return Subscription(
        subscription_id=platform.subscription_id or client.subscription_id,
        tenant_id=platform.tenant_id or client.tenant_id,
        deployer=client.object_id,
        signed_in_to=client.tenant_id,
    )


def api_server_of(cluster_name: str, *, by_public_name: bool) -> str | None:
    """The name that the API server of a stack's cluster is called by; None where there is none yet, or nobody says."""
    try:
        cluster = get_managed_cluster(resource_group_name=cluster_name, resource_name=cluster_name)
    except Exception:  # noqa: BLE001 - the SDK raises nothing narrower, and a new stack has no cluster
        return None
    return (cluster.fqdn if by_public_name else cluster.private_fqdn) or None
