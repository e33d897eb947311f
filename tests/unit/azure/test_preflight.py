"""Preflight checks of Azure: queries, problems, the reachability of private API servers, cluster names."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

import pytest

from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.azure.pools import CONFIGURATION_TAG, ConfigurationDigest, ExistingPool
from pulumi_holdfast.azure.preflight.checks import Subscription, preflight_problems
from pulumi_holdfast.azure.preflight.existing_cluster import ExistingAks
from pulumi_holdfast.azure.preflight.queries import (
    api_server_of,
    check_subscription,
    connection_error,
    query_subscription,
    unreachable_api_server,
)
from pulumi_holdfast.azure.preflight.subnet import existing_subnet, service_endpoints, subnet_problems
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.configurations import (
    EXISTING_AZURE_NETWORK,
    SUBNET,
    SUBSCRIPTION,
    TENANT,
    fixed_platform,
    nap_document,
    nap_platform,
    read_azure,
    section,
)
from tests.support.fakes.pulumi_engine import asked_of, asking_component

CLIENT_CONFIG = "azure-native:authorization:getClientConfig"
TOKEN = "azure-native:authorization:getClientToken"
CLUSTER = "azure-native:containerservice:getManagedCluster"
AGENT_POOL = "azure-native:containerservice:getAgentPool"
DEPLOYER = "00000000-0000-0000-0000-00000000000d"

#: Without a token, which the fake provider does not have, nothing asks Azure Resource Manager.
UNCHECKED = (
    "Microsoft.Compute/locations/usages/read and Microsoft.Compute/skus/read: the provider has no token for Azure Resource "
    "Manager"
)
FOUND = Subscription(
    subscription_id=SUBSCRIPTION,
    tenant_id=TENANT,
    deployer=DEPLOYER,
    signed_in_to=TENANT,
    failed_queries=(UNCHECKED,),
)


def answers(token: str, _: Json) -> Json:
    """What a subscription answers to each question."""
    return {
        CLIENT_CONFIG: {
            "clientId": "client",
            "objectId": DEPLOYER,
            "subscriptionId": "another-subscription",
            "tenantId": TENANT,
        },
        TOKEN: {"token": ""},
        CLUSTER: {"fqdn": "train.hcp.azmk8s.io", "privateFQDN": "train.privatelink.azmk8s.io"},
    }[token]


def refused_to_answer(_token: str, _arguments: Json) -> Json:
    raise PermissionError("AADSTS700082: The refresh token has expired")


def asking(what: Callable[[], object], answer: Callable[[str, Json], Json] = answers) -> None:
    asked_of(answer, what, stack="azure-dev")


def private(*, public_name: bool = False) -> AzurePlatform:
    access: Json = {"private": True, **({"publicName": True} if public_name else {})}
    return nap_platform(lambda document: section(document, "cluster").update(access=access))


def test_configured_ids_take_precedence_over_those_of_the_credentials() -> None:
    found: list[Subscription] = []
    asking(lambda: found.append(query_subscription(nap_platform(), "azure-dev", parent=asking_component())))
    assert found == [FOUND], "the stack's own subscription; the tenant and the deployer are the credentials'"


def test_missing_ids_come_from_the_credentials() -> None:
    platform = read_azure(nap_document(), subscription=None)
    found: list[Subscription] = []
    asking(lambda: found.append(query_subscription(platform, "azure-dev", parent=asking_component())))
    assert found == [replace(FOUND, subscription_id="another-subscription")], "az account set chooses it"


def test_existing_scale_sets_are_read_with_their_number_of_nodes() -> None:
    def answer(token: str, arguments: Json) -> Json:
        if token != AGENT_POOL:
            return answers(token, arguments)
        if arguments["agentPoolName"] != "cpu":
            raise PermissionError("ERROR CODE: ResourceNotFound")
        assert arguments["resourceName"] == arguments["resourceGroupName"] == "holdfast-azure-dev"
        return {"count": 3, "tags": {CONFIGURATION_TAG: "a.b"}}

    found: list[Subscription] = []
    asking(
        lambda: found.append(query_subscription(fixed_platform(), "azure-dev", parent=asking_component())),
        answer,
    )
    configuration = ConfigurationDigest(replaced="a", updated="b")
    assert found[0].pools == {"cpu": ExistingPool(count=3, configuration=configuration)}


def test_scale_sets_that_cannot_be_read_stop_the_update() -> None:
    def answer(token: str, arguments: Json) -> Json:
        if token == AGENT_POOL:
            raise PermissionError("ERROR CODE: AuthorizationFailed")
        return answers(token, arguments)

    with pytest.raises(ConfigError, match="AuthorizationFailed"):
        asking(lambda: query_subscription(fixed_platform(), "azure-dev", parent=asking_component()), answer)


def test_a_valid_subscription_causes_no_problem() -> None:
    assert not list(preflight_problems(nap_platform(), FOUND))


@pytest.mark.parametrize(
    ("found", "field", "fix"),
    [
        (replace(FOUND, subscription_id=""), "azure-native:subscriptionId", "az account list"),
        (replace(FOUND, tenant_id="other"), "azure-native:tenantId", "az login --tenant other"),
        (replace(FOUND, deployer=""), "Azure credentials", "az login"),
    ],
)
def test_an_unusable_subscription_is_a_problem(found: Subscription, field: str, fix: str) -> None:
    (problem,) = preflight_problems(nap_platform(), found)
    assert problem.field == field
    assert fix in problem.fix


def test_preflight_raises_problems() -> None:
    platform = read_azure(nap_document(), tenant="00000000-0000-0000-0000-0000000000ff")
    with pytest.raises(ConfigError) as error:
        asking(lambda: check_subscription(platform, "azure-dev", parent=asking_component()))
    assert [one.field for one in error.value.problems] == ["azure-native:tenantId"], "before anything is made"


# --- reaching -------------------------------------------------------------------------------------


def reached(
    platform: AzurePlatform, why_not: str | None, answer: Callable[[str, Json], Json] = answers
) -> tuple[Problem | None, list[str]]:
    """What is said of a cluster, and at which hosts it was looked for."""
    knocked: list[str] = []
    found: list[Problem | None] = []

    def at(host: str) -> str | None:
        knocked.append(host)
        return why_not

    asking(lambda: found.append(unreachable_api_server(platform, "azure-dev", at)), answer)
    return found[0], knocked


def test_a_public_cluster_is_not_queried() -> None:
    assert reached(nap_platform(), "timed out") == (None, [])


@pytest.mark.parametrize(
    ("public_name", "host"), [(False, "train.privatelink.azmk8s.io"), (True, "train.hcp.azmk8s.io")]
)
def test_a_private_cluster_that_does_not_answer_is_a_problem(*, public_name: bool, host: str) -> None:
    problem, knocked = reached(private(public_name=public_name), "timed out")
    assert knocked == [host]
    assert problem is not None, "each object in it would be waited for in vain"
    assert problem.field == "holdfast:platform.cluster.access.private"
    assert f"{host} does not answer (timed out)" in problem.value


def test_a_cluster_that_answers_or_does_not_exist_causes_no_problem() -> None:
    problem, knocked = reached(private(), None)
    assert (problem, len(knocked)) == (None, 1)
    assert reached(private(), "timed out", refused_to_answer) == (None, [])
    found: list[str | None] = []
    asking(
        lambda: found.append(api_server_of("train", by_public_name=True)),
        lambda _token, _arguments: {"fqdn": "", "privateFQDN": "p"},
    )
    assert found == [None]


def test_connection_error_is_none_if_the_host_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    class Door:
        def close(self) -> None:
            opened.append("closed again")

    def connect(address: tuple[str, int], timeout: float) -> Door:
        opened.append((address, timeout))
        if address[0] == "nowhere":
            raise socket.gaierror(-2, "Name or service not known")
        if address[0] == "slow":
            raise TimeoutError
        return Door()

    monkeypatch.setattr(socket, "create_connection", connect)
    assert connection_error("here") is None
    assert opened == [(("here", 443), 5.0), "closed again"]
    assert connection_error("nowhere") == "Name or service not known"
    assert connection_error("slow") == "TimeoutError"


# --- names ----------------------------------------------------------------------------------------


def on_existing_subnet() -> AzurePlatform:
    return nap_platform(lambda document: document.update(network={**EXISTING_AZURE_NETWORK}))


def test_service_endpoints_are_read_from_the_subnets_own_subscription() -> None:
    asked: list[str] = []

    def get(url: str) -> Json:
        asked.append(url)
        return {
            "properties": {
                "serviceEndpoints": [{"service": "Microsoft.Sql"}, {"service": "Microsoft.Storage"}]
            }
        }

    assert service_endpoints(SUBNET, get) == {"Microsoft.Sql", "Microsoft.Storage"}
    assert asked == [f"https://management.azure.com{SUBNET}?api-version=2024-05-01"]
    assert service_endpoints(SUBNET, lambda _: {"properties": {}}) == set()


@pytest.mark.parametrize("services", [{"Microsoft.Storage"}, {"Microsoft.Storage.Global"}, None])
def test_a_subnet_with_an_endpoint_for_storage_is_accepted(services: set[str] | None) -> None:
    found = replace(FOUND, subnet_services=None if services is None else frozenset(services))
    assert not list(preflight_problems(on_existing_subnet(), found))


def test_a_subnet_without_an_endpoint_for_storage_is_refused_with_the_command() -> None:
    found = replace(FOUND, subnet_services=frozenset({"Microsoft.Sql"}))
    (problem,) = preflight_problems(on_existing_subnet(), found)
    assert problem.field.endswith("network.subnetId"), "Azure would refuse the storage account's rule"
    assert f"--ids {SUBNET} --service-endpoints Microsoft.Sql Microsoft.Storage" in problem.fix


def test_the_subnet_of_an_existing_cluster_needs_the_endpoint_too() -> None:
    platform = read_azure(
        {
            **{key: value for key, value in nap_document().items() if key != "network"},
            "cluster": {"existing": "shared", "resourceGroup": "platform"},
        }
    )
    cluster = ExistingAks(name="shared", resource_group="platform", subnet_id=SUBNET)
    assert existing_subnet(platform, cluster) == SUBNET
    (problem,) = subnet_problems(platform, cluster, frozenset())
    assert problem.field == "holdfast:platform.cluster.existing"
    assert f"--ids {SUBNET} --service-endpoints Microsoft.Storage" in problem.fix
    managed = replace(cluster, subnet_id="")
    assert existing_subnet(platform, managed) is None


def test_only_stacks_on_an_existing_subnet_query_it() -> None:
    found: list[Subscription] = []
    asking(
        lambda: found.append(query_subscription(on_existing_subnet(), "azure-dev", parent=asking_component()))
    )
    assert any("subnets/read" in query for query in found[0].failed_queries), (
        "the preview says what is not checked"
    )
    asking(lambda: found.append(query_subscription(nap_platform(), "azure-dev", parent=asking_component())))
    assert not any("subnets/read" in query for query in found[1].failed_queries), (
        "its subnet has the endpoint"
    )
