"""The command line `holdfast`."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulumi_holdfast.cli import __main__ as command_line
from pulumi_holdfast.rehearsal.errors import RehearsalError

CHECKOUT = Path(__file__).resolve().parents[2]


def parsed(*words: str) -> dict[str, object]:
    return vars(command_line.build_parser(words[0]).parse_args(words))


def test_a_command_takes_its_stack() -> None:
    assert parsed("refresh", "local") == {"subcommand": "refresh", "stack": "local"}, "as given"
    assert parsed("up", "local")["spot_gpus"] is None, "a stack of this project, unless GPUs are asked for"


def test_down_destroys_through_the_engine_unless_forced() -> None:
    assert parsed("down", "local")["force"] is False, "nothing is dropped by default"
    assert parsed("down", "local", "--force")["force"] is True, "the option is passed on"


@pytest.mark.parametrize("wrong", [["up"], ["fly", "local"], []])
def test_invalid_usage_ends_with_code_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(wrong)
    assert ended.value.code == 2, "a shell can tell wrong usage from a failure"
    assert "usage" in capsys.readouterr().err, "the user learns the valid usage"


@pytest.mark.parametrize("name", sorted(command_line.COMMANDS))
def test_every_command_resolves_to_functions(name: str) -> None:
    command = command_line.COMMANDS[name]
    for target in (command.run, command.arguments):
        if isinstance(target, str):
            module, _, function = target.partition(":")
            assert callable(getattr(importlib.import_module(module), function)), f"{target} exists"


def test_no_make_target_or_workflow_runs_a_module_of_the_product() -> None:
    spelled = subprocess.run(
        [
            "git",
            "grep",
            "-n",
            "-e",
            "-m pulumi_holdfast.cli",
            "--",
            "Makefile",
            ".github",
            "components/pulumi_holdfast/cli/template",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
    )
    # This repository runs this module before anything is installed, and so do the workflows that are made from its own.
    left = [line for line in spelled.stdout.splitlines() if "rehearsal.affected_stacks" not in line]
    assert not left, "one command line has the help and the messages of failures"


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
    assert command_line.main(["up", "prod"]) == 1, "a script can see the failure"
    assert capsys.readouterr().err == "error: no stack 'prod'\n", "the message alone"


@pytest.mark.parametrize(
    ("name", "next_time"), [("up", "it continues from here"), ("rehearse", "it starts from the beginning")]
)
def test_an_interrupted_command_says_what_the_next_run_does(
    name: str, next_time: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"pulumi_holdfast.rehearsal.commands.{name}_stack", interrupt)
    assert command_line.main([name, "local"]) == 130, "the shell's code for an interruption"
    assert capsys.readouterr().err == f"interrupted: run `holdfast {name} local` again and {next_time}\n", (
        "advice"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("holdfast re", {"refresh", "rehearse", "release", "replay"}),
        ("holdfast preview loc", {"local"}),
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
    assert command_line.main(["completion", "bash"]) == 0, "a supported shell"
    assert "holdfast" in capsys.readouterr().out, "the script is for this command"


def test_the_completion_script_may_have_a_reader_that_ends_early() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        found = subprocess.run(
            [sys.executable, "-m", "pulumi_holdfast.cli", "completion", "bash"],
            cwd=CHECKOUT,
            check=False,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (found.returncode, found.stderr) == (0, ""), "as for `holdfast completion bash | head`"
