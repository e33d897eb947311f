"""The quotas of an Azure subscription and what its other machines use of them, from the answers of `az`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.azure.preflight.quotas import location_limits, own_machines, quota_uses
from pulumi_holdfast.config.naming import aks_cluster_name, aks_node_group
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.config.preflight import QuotaUse, Runner
    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.labels import CapacityType

#: Azure's error code for a resource group that does not exist.
_NO_GROUP: Final = "ResourceGroupNotFound"


def subscription_quota_uses(platform: AzurePlatform, stack: str, runner: Runner) -> tuple[QuotaUse, ...]:
    """Each quota that machines of the stack count against.

    A query that fails, such as one without permission, leaves its values unknown.
    """

    def get(url: str) -> Json:
        answer = runner(("az", "rest", "--method", "get", "--url", url))
        if answer.code != 0:
            raise LookupError(" ".join((answer.errors or answer.output).split()))
        return mapping(cast("JsonValue", json.loads(answer.output or "{}")))

    # `az rest` replaces this with the subscription of `az account show`.
    subscription = platform.subscription_id or "{subscriptionId}"
    try:
        limits = location_limits(subscription, platform.location, get)
    except LookupError as error:
        return quota_uses(platform, None, reason=str(error))
    own: Mapping[tuple[str, CapacityType], int] | None
    try:
        own = own_machines(subscription, aks_node_group(aks_cluster_name(stack)), get)
    except LookupError as error:
        # A new stack has no resource group, and so no machines.
        own = {} if _NO_GROUP in str(error) else None
    return quota_uses(platform, limits, own=own)
