"""`holdfast bootstrap`: what exists is left alone, what does not is made, and every command is one that AWS knows."""

import argparse
import json
import shlex
from dataclasses import dataclass, field

import pytest

from pulumi_holdfast.cli.bootstrap import command
from pulumi_holdfast.cli.bootstrap.command import OUTPUT, BootstrapPlan, bootstrap, cloud_plan, plan_of
from pulumi_holdfast.config.preflight import CommandResult, Words, run_command
from pulumi_holdfast.ladder.errors import ConfigError
from tests.support.aws_commands import option_problems
from tests.support.doc_pages import DocPage

PLANS = {
    "aws": cloud_plan("aws", "acme-state", "us-west-2", "123456789012"),
    "azure": cloud_plan("azure", "acme-state", "eastus2", "00000000-0000-0000-0000-000000000001"),
    "gcp": cloud_plan("gcp", "acme-state", "us-central1", "acme"),
}
every_cloud = pytest.mark.parametrize("cloud", PLANS)


@dataclass
class FakeCloud:
    """A cloud in which a thing exists once its last command has run; `fails_at` is the number of the command that fails."""

    plan: BootstrapPlan
    fails_at: int | None = None
    made: list[Words] = field(default_factory=list[Words])

    def __call__(self, words: Words) -> CommandResult:
        sought = next((step for step in self.plan.steps if step.find == words), None)
        if sought is not None:
            last = tuple(word.replace(OUTPUT, "made-1") for word in sought.make[-1])
            found = last in self.made
            return CommandResult(
                code=0 if found else 1, output="made-1", errors="" if found else "(ResourceNotFound)"
            )
        if len(self.made) == self.fails_at:
            return CommandResult(code=1, output="", errors="AccessDenied")
        self.made.append(words)
        return CommandResult(code=0, output="made-1", errors="")


def ran(cloud: str, runner: FakeCloud) -> list[str]:
    lines: list[str] = []
    bootstrap(PLANS[cloud], runner, report=lines.append)
    return lines


def changing(cloud: str) -> int:
    return sum(len(step.make) for step in PLANS[cloud].steps)


@every_cloud
def test_everything_is_made_once_and_a_second_run_makes_nothing_again(cloud: str) -> None:
    fake = FakeCloud(plan=PLANS[cloud])
    first = ran(cloud, fake)
    assert len(fake.made) == changing(cloud)
    assert not [words for words in fake.made if OUTPUT in " ".join(words)]
    second = ran(cloud, fake)
    settings = [words for step in PLANS[cloud].steps if step.find is None for words in step.make]
    assert len(fake.made) == changing(cloud) + len(settings)
    assert first[-1] == second[-1]
    assert f'pulumi login "{PLANS[cloud].login}"' in first[-1]
    assert PLANS[cloud].secrets_provider in first[-1]


def test_a_role_precedes_the_container_and_the_key_that_need_it_on_azure() -> None:
    steps = [step.what for step in PLANS["azure"].steps]
    needs = {
        "container state": "role Storage Blob Data Contributor",
        "key pulumi": "role Key Vault Crypto Officer",
    }
    for made, role in needs.items():
        assert steps.index(role) < steps.index(made)
    for step in PLANS["azure"].steps:
        if step.what in needs.values():
            assert step.make[-1][-4:-2] == ("--assignee-object-id", "00000000-0000-0000-0000-000000000001")


@every_cloud
def test_a_dry_run_prints_every_command_without_the_clouds_command_line(
    cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    project = ("--project", "my-project") if cloud == "gcp" else ()
    words = (cloud, "--name", "acme-state", "--region", "us-west-2", *project, "--dry-run")
    assert command.run(arguments(*words)) == 0
    said = capsys.readouterr().out
    owner = {"aws": "ACCOUNT", "azure": "USER_OBJECT_ID", "gcp": "my-project"}[cloud]
    plan = cloud_plan(cloud, "acme-state", "us-west-2", owner)
    assert all(shlex.join(made) in said for step in plan.steps for made in step.make)
    assert plan.login in said


@every_cloud
def test_a_failed_command_is_a_problem_and_the_next_run_continues(cloud: str) -> None:
    whole = FakeCloud(plan=PLANS[cloud])
    ran(cloud, whole)
    for number in range(changing(cloud)):
        fake = FakeCloud(plan=PLANS[cloud], fails_at=number)
        with pytest.raises(ConfigError, match="AccessDenied") as refused:
            ran(cloud, fake)
        assert "then run the command again" in str(refused.value)
        fake.fails_at = None
        ran(cloud, fake)
        assert {*fake.made} == {*whole.made}, f"after a failure at command {number} nothing is missing"


@every_cloud
def test_an_answer_that_is_no_absence_is_refused(cloud: str) -> None:
    def forbidden(words: Words) -> CommandResult:
        return CommandResult(
            code=254, output="", errors="An error occurred (403) when calling HeadBucket: Forbidden"
        )

    plan = BootstrapPlan(steps=tuple(s for s in PLANS[cloud].steps if s.find), login="", secrets_provider="")
    with pytest.raises(ConfigError, match="Forbidden"):
        bootstrap(plan, forbidden, report=lambda _: None)


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "cn-north-1", "us-gov-west-1"])
def test_aws_knows_every_operation_and_option(region: str) -> None:
    plan = cloud_plan("aws", "acme-state", region, "123456789012")
    for words in (each for step in plan.steps for each in (*step.make, *((step.find,) if step.find else ()))):
        assert list(option_problems(words)) == [], f"{words[2]}: AWS has another form"
    created = next(words for step in plan.steps for words in step.make if "create-bucket" in words)
    assert ("--create-bucket-configuration" in created) == (region != "us-east-1")


def test_the_buckets_policy_only_denies_requests_without_tls() -> None:
    policies = [
        words[words.index("--policy") + 1]
        for step in PLANS["aws"].steps
        for words in step.make
        if "--policy" in words
    ]
    (policy,) = policies
    (statement,) = json.loads(policy)["Statement"]
    assert (statement["Effect"], statement["Condition"]) == (
        "Deny",
        {"Bool": {"aws:SecureTransport": "false"}},
    )


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("aws", "--name", "Acme_State", "--region", "us-west-2"), "--name: got Acme_State"),
        (("azure", "--name", "a" * 25, "--region", "eastus2"), "--name: got aaaa"),
        (("gcp", "--name", "acme", "--region", "us-central1"), "--project: got nothing"),
        (("aws", "--name", "acme", "--region", "us-west-2", "--project", "p"), "--project: got p"),
    ],
)
def test_wrong_arguments_are_refused_before_any_command(
    words: tuple[str, ...], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match=f"^{field}"):
        command.run(arguments(*words))


def test_a_missing_command_line_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match=r"^aws: got no such command"):
        plan_of("aws", "acme", "us-west-2", None, run_command)


@every_cloud
def test_the_guide_uses_the_command(cloud: str) -> None:
    page = DocPage.read(f"docs/getting-started-{cloud}.md").text
    (line,) = [line for line in page.splitlines() if line.startswith("holdfast bootstrap ")]
    parsed = arguments(*shlex.split(line)[2:])
    plan = plan_of(cloud, parsed.name, parsed.region, parsed.project, FakeCloud(plan=PLANS[cloud]))
    assert f'pulumi login "{plan.login}"' in page
    assert f'--secrets-provider "{plan.secrets_provider}"' in page
