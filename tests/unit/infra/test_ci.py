"""What the workflows run: one comment for each stack, within GitHub's limit, updated and never repeated; one issue about drift."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.infra.bootstrap.command import Answer
from holdfast.infra.ci.comment import (
    MOST_CHARACTERS,
    Plan,
    drift_issue,
    marker,
    parse_plan,
    preview_comment,
)
from holdfast.infra.ci.github import Repository
from holdfast.scheduling.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECT = Path(__file__).parents[3]
FIXTURES = PROJECT / "tests/fixtures/ci"
WORKFLOWS = sorted((PROJECT / ".github/workflows").glob("*.yaml"))


def test_the_comment_of_a_workflow_is_the_golden_text(tmp_path: Path) -> None:
    # The target itself runs, in a copy that has only what it reads; only `pulumi` is a fake that prints a recorded plan.
    for name in ("Makefile", "stacks", "policies", ".venv", "holdfast"):
        (tmp_path / name).symlink_to(PROJECT / name)
    fake = tmp_path / "bin/pulumi"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\ncat {FIXTURES}/plan.txt\n')
    fake.chmod(0o755)
    ran = subprocess.run(
        ["make", "--old-file=.venv/.installed", "ci-preview", "STACK=local"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    called = (tmp_path / "called").read_text().split()
    assert called[:3] == ["preview", "--stack", "local"], "it previews the stack"
    assert "dist/ci/local.plan.json" in called, "and saves the plan that a deployment carries out"
    found = (tmp_path / "dist/ci/local.md").read_text()
    # The list prices are in the text: `cp` the found text over the golden one when they change.
    assert found == (FIXTURES / "comment.md").read_text(), "what a reviewer reads"


texts = st.text(st.sampled_from("ab`\n é"), max_size=200)


@given(texts, st.integers(1, 2000), texts, texts)
def test_a_comment_of_any_plan_is_within_the_limit(
    part: str, times: int, policies: str, summary: str
) -> None:
    plan = Plan(resources=part * times, policies=policies * times, summary=summary)
    found = preview_comment("aws-dev", plan, succeeded=True, cost=[], walks=[])
    assert len(found) <= MOST_CHARACTERS, "GitHub refuses a longer one"
    assert len(drift_issue("aws-dev", plan)) <= MOST_CHARACTERS, "an issue, too"
    assert found.startswith(marker("aws-dev")), "the next run finds it"


def test_a_long_plan_loses_its_middle_and_says_how_much() -> None:
    lines = [f"line {number:06}" for number in range(20_000)]
    plan = Plan(resources="\n".join(lines), policies="", summary="+ 20000 to create")
    found = preview_comment("aws-dev", plan, succeeded=True, cost=[], walks=[]).splitlines()
    kept = [line for line in found if line.startswith("line ")]
    cut = next(line for line in found if "left out" in line)
    assert kept[0] == lines[0], "the beginning stays"
    assert kept[-1] == lines[-1], "and so does the end"
    assert f"{len(lines) - len(kept)} lines" in cut, "no line is lost without a word"


def test_a_plan_with_a_code_fence_cannot_end_its_block() -> None:
    found = preview_comment(
        "aws-dev", Plan(resources="```\n# owned", policies="", summary=""), succeeded=True, cost=[], walks=[]
    )
    assert "~~~~\n```\n# owned\n~~~~" in found, "text of a plan is text, whatever it contains"


def test_output_of_a_rehearsal_has_the_same_parts() -> None:
    found = parse_plan(
        "The plan\n+ a\n\nPolicies\n  no policy pack ran\n\npreview of aws-dev: 1 to create\n  3 s\n"
    )
    assert found == Plan(
        resources="The plan\n+ a",
        policies="  no policy pack ran",
        summary="preview of aws-dev: 1 to create\n  3 s",
    ), "a fork's comment has them too"


@pytest.mark.parametrize(
    ("summary", "differs"),
    [
        ("    3 unchanged", False),
        ("    ~ 1 to update\n    3 unchanged", True),
        ("    +-1 to replace", True),
        ("", False),
    ],
)
def test_drift_is_what_an_update_would_change(summary: str, differs: bool) -> None:
    assert Plan(resources="", policies="", summary=summary).differs is differs, "unchanged is no drift"


class FakeGitHub:
    """Answers `gh api` from memory."""

    def __init__(self) -> None:
        self.comments: list[dict[str, object]] = [{"id": 1, "body": "of a reviewer"}]
        self.issues: list[dict[str, object]] = []

    def __call__(self, words: Sequence[str]) -> Answer:
        _, _, *rest = words
        path = next(word for word in rest if word.startswith("repos/"))
        listed = self.comments if "comments" in path else self.issues
        if "--paginate" in rest:
            shown = [each for each in listed if each.get("state", "open") == "open"]
            # One array for each page.
            return Answer(code=0, output=json.dumps(shown[:1]) + json.dumps(shown[1:]), errors="")
        fields = json.loads(Path(rest[rest.index("--input") + 1]).read_text())
        if "POST" in rest:
            listed.append({"id": len(listed) + 1, "number": len(listed) + 1, **fields})
        else:
            number = int(path.rsplit("/", 1)[1])
            listed[number - 1].update(fields)
        return Answer(code=0, output="", errors="")


def test_a_second_run_updates_its_comment_and_leaves_others() -> None:
    github = FakeGitHub()
    repository = Repository(name="o/r", runner=github)
    first, second = f"{marker('aws-dev')}\none", f"{marker('aws-dev')}\n=two"
    other = f"{marker('aws-dev-2')}\nother"
    said = [repository.upsert_comment(7, text) for text in (first, other, second)]
    assert said == ["created", "created", "updated"], "one comment for each stack"
    assert [each["body"] for each in github.comments] == ["of a reviewer", second, other], (
        "no other is touched"
    )


def test_drift_opens_one_issue_updates_it_and_closes_it() -> None:
    github = FakeGitHub()
    repository = Repository(name="o/r", runner=github)
    plan = Plan(resources="~ pool", policies="", summary="~ 1 to update")
    text = drift_issue("aws-dev", plan)
    assert repository.close_issue(marker("aws-dev", "drift")) == "none is open", "nothing to close yet"
    assert repository.upsert_issue("drift", text) == "created", "the first time"
    assert repository.upsert_issue("drift", f"{text}\nmore") == "updated", "the next week"
    assert repository.close_issue(marker("aws-dev", "drift")) == "closed", "once it is repaired"
    assert [each["state"] for each in github.issues] == ["closed"], "and there is only one"


def test_a_refusal_of_github_names_the_permission() -> None:
    refused = Repository(
        name="o/r", runner=lambda _: Answer(code=1, output="", errors="HTTP 403: Resource not accessible")
    )
    with pytest.raises(ConfigError, match=r"HTTP 403.*pull-requests: write"):
        refused.upsert_comment(7, "text")


def test_workflows_call_targets_that_exist() -> None:
    targets = set((PROJECT / "Makefile").read_text().split())
    called = {
        word
        for file in WORKFLOWS
        for line in file.read_text().splitlines()
        if "make " in line and not line.strip().startswith("#")
        for word in line.partition("make ")[2].replace(";", " ").split()
        if word.replace("-", "").isalpha() and word.islower()
    }
    known = {word for word in called if f"{word}:" in targets}
    assert {"ci-preview", "ci-post", "ci-rehearse", "ci-deploy", "ci-drift"} <= known, (
        "each workflow has its target"
    )


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_that_updates_a_stack_waits_for_the_one_before(file: Path) -> None:
    jobs = yaml.safe_load(file.read_text())["jobs"].values()
    for job in jobs:
        if any("ci-deploy" in str(step.get("run")) for step in job["steps"]):
            assert job["concurrency"] == {
                "group": "update-${{ matrix.stack }}",
                "cancel-in-progress": False,
            }, "two updates of a stack never meet, and none is interrupted"
            assert job["environment"] == "deploy-${{ matrix.stack }}", "its reviewers approve"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_job_with_a_write_permission_runs_no_code_of_a_fork(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())
    triggers = workflow[True]
    for name, job in workflow["jobs"].items():
        permissions = cast("dict[str, str]", job.get("permissions") or {})
        writes = [key for key, value in permissions.items() if value == "write"]
        if writes and "pull_request" in triggers:
            assert "head.repo.full_name == github.repository" in job["if"], (
                f"{name} of a fork may not {writes}"
            )
        if "workflow_run" in triggers:
            uses = [str(step.get("with", {}).get("ref", "")) for step in job["steps"]]
            assert not any(uses), f"{name} checks out the default branch, and no ref that a fork chose"


def test_all_stacks_of_an_environment_are_listed_by_their_clouds() -> None:
    ran = subprocess.run(
        ["python3", "-m", "rehearsal.affected_stacks", "--all", "--environment", "prod"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    first = ran.stdout.splitlines()[0].removeprefix("stacks=")
    assert json.loads(first) == [
        {"stack": f"{cloud}-prod", "cloud": cloud} for cloud in ("aws", "azure", "gcp")
    ], "a tag goes to these"
