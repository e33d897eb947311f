"""What the workflows run: one comment for each stack, within GitHub's limit, updated and never repeated; one issue about drift."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.cli.bootstrap.command import CommandResult
from pulumi_holdfast.cli.ci.comment import MOST_CHARACTERS, Plan, drift_issue, marker, preview_comment
from pulumi_holdfast.cli.ci.github import Repository
from pulumi_holdfast.ladder.errors import ConfigError
from tests.support.fakes.github import FakeGitHub

PROJECT = Path(__file__).parents[3]
FIXTURES = PROJECT / "tests/fixtures/ci"
WORKFLOWS = sorted((PROJECT / ".github/workflows").glob("*.yaml"))


def make(root: Path, target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a target in a copy that has only what it reads. `gh` is a fake, and `holdfast rehearse` prints a recorded run."""
    if not (root / "bin").exists():
        for name in ("Makefile", "stacks", "policies", ".venv", "holdfast"):
            (root / name).symlink_to(PROJECT / name)
        (root / "bin").mkdir()
        FakeGitHub().install(root / "bin")
        command = root / "bin/holdfast"
        command.write_text(
            '#!/bin/sh\n[ "$1" != tools ] || exit 0\n'
            f'[ "$1" != rehearse ] || {{ cat {FIXTURES}/rehearsal.txt; exit $CODE; }}\n'
            f'exec {PROJECT}/.venv/bin/holdfast "$@"\n'
        )
        command.chmod(0o755)
    return subprocess.run(
        ["make", "--old-file=.venv/.installed", f"RUN={root}/bin/holdfast", target],
        cwd=root,
        env={
            **os.environ,
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "STACK": "local",
            "REPOSITORY": "o/r",
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_comment_about_a_rehearsal_is_the_golden_text(tmp_path: Path) -> None:
    ran = make(tmp_path, "ci-rehearse", CODE="0")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = (tmp_path / "dist/ci/local.md").read_text()
    # The list prices are in the text: `cp` the found text over the golden one when they change.
    assert found == (FIXTURES / "rehearsal.md").read_text(), "what a reviewer of a fork reads"
    failed = make(tmp_path, "ci-rehearse", CODE="3")
    assert failed.returncode != 0, "the check of the pull request is red"
    assert "## `local`: the rehearsal failed" in (tmp_path / "dist/ci/local.md").read_text(), (
        "the comment, too"
    )


def test_a_comment_is_posted_once_and_updated_up_to_the_limit_of_github(tmp_path: Path) -> None:
    (tmp_path / "dist/ci").mkdir(parents=True)
    file = tmp_path / "dist/ci/local.md"
    missing = make(tmp_path, "ci-post", PULL_REQUEST="7")
    assert "Run `make ci-preview`" in missing.stderr, "nothing was saved, so nothing is posted"
    plan = Plan(
        resources="\n".join(f"+ line {n} 'é" for n in range(9000)), policies="", summary="+ 9000 to create"
    )
    first = preview_comment("local", plan, succeeded=True, cost=[], walks=[])
    for text in (first, f"{marker('local')}\nshort\n"):
        file.write_text(text)
        assert make(tmp_path, "ci-post", PULL_REQUEST="7").returncode == 0, "GitHub accepts it"
    github = FakeGitHub.read(tmp_path / "bin")
    assert [each["body"] for each in github.comments] == ["of a reviewer", text], "one comment, the newest"
    file.write_text(f"{marker('local')}\n{'x' * MOST_CHARACTERS}")
    refused = make(tmp_path, "ci-post", PULL_REQUEST="7")
    assert refused.returncode != 0, "a refusal of GitHub is no success"
    assert "HTTP 422" in refused.stderr, "and is shown"


def test_a_fork_writes_to_its_own_pull_request_and_to_no_comment_of_a_person(tmp_path: Path) -> None:
    (tmp_path / "dist/ci").mkdir(parents=True)
    # Names and texts are what a fork chooses: a shell would run two of them, two would rewrite a reviewer's comment.
    branch = "x&head=o:main$(touch${IFS}pwned)`touch${IFS}pwned`"
    files = {
        "local.md": f"{marker('local')}\nfound\n",
        "$(touch pwned).md": "\nmine",
        "b.md": "of a reviewer",
        "c.md": "",
    }
    for name, text in files.items():
        (tmp_path / "dist/ci" / name).write_text(text)
    make(tmp_path, "help")
    github = FakeGitHub()
    github.pulls = {
        "o:main": [{"number": 1, "head": {"sha": "a"}}],
        f"fork:{branch}": [{"number": 9, "head": {"sha": "b"}}],
    }
    github.save(tmp_path / "bin/github.json")
    for commit in ("a", "b"):
        ran = make(tmp_path, "ci-post-fork", HEAD=f"fork:{branch}", COMMIT=commit)
        assert ran.returncode == 0, ran.stderr
    found = FakeGitHub.read(tmp_path / "bin")
    assert found.calls == ["POST repos/o/r/issues/9/comments"], "the commit that is tested, and nothing else"
    assert [each["body"] for each in found.comments] == ["of a reviewer", files["local.md"]], (
        "a reviewer's stays"
    )
    assert not list(tmp_path.rglob("pwned")), "no name reaches a shell"


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
        name="o/r",
        runner=lambda _: CommandResult(code=1, output="", errors="HTTP 403: Resource not accessible"),
    )
    with pytest.raises(ConfigError, match=r"HTTP 403.*pull-requests: write"):
        refused.upsert_comment(7, "text")


def test_the_workflows_call_each_target_that_is_made_for_them() -> None:
    made = set(re.findall(r"(?m)^(ci-[a-z-]+):", (PROJECT / "Makefile").read_text()))
    called = {word for file in WORKFLOWS for word in re.findall(r"make (ci-[a-z-]+)", file.read_text())}
    assert called == made, "a workflow calls what is there, and nothing is there for no workflow"


def test_the_slow_tests_have_a_browser_and_skip_none_that_needs_it() -> None:
    steps = yaml.safe_load((PROJECT / ".github/workflows/check.yaml").read_text())["jobs"]["slow"]["steps"]
    place = next(place for place, step in enumerate(steps) if "make slow" in str(step.get("run")))
    assert steps[place]["env"]["HOLDFAST_CHROMIUM"] == "required", "a skipped test would pass unseen"
    before = steps[place - 1]
    assert "apt-get install --yes --no-install-recommends chromium" in before["run"], "where there is none"
    assert before["if"] == "contains(matrix.shard.folders, 'tests/cluster/plugin')", "where its tests are"
    assert (PROJECT / "tests/cluster/plugin/test_page.py").exists(), "they are still there"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_that_updates_a_stack_waits_for_the_one_before(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())
    for job in workflow["jobs"].values():
        if any("ci-deploy" in str(step.get("run")) for step in job["steps"]):
            assert job["concurrency"] == {
                "group": "update-${{ matrix.stack }}",
                "cancel-in-progress": False,
            }, "two updates of a stack never meet, and none is interrupted"
            assert job["environment"] == "deploy-${{ matrix.stack }}", "its reviewers approve"
            assert workflow["concurrency"] == {
                "group": "deploy-${{ github.ref_type }}",
                "cancel-in-progress": False,
            }, (
                "a plan is made after the update before it: tags go to the same stacks, and so do pushes to main"
            )


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
        [
            "python3",
            "components/pulumi_holdfast/rehearsal/affected_stacks.py",
            "--all",
            "--environment",
            "prod",
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    first = ran.stdout.splitlines()[0].removeprefix("stacks=")
    assert json.loads(first) == [
        {"stack": f"{cloud}-prod", "cloud": cloud} for cloud in ("aws", "azure", "gcp")
    ], "a tag goes to these"
