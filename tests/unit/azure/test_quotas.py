"""Quotas and VM sizes of an Azure subscription: what counts against what, what is granted, and what others use."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.message import Message
from math import inf
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit

import pytest

from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.azure.preflight import queries
from pulumi_holdfast.azure.preflight.checks import Subscription, preflight_warnings
from pulumi_holdfast.azure.preflight.quotas import LocationLimits, location_limits, subscription_quota_uses
from pulumi_holdfast.config.preflight import CommandResult, QuotaUse, report
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.azure_stacks import PLATFORMS

DEV, PROD = PLATFORMS["azure-dev"](), PLATFORMS["azure-prod"]()
USAGES = "providers/Microsoft.Compute/locations/eastus2/usages"
SKUS = "providers/Microsoft.Compute/skus"
MACHINES, SCALE_SETS = "virtualMachines", "virtualMachineScaleSets"


def usage(name: str, text: str, limit: int, used: int = 0) -> Json:
    return {
        "unit": "Count",
        "currentValue": used,
        "limit": limit,
        "name": {"value": name, "localizedValue": text},
    }


QUOTAS = (
    usage("cores", "Total Regional vCPUs", 100, 30),
    usage("lowPriorityCores", "Total Regional Low-priority vCPUs", 3),
    # Azure spells a family in both ways.
    usage("standardDDSv5Family", "Standard DDSv5 Family vCPUs", 20, 8),
    usage("standardDADSv5Family", "Standard DADSv5 Family vCPUs", -1),
    usage("Standard NDAMSv4_A100Family", "Standard NDAMSv4_A100Family vCPUs", 768),
)


def size(name: str, family: str, *restrictions: str) -> Json:
    given: Json = {"name": name, "resourceType": "virtualMachines", "family": family}
    return {
        **given,
        "restrictions": [
            {"type": each, "reasonCode": "NotAvailableForSubscription"} for each in restrictions
        ],
    }


SIZES = (
    *(size(f"Standard_D{count}ds_v5", "standardDDSv5Family") for count in (2, 4, 8, 16, 32)),
    *(size(f"Standard_D{count}ads_v5", "StandardDADSv5Family") for count in (2, 4, 8, 16)),
    *(size(f"Standard_D{count}ds_v4", "standardDDSv4Family", "Location") for count in (2, 4, 8, 16)),
    *(size(f"Standard_D{count}ads_v6", "standardDADSv6Family", "Zone") for count in (2, 4, 8, 16)),
    size("Standard_ND96amsr_A100_v4", "Standard NDAMSv4_A100Family"),
    {"name": "Standard_D2ds_v5", "resourceType": "disks"},
)


class FakeManager:
    """Azure Resource Manager, a page at a time; `refused` are parts of URLs that it does not answer."""

    def __init__(
        self, *refused: str, machines: tuple[Json, ...] = (), scale_sets: tuple[Json, ...] = ()
    ) -> None:
        self.refused = refused
        self.urls: list[str] = []
        self.lists = {USAGES: QUOTAS, SKUS: SIZES, MACHINES: machines, SCALE_SETS: scale_sets}

    def get(self, url: str) -> Json:
        self.urls.append(url)
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        if any(path.endswith(each) for each in self.refused):
            raise LookupError('Forbidden({"error":{"code":"AuthorizationFailed"}})')
        items = next(found for end, found in self.lists.items() if path.endswith(end))
        if path.endswith(USAGES) and "$skiptoken" not in query:
            return {"value": items[:2], "nextLink": f"{url}&$skiptoken=2"}
        return {"value": items[2:] if path.endswith(USAGES) else items}

    def run(self, words: tuple[str, ...]) -> CommandResult:
        assert words[:5] == ("az", "rest", "--method", "get", "--url")
        try:
            return CommandResult(code=0, output=json.dumps(self.get(words[5])), errors="")
        except LookupError as error:
            return CommandResult(code=3, output="", errors=f"ERROR: {error}")


def uses(platform: AzurePlatform, manager: FakeManager) -> Mapping[str, QuotaUse]:
    found = subscription_quota_uses(platform, "azure-dev", manager.run)
    return {use.name: use for use in found}


def test_each_quota_counts_system_nodes_spot_and_fallback_pools() -> None:
    found = uses(DEV, FakeManager())
    everything = found["Total Regional vCPUs"]
    assert everything.fields == ("cluster.systemNodes", "pools[0]")
    assert (everything.asked, everything.granted) == (2 * 4 + 4 * 16, 100)
    family = found["Standard DDSv5 Family vCPUs"]
    assert (family.asked, family.least) == (72, 8)
    assert found["Standard DADSv5 Family vCPUs"].least == 0
    assert found["Standard DADSv5 Family vCPUs"].granted == inf
    spot = found["Total Regional Low-priority vCPUs"]
    assert (spot.fields, spot.asked, spot.least) == (("pools[1]",), 64, 2)


def test_machines_of_others_are_all_without_those_of_the_stack() -> None:
    nap: Json = {"properties": {"hardwareProfile": {"vmSize": "Standard_D4ds_v5"}, "priority": "Regular"}}
    spot: Json = {"properties": {"hardwareProfile": {"vmSize": "Standard_D2ads_v5"}, "priority": "Spot"}}
    system: Json = {
        "sku": {"name": "Standard_D4ds_v5", "capacity": 1},
        "properties": {"virtualMachineProfile": {}},
    }
    manager = FakeManager(machines=(nap, spot), scale_sets=(system,))
    found = uses(DEV, manager)
    assert found["Total Regional vCPUs"].used == 30 - 8
    assert found["Standard DDSv5 Family vCPUs"].used == 0
    assert found["Standard DADSv5 Family vCPUs"].used == 0
    groups = {url for url in manager.urls if "resourceGroups" in url}
    assert all("/resourceGroups/holdfast-azure-dev-nodes/" in url for url in groups)


def test_a_quota_below_one_machine_is_an_error_and_one_below_full_pools_a_warning() -> None:
    platform = PROD
    lines = list(report(tuple(uses(platform, FakeManager()).values())))
    errors = [line for line in lines if line.startswith("error: ")]
    assert (
        'error: "Total Regional Low-priority vCPUs" is too small for pools[1], pools[2], pools[3]'
        in errors[-1]
    )
    assert "az quota update --resource-name lowPriorityCores --resource-type lowPriority" in errors[-1]
    assert any("limit-object value=1792 " in line for line in errors)
    assert any("NDAMSv4_A100Family" in line for line in lines)


@pytest.mark.parametrize("refused", [USAGES, SKUS])
def test_a_query_without_permission_leaves_values_unknown(refused: str) -> None:
    found = uses(DEV, FakeManager(refused))
    assert not any(use.blocks or use.is_short for use in found.values())
    lines = list(report(tuple(found.values())))
    warned = [line for line in lines if line.startswith("warning: ")]
    assert len(warned) == len(found)
    assert "AuthorizationFailed" in warned[0]


def test_machines_that_cannot_be_listed_count_as_unknown_use() -> None:
    assert {use.used for use in uses(DEV, FakeManager(MACHINES)).values()} == {None}


def test_requests_name_subscription_location_and_version() -> None:
    manager = FakeManager()
    uses(PROD, manager)
    subscription = f"https://management.azure.com/subscriptions/{PROD.subscription_id}/"
    assert all(url.startswith(subscription) for url in manager.urls)
    (skus,) = [url for url in manager.urls if urlsplit(url).path.endswith(SKUS)]
    assert parse_qs(urlsplit(skus).query)["$filter"] == ["location eq 'eastus2'"]
    assert all("api-version" in parse_qs(urlsplit(url).query) for url in manager.urls)


def limits() -> LocationLimits:
    return location_limits("s", "eastus2", FakeManager().get)


def subscription(**fields: object) -> Subscription:
    found = Subscription(subscription_id="s", tenant_id="t", deployer="d", signed_in_to="t")
    return replace(found, **fields)  # pyright: ignore[reportArgumentType] - any fields


def test_an_update_warns_about_quotas_and_sizes_and_continues() -> None:
    lines = list(preflight_warnings(DEV, subscription(limits=limits())))
    sizes = [line for line in lines if "does not offer" in line]
    (line,) = sizes
    assert "pools[1]: eastus2 does not offer Standard_D2ds_v4" in line
    assert "ads_v6" not in line
    assert "the pool uses its other VM sizes" in line
    assert any('quota "Standard DDSv5 Family vCPUs" is too small for full pools' in line for line in lines)
    assert not list(preflight_warnings(DEV, subscription()))
    (warning,) = preflight_warnings(DEV, subscription(failed_queries=("skus: denied",)))
    assert "skus: denied" in warning


def test_the_token_of_the_provider_is_sent_to_resource_manager_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str | None]] = []

    def answer(request: object, timeout: float) -> io.BytesIO:
        assert timeout
        assert isinstance(request, queries.Request)
        sent.append((request.full_url, request.get_header("Authorization")))
        if "denied" in request.full_url:
            raise HTTPError(
                request.full_url, 403, "Forbidden", Message(), io.BytesIO(b'{"code": "AuthorizationFailed"}')
            )
        return io.BytesIO(b'{"value": []}')

    monkeypatch.setattr(queries, "urlopen", answer)
    get: Callable[[str], Json] = queries.getter("secret")
    assert get("https://management.azure.com/x") == {"value": []}
    with pytest.raises(LookupError, match=r"403 .*AuthorizationFailed"):
        get("https://management.azure.com/denied")
    with pytest.raises(LookupError, match="is not a URL of Azure Resource Manager"):
        get("https://management.azure.com.example.org/x")
    assert [token for _, token in sent] == ["Bearer secret"] * 2
