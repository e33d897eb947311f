"""`make rehearse`: the whole life of a cloud's stack, and nothing left of it."""

from pathlib import Path

import pytest

from holdfast.rehearsal.commands import rehearse
from holdfast.simulator.errors import RehearsalError
from tests.support.clusters.cloud_workspaces import cloud_workspace
from tests.support.clusters.control_plane import processes_of
from tests.support.clusters.simulated_program import a_pack

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(900)]


def _table(printed: str, stack: str) -> dict[str, str]:
    """What was seen, by act."""
    lines = printed.partition(f"\nRehearsal of {stack}\n")[2].splitlines()[2:]
    rows = (line.split("  ", maxsplit=1) for line in lines if "  " in line)
    return {name: seen.strip() for name, seen in rows}


#: What outlives each stack on purpose, and no more: an account's role, and grants that others may need.
KEPT = {
    "aws-dev": "kept on purpose: spot-role-role",
    "aws-prod": "kept on purpose: spot-role-role",
    "gcp-dev": "nothing is left",
    "gcp-prod": "kept on purpose: checkpoints-key-use, cluster-key-grant",
    "azure-dev": "nothing is left",
    "azure-prod": "nothing is left",
}


#: The stack whose lifecycle `make test` runs: protected, all operators, pools of every kind. `make soak` runs all.
ON_EVERY_CHANGE = "aws-prod"


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each == ON_EVERY_CHANGE else pytest.mark.soak) for each in KEPT],
)
def test_a_stack_is_made_used_and_removed_without_an_account(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = cloud_workspace(tmp_path)
    rehearse(name, workspace)
    seen = _table(capsys.readouterr().out, name)
    assert "FAILED" not in str(seen), seen
    assert seen["a second up"].startswith("nothing changed"), "a plan without a change has some"
    assert "back on cpu-spot" in seen["a job loses its spot node"], "the job is not on spot again"
    assert seen["refresh"].startswith("nothing had drifted"), "what is there is not what was made"
    assert seen["a pod that asks for nothing"].startswith("on on-demand "), "it is on spot, or nowhere"
    assert KEPT[name] in seen["destroy, a job running"], "more is kept than should be, or less"
    assert ("destroy, while protected" in seen) == name.endswith("-prod"), (
        "production is protected, and no other"
    )
    assert processes_of(workspace) == [], "a process is left"
    assert not workspace.stack_dir(f"{name}-rehearsal").exists(), "files are left"


def test_a_rehearsal_that_fails_tells_where_and_leaves_no_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = cloud_workspace(tmp_path, policies=a_pack(tmp_path / "strict", "MANDATORY"))
    with pytest.raises(RehearsalError, match="mandatory policies are violated: no-vpc"):
        rehearse("aws-dev", workspace)
    printed = capsys.readouterr().out
    assert "MANDATORY  no-vpc" in printed, "the verdict is not shown"
    assert _table(printed, "aws-dev") == {"preview": _table(printed, "aws-dev")["preview"]}, "it went on"
    assert "FAILED" in _table(printed, "aws-dev")["preview"], "the table looks as if all went well"
    assert processes_of(workspace) == [], "a process is left"
    assert not (workspace.stack_dir("aws-dev-rehearsal") / "engine").exists(), (
        "the next one would go on from here"
    )
