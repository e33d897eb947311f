"""What holds for the preflight checks of every cloud: credential plugins, failed queries, refusals."""

from collections.abc import Callable
from typing import NamedTuple

import pulumi
import pytest

from pulumi_holdfast.aws.preflight import checks as aws
from pulumi_holdfast.aws.preflight.queries import check_account
from pulumi_holdfast.azure.preflight import checks as azure
from pulumi_holdfast.azure.preflight.queries import check_subscription
from pulumi_holdfast.gcp.preflight import checks as gcp
from pulumi_holdfast.gcp.preflight.queries import check_project
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.configurations import (
    GCP_KEY,
    aws_platform,
    gcp_platform,
    nap_document,
    read_azure,
    section,
)
from tests.support.fakes import aws_account, gcp_project
from tests.support.fakes.pulumi_engine import asked_of, asking_component

Answer = Callable[[str, Json], Json]

CLIENT_CONFIG = "azure-native:authorization:getClientConfig"


class Cloud(NamedTuple):
    """The preflight of a cloud: runs it with these answers, and what it needs on the user's machine."""

    check: Callable[[Answer], None]
    answers: Answer
    plugin_problem: Callable[[Callable[[str], str | None]], Problem | None]
    plugin: str
    field: str
    install: str
    required: tuple[str, ...]
    credentials: str
    login: str
    optional: tuple[str, ...] = ()


def check_gcp(answer: Answer) -> None:
    platform = gcp_platform(lambda d: section(d, "checkpoints").update(kmsKey=GCP_KEY))
    gcp_project.asked(lambda: check_project(platform, "gcp-dev", parent=asking_component()), answer)


def check_azure(answer: Answer) -> None:
    platform = read_azure(nap_document(), subscription=None)
    asked_of(
        answer,
        lambda: check_subscription(platform, "azure-dev", parent=asking_component()),
        stack="azure-dev",
    )


def no_answers(_token: str, _arguments: Json) -> Json:
    return {}


def check_aws(answer: Answer) -> None:
    aws_account.asked(lambda: check_account(aws_platform(), "aws-dev", parent=asking_component()), answer)


AWS = (aws_account.IDENTITY, aws_account.ROLES)
AWS_OPTIONAL = (
    aws_account.CLUSTERS,
    aws_account.TAGGED,
    aws_account.LOG_GROUPS,
    aws_account.AVAILABILITY_ZONES,
    aws_account.OFFERINGS,
    aws_account.TYPES,
    aws_account.QUOTA,
)
GCP = (gcp_project.PROJECT_DATA, gcp_project.STORAGE_AGENT)
GCP_OPTIONAL = (
    gcp_project.ZONE_NAMES,
    gcp_project.TYPES,
    gcp_project.VERSIONS,
    gcp_project.SUBNETWORK,
    gcp_project.BUCKETS,
    gcp_project.QUOTAS,
)
CLOUDS = {
    "aws": Cloud(check_aws, aws_account.answers, aws.credential_plugin_problem, "aws", "aws", "Install it", AWS, "AWS credentials", "pulumi config set aws:profile", AWS_OPTIONAL),
    "azure": Cloud(check_azure, no_answers, azure.credential_plugin_problem, "kubelogin", "kubelogin", "az aks install-cli", (CLIENT_CONFIG,), "Azure credentials", "az login"),
    "gcp": Cloud(check_gcp, gcp_project.answers, gcp.credential_plugin_problem, "gke-gcloud-auth-plugin", "gke-gcloud-auth-plugin", "gcloud components install gke-gcloud-auth-plugin", GCP, "Google Cloud credentials", "gcloud auth application-default login", GCP_OPTIONAL),
}  # fmt: skip


def silent_about(cloud: str, token_of_query: str) -> Answer:
    def answer(token: str, arguments: Json) -> Json:
        if token == token_of_query:
            raise PermissionError("Error 403: you may not ask")
        return CLOUDS[cloud].answers(token, arguments)

    return answer


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", logged.append)
    return logged


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_missing_credential_plugin_is_a_problem_with_its_installation(cloud: str) -> None:
    looked_for: list[str] = []

    def find(command: str) -> str:
        looked_for.append(command)
        return f"/usr/bin/{command}"

    assert CLOUDS[cloud].plugin_problem(find) is None
    assert looked_for == [CLOUDS[cloud].plugin]
    problem = CLOUDS[cloud].plugin_problem(lambda _: None)
    assert problem is not None, "otherwise the cluster is created without access to it"
    assert problem.field == CLOUDS[cloud].field
    assert CLOUDS[cloud].install in problem.fix


@pytest.mark.parametrize(
    ("cloud", "token"), [(cloud, each) for cloud in CLOUDS for each in CLOUDS[cloud].required]
)
def test_a_failed_required_query_is_one_problem_of_the_credentials(cloud: str, token: str) -> None:
    with pytest.raises(ConfigError) as error:
        CLOUDS[cloud].check(silent_about(cloud, token))
    (problem,) = error.value.problems
    assert problem.field == CLOUDS[cloud].credentials
    assert "you may not ask" in problem.value
    assert CLOUDS[cloud].login in problem.fix


@pytest.mark.parametrize(
    ("cloud", "token"), [(cloud, each) for cloud in CLOUDS for each in CLOUDS[cloud].optional]
)
def test_another_failed_query_causes_one_warning_and_no_problem(
    cloud: str, token: str, warnings: list[str]
) -> None:
    CLOUDS[cloud].check(silent_about(cloud, token))
    (warning,) = warnings
    assert "you may not ask" in warning
    assert cloud == "aws" or warning.count("you may not ask") == 1


def test_preflight_raises_all_problems_without_warnings(warnings: list[str]) -> None:
    def without_quota(token: str, arguments: Json) -> Json:
        return {"value": 8.0} if token == aws_account.QUOTA else aws_account.answers(token, arguments)

    with pytest.raises(ConfigError) as error:
        check_aws(without_quota)
    fields = {problem.field for problem in error.value.problems}
    assert fields == {f"holdfast:platform.pools[{index}]" for index in (2, 3)}
    platform = gcp_platform(lambda d: section(d, "cluster").update(channel="stable"))
    with pytest.raises(ConfigError) as error:
        gcp_project.asked(
            lambda: check_project(platform, "gcp-dev", parent=asking_component()),
            silent_about("gcp", gcp_project.ZONE_NAMES),
        )
    assert [each.field for each in error.value.problems] == ["holdfast:platform.cluster.channel"]
    assert not warnings, "nothing else is said of a stack that cannot be"
