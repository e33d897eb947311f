"""`holdfast bootstrap CLOUD`: creates the state store and the key of a cloud's stacks, and prints how to use them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi_holdfast.cli.bootstrap.steps import (
    AWS_ACCOUNT,
    AZURE_USER,
    OUTPUT,
    BootstrapPlan,
    Step,
    Words,
    aws_plan,
    azure_plan,
    gcp_plan,
)
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,22}[a-z0-9]", re.ASCII)
_ABSENT: Final = re.compile(r"not ?found|404|does not exist", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The result of a command: its exit code, its output without the last line break, and its errors."""

    code: int
    output: str
    errors: str


Runner: TypeAlias = Callable[[Words], CommandResult]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("cloud", choices=("aws", "azure", "gcp"))
    parser.add_argument(
        "--name", required=True, help="the name of the store, which no other account of the cloud uses"
    )
    parser.add_argument("--region", required=True, help="the region or location of the store and the key")
    parser.add_argument("--project", help="the project, on Google Cloud only")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the commands that change something, and run none"
    )


def run(parsed: argparse.Namespace) -> int:
    """Create the missing resources; return the exit code. Raises ConfigError."""
    _check(parsed.cloud, parsed.name, parsed.project)
    plan = plan_of(parsed.cloud, parsed.name, parsed.region, parsed.project, run_command)
    bootstrap(plan, run_command, report=print, dry_run=parsed.dry_run)
    return 0


def plan_of(cloud: str, name: str, region: str, project: str | None, runner: Runner) -> BootstrapPlan:
    """The plan of a cloud, with the account or the person of the credentials."""
    match cloud:
        case "aws":
            return aws_plan(name, region, _required(AWS_ACCOUNT, runner))
        case "azure":
            return azure_plan(name, region, _required(AZURE_USER, runner))
        case _:
            return gcp_plan(name, region, project or "")


def bootstrap(
    plan: BootstrapPlan, runner: Runner, *, report: Callable[[str], object], dry_run: bool = False
) -> None:
    """Run the steps of a plan that are not done yet, and report each; then report how to use the resources.

    Raises ConfigError if a command fails; the next run continues from there.
    """
    for step in plan.steps:
        if _exists(step, runner):
            report(f"{step.what}: exists")
        elif dry_run:
            report(f"{step.what}: would run\n" + "\n".join(f"  {shlex.join(words)}" for words in step.make))
        else:
            _make(step, runner)
            report(f"{step.what}: {'set' if step.find is None else 'created'}")
    report(
        f'\npulumi login "{plan.login}"\npulumi stack init STACK --secrets-provider "{plan.secrets_provider}"'
    )


def run_command(words: Words) -> CommandResult:
    """Run a command of a cloud's command line. Raises ConfigError if it is not installed."""
    if shutil.which(words[0]) is None:
        raise ConfigError.of(
            field=words[0],
            value="no such command",
            allowed="the command line of the cloud, which the guides use, too",
            fix=f"Install `{words[0]}` and log in.",
        )
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return CommandResult(code=ended.returncode, output=ended.stdout.strip(), errors=ended.stderr.strip())


def _check(cloud: str, name: str, project: str | None) -> None:
    problems: list[Problem] = []
    if not _NAME.fullmatch(name):
        problems.append(
            Problem(
                field="--name",
                value=name,
                allowed="3 to 24 lower-case letters, digits and hyphens; a letter first, no hyphen last",
                fix="Write a name such as acme-pulumi-state.",
            )
        )
    if (cloud == "gcp") != (project is not None):
        problems.append(
            Problem(
                field="--project",
                value=project or "nothing",
                allowed="a project's ID on Google Cloud, nothing on other clouds",
                fix="Add `--project my-project`." if cloud == "gcp" else "Remove it.",
            )
        )
    if problems:
        raise ConfigError(problems)


def _exists(step: Step, runner: Runner) -> bool:
    if step.find is None:
        return False
    answer = runner(step.find)
    if answer.code == 0:
        return True
    if not _ABSENT.search(answer.errors):
        raise _failed(step.find, answer)
    return False


def _make(step: Step, runner: Runner) -> None:
    output = ""
    for words in step.make:
        output = _required(tuple(word.replace(OUTPUT, output) for word in words), runner)


def _required(words: Words, runner: Runner) -> str:
    answer = runner(words)
    if answer.code != 0:
        raise _failed(words, answer)
    return answer.output


def _failed(words: Words, answer: CommandResult) -> ConfigError:
    return ConfigError.of(
        field=f"`{shlex.join(words)}`",
        value=" ".join(answer.errors.split()) or f"exit code {answer.code}",
        allowed="a command that succeeds with your credentials, and a name that is free or your own",
        fix="Log in, request the right that is missing, or choose another --name; then run the command again.",
    )
