"""`holdfast rehearse`: the lifecycle of a cloud's stack, after which nothing is left."""

from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.rehearsal.commands import rehearse, rehearse_two
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.support.clusters.cloud_workspaces import cloud_workspace, workspace_of
from tests.support.clusters.control_plane import CHECKOUT, processes_of
from tests.support.clusters.simulated_program import a_pack

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(900)]

#: What each stack retains on purpose: the role of an account, and grants that other stacks may need.
RETAINED = {
    "aws-dev": "retained: main-spot-role",
    "aws-prod": "retained: main-spot-role",
    "gcp-dev": "nothing is left",
    "gcp-prod": "retained: main-checkpoints-key-use, main-cluster-key-grant",
    "azure-dev": "nothing is left",
    "azure-prod": "nothing is left",
}

#: The stack whose lifecycle `make test` runs; `engine/test_aws_stacks.py` creates, uses and destroys a stack with Karpenter.
#: `make soak` runs all.
ON_EVERY_CHANGE = "gcp-dev"


def _results(printed: str, stack: str) -> dict[str, str]:
    """The result of each step in the printed table."""
    lines = printed.partition(f"\nRehearsal of {stack}\n")[2].splitlines()[2:]
    rows = (line.split("  ", maxsplit=1) for line in lines if "  " in line)
    return {step: result.strip() for step, result in rows}


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each == ON_EVERY_CHANGE else pytest.mark.soak) for each in RETAINED],
)
def test_a_stack_goes_through_its_lifecycle_without_an_account(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = cloud_workspace(tmp_path)
    rehearse(name, workspace)
    results = _results(capsys.readouterr().out, name)
    assert "FAILED" not in str(results)
    assert results["a second up"].startswith("nothing changed")
    assert "back on cpu-spot" in results["a job loses its spot node"]
    assert "2 refused" in results["foreign writes with the controller's token"]
    assert results["refresh"].startswith("no drift")
    assert results["a pod without any selection"].startswith("on on-demand ")
    assert RETAINED[name] in results["destroy while a job runs"]
    assert ("destroy while protected" in results) == name.endswith("-prod")
    assert processes_of(workspace) == []
    assert not workspace.stack_dir(f"{name}-rehearsal").exists()


@pytest.mark.soak
def test_a_stack_on_an_existing_cluster_is_rehearsed_beside_its_owners_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = mapping(yaml.safe_load((CHECKOUT / "stacks/Pulumi.aws-dev.yaml").read_text("utf-8")))
    document = {**mapping(mapping(content["config"])[PLATFORM]), "cluster": {"existing": "shared"}}
    del document["network"]
    rehearse("guest", workspace_of(tmp_path, "guest", document))
    results = _results(capsys.readouterr().out, "guest")
    assert results["the existing cluster"].startswith("shared, made by another program")
    assert results["a second up"].startswith("nothing changed")
    assert "back on cpu-spot" in results["a job loses its spot node"]
    assert RETAINED["aws-dev"] in results["destroy while a job runs"]


@pytest.mark.soak
def test_a_job_moves_from_one_stack_to_another_and_returns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = cloud_workspace(tmp_path)
    rehearse_two("aws-dev", "aws-dev-2", workspace)
    results = _results(capsys.readouterr().out, "aws-dev and aws-dev-2")
    assert "FAILED" not in str(results)
    trip = results["aws-dev: a job moves to aws-dev-2 and returns"]
    assert trip.startswith("cpu-spot in aws-dev → cpu-spot in aws-dev-2 → cpu-spot in aws-dev ")
    assert "step 2000 carried over" in trip
    for name in ("aws-dev", "aws-dev with a tier in aws-dev-2", "aws-dev-2"):
        assert results[f"{name}: a second up"].startswith("nothing changed")
    for name in ("aws-dev", "aws-dev-2"):
        assert results[f"{name}: refresh"].startswith("no drift")
        assert RETAINED["aws-dev"] in results[f"{name}: destroy while a job runs"]
        assert not workspace.stack_dir(f"{name}-rehearsal").exists()
    assert processes_of(workspace) == []


def test_a_failed_rehearsal_shows_the_failed_step_and_leaves_no_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = cloud_workspace(tmp_path, policies=a_pack(tmp_path / "strict", "MANDATORY"))
    with pytest.raises(RehearsalError, match="mandatory policies are violated: no-vpc"):
        rehearse("aws-dev", workspace)
    printed = capsys.readouterr().out
    assert "MANDATORY  no-vpc" in printed
    results = _results(printed, "aws-dev")
    assert results.keys() == {"preview"}
    assert "FAILED" in results["preview"]
    assert processes_of(workspace) == []
    engine = workspace.stack_dir("aws-dev-rehearsal") / "engine"
    assert not engine.exists(), "the next rehearsal would continue from this state"
