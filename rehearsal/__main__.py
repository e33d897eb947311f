"""Runs a command of the rehearsal: `python -m holdfast.rehearsal up local`."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from holdfast.rehearsal.cli.arguments import IN_ITS_OWN_PLACE, parse
from holdfast.rehearsal.cli.dispatch import run
from holdfast.rehearsal.output import hush_libraries
from holdfast.scheduling.errors import ConfigError
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace

# What a shell reports for a command ended by Ctrl-C.
_INTERRUPTED = 128 + signal.SIGINT


def main() -> int:
    """Run the command line and return its exit code: 0, 1 for a failure, 130 when interrupted."""
    arguments = parse(sys.argv[1:])
    hush_libraries()
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So a shell starts what runs in the background. The engine would inherit it, and could not be asked to end.
        signal.signal(signal.SIGINT, _take_no_notice)
    try:
        workspace = Workspace.find()
        # The program's relative paths are the project's, wherever the command was given.
        os.chdir(workspace.project_root)
        run(arguments, workspace)
    except (RehearsalError, ConfigError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"interrupted: run `{arguments.command}` again and it {_then(arguments.command)}", file=sys.stderr
        )
        return _INTERRUPTED
    return 0


def _then(command: str) -> str:
    return "begins anew" if command in IN_ITS_OWN_PLACE else "goes on from here"


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - the handler's signature
    raise KeyboardInterrupt


def _take_no_notice(number: int, frame: FrameType | None) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
