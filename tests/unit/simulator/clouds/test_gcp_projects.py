"""What the stand-in answers to questions about a project."""

from collections.abc import Mapping

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.pulumi.values import Properties, Value, from_struct, to_struct
from tests.support.provider_calls import Provider


@pytest.fixture
def configured(gcp: Provider) -> Provider:
    """A provider with a project and a region of its own."""
    arguments = to_struct({"project": "ml-dev", "region": "europe-west4"})
    gcp.Configure(provider_pb2.ConfigureRequest(args=arguments))
    return gcp


def asked(provider: Provider, token: str, arguments: Properties) -> Mapping[str, Value]:
    """The answer to a question."""
    answer = provider.Invoke(provider_pb2.InvokeRequest(tok=token, args=to_struct(arguments)))
    return from_struct(getattr(answer, "return"))


def test_a_project_has_a_number_which_principals_are_named_with(gcp: Provider) -> None:
    found = asked(gcp, "gcp:organizations/getProject:getProject", {"projectId": "ml-prod"})
    assert found["projectId"] == "ml-prod", "the one that was asked about"
    assert found["number"] == "123456789012", "digits, as text"


def test_the_providers_project_is_the_one_that_is_meant(configured: Provider) -> None:
    assert asked(configured, "gcp:organizations/getProject:getProject", {})["projectId"] == "ml-dev", (
        "by default"
    )


def test_a_region_has_its_zones(configured: Provider) -> None:
    question = "gcp:compute/getZones:getZones"
    assert asked(configured, question, {"region": "us-central1"})["names"] == [
        "us-central1-a",
        "us-central1-b",
        "us-central1-c",
        "us-central1-f",
    ], "which are not numbered through everywhere"
    assert asked(configured, question, {})["region"] == "europe-west4", "by default the provider's"


def test_cloud_storage_says_who_it_is(configured: Provider) -> None:
    found = asked(configured, "gcp:storage/getProjectServiceAccount:getProjectServiceAccount", {})
    agent = "service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
    assert (found["emailAddress"], found["member"]) == (agent, f"serviceAccount:{agent}"), (
        "to be granted a key"
    )
    assert found["project"] == "ml-dev", "in the provider's project"


@pytest.mark.parametrize(
    ("question", "arguments", "who"),
    [
        ("gcp:compute/getMachineTypes:getMachineTypes", {"zone": "us-central1-a"}, "us-central1-a sells"),
        ("gcp:container/getEngineVersions:getEngineVersions", {"location": "us-central1"}, "us-central1 has"),
    ],
)
def test_what_only_google_knows_is_not_made_up(
    configured: Provider, question: str, arguments: Properties, who: str
) -> None:
    with pytest.raises(grpc.RpcError, match="alone does") as error:
        asked(configured, question, arguments)
    assert who in str(error.value), "the program goes on without, and says what was not checked"
