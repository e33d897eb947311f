"""`holdfast` tells the user what is wrong in one message."""

from pathlib import Path

import pytest

from tests.support.clusters.control_plane import CHECKOUT, scratch_workspace
from tests.support.command_line import command, refusal

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]


def _project(root: Path, platform: str) -> Path:
    scratch_workspace(root)
    (root / "Pulumi.yaml").write_text("name: holdfast\nruntime: python\nstackConfigDir: stacks\n")
    (root / "stacks").mkdir()
    (root / "stacks" / "Pulumi.local.yaml").write_text(f"config:\n  holdfast:platform: {platform}\n")
    return root


def test_an_unknown_stack_is_refused_with_those_there_are(tmp_path: Path) -> None:
    said = refusal(_project(tmp_path, "{cloud: local}"), "rehearse", "prod")
    assert "no stack 'prod'" in said, "the stack is not named"
    assert "stacks: local" in said, "the user does not learn what is allowed"


@pytest.mark.parametrize("command", ["rehearse", "preview", "up", "refresh", "destroy", "down", "crash"])
def test_a_refused_configuration_is_told_before_anything_is_started(tmp_path: Path, command: str) -> None:
    said = refusal(_project(tmp_path, "{cloud: ibm}"), command, "local")
    assert "holdfast:platform.cloud" in said, "the field is not named"
    assert not (tmp_path / ".rehearsal").exists(), "something was made for a stack that cannot be"


def test_outside_a_project_the_command_says_where_to_go(tmp_path: Path) -> None:
    assert "Pulumi.yaml" in refusal(tmp_path, "up", "local"), "the user does not learn what is missing"


def test_a_stack_that_was_never_up_is_taken_down_without_harm(tmp_path: Path) -> None:
    platform = (CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text()
    root = _project(tmp_path, "{}")
    (root / "stacks" / "Pulumi.local.yaml").write_text(platform)
    for arguments in (("down", "local"), ("down", "local", "--force")):
        ended = command(root, *arguments)
        assert ended.returncode == 0, f"nothing is there to fail at: {ended.stderr}"
        assert "no process of it is left" in ended.stdout, "the user does not learn how it ended"
