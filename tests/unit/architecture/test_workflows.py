"""The workflows: updates wait for each other, a fork's code meets no write permission, and no test is skipped unseen."""

import json
import re
import subprocess
from pathlib import Path
from typing import cast

import pytest
import yaml

PROJECT = Path(__file__).parents[3]
WORKFLOWS = sorted((PROJECT / ".github/workflows").glob("*.yaml"))
every_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)


def test_the_slow_tests_have_a_browser_and_skip_none_that_needs_it() -> None:
    steps = yaml.safe_load((PROJECT / ".github/workflows/check.yaml").read_text())["jobs"]["slow"]["steps"]
    place = next(place for place, step in enumerate(steps) if "make slow" in str(step.get("run")))
    assert steps[place]["env"]["HOLDFAST_CHROMIUM"] == "required"
    before = steps[place - 1]
    assert "apt-get install --yes --no-install-recommends chromium" in before["run"]
    assert before["if"] == "contains(matrix.shard.folders, 'tests/cluster/plugin')"
    assert (PROJECT / "tests/cluster/plugin/test_page.py").exists()


def test_an_update_waits_for_its_reviewers_and_for_the_update_before_it() -> None:
    workflow = yaml.safe_load((PROJECT / ".github/workflows/deploy.yaml").read_text())
    (job,) = [job for job in workflow["jobs"].values() if "up" in commands(job)]
    assert job["concurrency"] == {"group": "update-${{ matrix.stack }}", "cancel-in-progress": False}
    assert job["environment"] == "deploy-${{ matrix.stack }}"
    # A plan is made after the update before it: tags go to the same stacks, and so do pushes to main.
    assert workflow["concurrency"] == {"group": "deploy-${{ github.ref_type }}", "cancel-in-progress": False}


def test_an_update_carries_out_the_plan_that_was_saved() -> None:
    jobs = yaml.safe_load((PROJECT / ".github/workflows/deploy.yaml").read_text())["jobs"]
    plans = {step["with"]["plan"] for job in jobs.values() for step in job["steps"] if is_pulumi(step)}
    assert plans == {"${{ matrix.stack }}.plan.json"}


@every_workflow
def test_only_one_job_updates_stacks(file: Path) -> None:
    jobs = yaml.safe_load(file.read_text())["jobs"]
    assert [name for name, job in jobs.items() if "up" in commands(job)] == (
        ["deploy"] if file.stem == "deploy" else []
    )


def test_every_input_of_the_action_is_one_that_it_has() -> None:
    action = yaml.safe_load((PROJECT / ".github/actions/stack/action.yaml").read_text())
    required = {name for name, each in action["inputs"].items() if each.get("required")}
    jobs = [job for file in WORKFLOWS for job in yaml.safe_load(file.read_text())["jobs"].values()]
    given = [set(step["with"]) for job in jobs for step in job["steps"] if is_pulumi(step)]
    assert len(given) == 4
    assert all(required <= each <= set(action["inputs"]) for each in given)


@every_workflow
def test_a_job_with_a_write_permission_runs_no_code_of_a_fork(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())
    assert "workflow_run" not in workflow[True]
    for name, job in workflow["jobs"].items():
        permissions = cast("dict[str, str]", job.get("permissions") or {})
        writes = [key for key, value in permissions.items() if value == "write"]
        if writes and {"pull_request", "pull_request_target"} & set(workflow[True]):
            assert "head.repo.full_name == github.repository" in job["if"], (
                f"{name} of a fork may not {writes}"
            )


@every_workflow
def test_a_workflow_that_a_pull_request_brings_gets_no_identity(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())
    if "pull_request" in workflow[True]:
        for job in workflow["jobs"].values():
            assert "environment" not in job
            assert "id-token" not in job["permissions"]


def test_a_preview_takes_all_but_the_program_from_the_base_branch() -> None:
    workflow = yaml.safe_load((PROJECT / ".github/workflows/preview.yaml").read_text())
    assert list(workflow[True]) == ["pull_request_target"]
    for job in workflow["jobs"].values():
        base, change = [step["with"] for step in job["steps"] if "actions/checkout" in str(step.get("uses"))]
        assert "ref" not in base
        assert "path" not in base
        assert change["path"] == "change"
    (call,) = [step["with"] for step in workflow["jobs"]["preview"]["steps"] if is_pulumi(step)]
    assert call["folder"] == "change"
    action = yaml.safe_load((PROJECT / ".github/actions/stack/action.yaml").read_text())
    (pulumi,) = [
        step["with"] for step in action["runs"]["steps"] if "pulumi/actions" in str(step.get("uses"))
    ]
    assert pulumi["work-dir"] == "${{ inputs.folder }}"
    assert pulumi["policyPacks"] == "${{ github.workspace }}/policies"


def test_a_pull_request_of_gitlab_or_pulumi_deployments_gets_no_deploy_role() -> None:
    delivery = PROJECT / "examples/delivery"
    settings = yaml.safe_load((delivery / "Pulumi.deployments.yaml").read_text())["settings"]
    assert not settings["gitHub"].get("previewPullRequests")
    jobs = yaml.safe_load((delivery / "gitlab-ci.yaml").read_text())
    for name, job in jobs.items():
        if name.startswith(("preview ", "plan ")):
            assert job["environment"]["name"].startswith("preview-")
    assert "id_tokens" not in jobs["pulumi"]


@pytest.mark.parametrize("folder", [".github", "examples/delivery"])
def test_no_download_is_piped_into_a_shell(folder: str) -> None:
    texts = [file.read_text() for file in (PROJECT / folder).rglob("*.y*ml")]
    assert len(texts) >= 2
    assert not [text for text in texts if re.search(r"(curl|wget)[^\n]*\|\s*(ba)?sh\b", text)]


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_all_stacks_of_an_environment_are_listed_by_their_clouds(environment: str) -> None:
    ran = subprocess.run(
        [
            "python3",
            "components/pulumi_holdfast/rehearsal/affected_stacks.py",
            "--all",
            "--environment",
            environment,
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    first = ran.stdout.splitlines()[0].removeprefix("stacks=")
    assert json.loads(first) == [
        {"stack": f"{cloud}-{environment}", "cloud": cloud} for cloud in ("aws", "azure", "gcp")
    ]


def commands(job: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [step["with"]["command"] for step in job["steps"] if is_pulumi(step)]


def is_pulumi(step: dict[str, dict[str, str]]) -> bool:
    return str(step.get("uses")) == "./.github/actions/stack"
