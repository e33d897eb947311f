"""`python -m holdfast.simulator.tools`: find, build and gather what a rehearsal runs."""

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from rich.console import Console

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.build import make_missing
from holdfast.simulator.tools.charts import write_crd_charts
from holdfast.simulator.tools.locate import find_tool, look
from holdfast.simulator.tools.progress import one_line, progress_on, table
from holdfast.simulator.tools.stamps import exclusive

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run one subcommand and return the exit code: 0, 1 on a failure, 130 when interrupted."""
    parsed = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _run(parsed)
    except RehearsalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or 'the tools folder'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "interrupted: what is finished stays; run `make tools` again to go on from here", file=sys.stderr
        )
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m holdfast.simulator.tools", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("build", help="build what is not on PATH into .tools (the default)")
    which = commands.add_parser("which", help="print where a tool is")
    which.add_argument("name")
    commands.add_parser("crd-charts", help="regenerate the CRD charts under components/charts")
    return parser


def _run(parsed: argparse.Namespace) -> None:
    workspace = Workspace.find()
    if parsed.command == "which":
        print(find_tool(parsed.name, workspace))
    elif parsed.command == "crd-charts":
        for folder in write_crd_charts(workspace):
            print(f"wrote {folder.relative_to(workspace.project_root)}")
    else:
        build(workspace, Console())


def build(workspace: Workspace, console: Console) -> None:
    """Make what is missing and show what came from where. Raises RehearsalError."""

    def waiting(holder: str) -> None:
        console.print(
            f"tools: another build runs in this checkout (process {holder}); waiting for it", markup=False
        )

    with exclusive(workspace.tools_bin.parent / "lock", waiting):
        survey = look(workspace)
        if not survey.missing:
            console.print(one_line(survey), highlight=False)
            return
        console.print(f"tools: {len(survey.missing)} to make: {', '.join(survey.missing)}", soft_wrap=True)
        progress = progress_on(console, total=len(survey.missing))
        make_missing(survey, workspace, progress)
    console.print(table(survey, progress.seconds))


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
