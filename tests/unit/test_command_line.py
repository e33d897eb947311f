"""The command line `holdfast`."""

import importlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pulumi_holdfast.cli import __main__ as command_line
from pulumi_holdfast.rehearsal.errors import RehearsalError

CHECKOUT = Path(__file__).resolve().parents[2]


def parsed(*words: str) -> dict[str, object]:
    return vars(command_line.parse(words))


def test_a_verb_of_a_rehearsal_takes_its_stack() -> None:
    assert parsed("rehearse", "refresh", "local") == {
        "subcommand": "rehearse",
        "verb": "refresh",
        "stack": "local",
        "verbose": False,
        "completion": None,
    }


@pytest.mark.parametrize(
    "words", [("aws-dev",), ("--to", "aws-dev-2", "aws-dev"), ("examples/parts/rehearsal",)]
)
def test_a_rehearsal_without_a_verb_is_the_whole_lifecycle(words: tuple[str, ...]) -> None:
    assert parsed("rehearse", *words) == parsed("rehearse", "run", *words)


def test_down_destroys_through_the_engine_unless_forced() -> None:
    assert parsed("rehearse", "down", "local")["force"] is False
    assert parsed("rehearse", "down", "local", "--force")["force"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["preflght", "aws-dev"], 'no command "preflght". Write "preflight".'),
        (["rehearse", "previe", "local"], 'no verb "previe". Write "preview".'),
        (["frobnicate"], 'no command "frobnicate". There are: rehearse, '),
    ],
)
def test_a_misspelled_command_is_answered_with_the_nearest_one(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"holdfast {version('pulumi-holdfast')}\n"


def test_no_command_has_a_verb_that_could_change_a_cloud() -> None:
    assert not command_line.COMMANDS.keys() & {"up", "down", "destroy", "refresh", "preview"}


def test_a_pack_needs_a_folder_or_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["pack"]) == 1
    assert "Write `holdfast pack dist/policy-pack`." in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["rehearse"], ["rehearse", "up"], ["up", "local"], ["--completion", "cmd"], []]
)
def test_invalid_usage_ends_with_code_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(wrong)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [*command_line.COMMANDS.values(), *command_line.REHEARSALS.values()],
    ids=[*command_line.COMMANDS, *(f"rehearse {verb}" for verb in command_line.REHEARSALS)],
)
def test_every_command_resolves_to_functions(command: command_line.Command) -> None:
    for target in (command.run, command.arguments):
        if isinstance(target, str):
            module, _, function = target.partition(":")
            assert callable(getattr(importlib.import_module(module), function)), f"{target} exists"


def test_no_make_target_or_workflow_runs_a_module_of_the_product() -> None:
    spelled = subprocess.run(
        ["git", "grep", "-n", "-e", "-m pulumi_holdfast.cli", "--", "Makefile", ".github"],
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
    )
    assert not spelled.stdout


def test_the_help_groups_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["--help"])
    shown = capsys.readouterr().out
    for title, group in command_line.GROUPS.items():
        listed = shown.partition(f"{title}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == list(group), f"the commands of {title}"


def test_the_help_imports_no_sdk() -> None:
    code = (
        "import sys; from pulumi_holdfast.cli.__main__ import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    loaded = set(ended.stderr.translate(str.maketrans("", "", "[]',")).split())
    assert not loaded & {"pulumi", "pydantic", "grpc", "yaml", "kubernetes"}, "the help must be instant"


def test_an_error_for_the_user_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise RehearsalError("no stack 'prod'")

    monkeypatch.setattr("pulumi_holdfast.rehearsal.commands.up_stack", fail)
    assert command_line.main(["rehearse", "up", "prod"]) == 1
    assert capsys.readouterr().err == "error: no stack 'prod'\n"


@pytest.mark.parametrize(
    ("words", "function", "next_time"),
    [
        (["rehearse", "up", "local"], "up_stack", "it continues from here"),
        (["rehearse", "local"], "rehearse_stack", "it starts from the beginning"),
    ],
)
def test_an_interrupted_command_says_what_the_next_run_does(
    words: list[str],
    function: str,
    next_time: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"pulumi_holdfast.rehearsal.commands.{function}", interrupt)
    assert command_line.main(words) == 130
    again = f"interrupted: run `holdfast {' '.join(words)}` again and {next_time}\n"
    assert capsys.readouterr().err == again


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("holdfast re", {"rehearse", "replay"}),
        ("holdfast rehearse d", {"demo", "destroy", "down"}),
        ("holdfast rehearse preview loc", {"local"}),
        ("holdfast economics max", {"max-failures"}),
    ],
)
def test_the_shell_completes_commands_stacks_and_subcommands(
    line: str, expected: set[str], tmp_path: Path
) -> None:
    answers = tmp_path / "answers"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
    }
    subprocess.run(
        [sys.executable, "-m", "pulumi_holdfast.cli"],
        env=environment,
        cwd=CHECKOUT,
        check=False,
        capture_output=True,
    )
    assert {word.strip() for word in answers.read_text().split("\n")} - {""} == expected, f"after {line!r}"


def test_the_completion_script_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--completion", "bash"])
    assert ended.value.code == 0
    assert "holdfast" in capsys.readouterr().out


def test_the_completion_script_may_have_a_reader_that_ends_early() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        found = subprocess.run(
            [sys.executable, "-m", "pulumi_holdfast.cli", "--completion", "bash"],
            cwd=CHECKOUT,
            check=False,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (found.returncode, found.stderr) == (0, "")
