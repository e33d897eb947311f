"""What is on the screen, and what only the log has."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import detail, logged, say


def _rehearsed(file: Path, *, verbose: bool = False) -> None:
    with logged(file, verbose=verbose):
        say("=== up")
        detail("\x1b[32m + aws:ec2:Vpc network create\x1b[0m")


def _fail(file: Path) -> None:
    with logged(file):
        say("=== up")
        raise RehearsalError("no zone has c6i.large")


def test_a_detail_is_in_the_log_alone_whose_path_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _rehearsed(tmp_path / "logs/up.log")
    assert capsys.readouterr().out.splitlines() == ["=== up", "Log: logs/up.log"]
    logged_lines = (tmp_path / "logs/up.log").read_text().splitlines()
    assert logged_lines == ["=== up", " + aws:ec2:Vpc network create"], "without colors"


def test_a_verbose_command_prints_details_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _rehearsed(tmp_path / "up.log", verbose=True)
    assert "aws:ec2:Vpc network create" in capsys.readouterr().out


def test_a_command_that_prints_nothing_leaves_no_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with logged(tmp_path / "logs/up.log"):
        pass
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "logs").exists()


def test_an_error_is_logged_behind_what_happened_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RehearsalError):
        _fail(tmp_path / "up.log")
    assert (tmp_path / "up.log").read_text() == "=== up\nerror: no zone has c6i.large\n"
    assert "no zone" not in capsys.readouterr().out, "the command prints it"
