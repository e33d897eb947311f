"""Runs one engine command in a process of its own, whose time and memory the benchmark measures."""

import sys

from pulumi_holdfast.rehearsal.engine import CommandOutcome, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from pulumi_holdfast.rehearsal.stacks.stack import StackSimulators

EMPTY = "empty"


def main() -> None:
    """Run `python -m tests.soak.bench.engine_command STACK COMMAND RUN_AS`; STACK `empty` is an empty program."""
    stack, command, run_as = sys.argv[1:]
    workspace = Workspace.find()
    if stack == EMPTY:
        project = {"name": "holdfast"}
        subject = Subject(program=_nothing, project=project, settings={}, packages=())
        providers = StackSimulators(stack=run_as, project="holdfast", workspace=workspace, faults=Faults())
        with Rehearsal.open(run_as, workspace, subject=subject, providers=providers) as rehearsal:
            _run(rehearsal, command)
        return
    with Stack.named(stack, workspace, report=say, run_as=run_as).session() as rehearsal:
        _run(rehearsal, command)


def _nothing() -> None:
    """Register nothing."""


def _run(rehearsal: Rehearsal, command: str) -> CommandOutcome:
    commands = {
        "preview": rehearsal.preview,
        "up": rehearsal.up,
        "refresh": rehearsal.refresh,
        "destroy": rehearsal.destroy,
    }
    return commands[command]()


if __name__ == "__main__":
    main()
