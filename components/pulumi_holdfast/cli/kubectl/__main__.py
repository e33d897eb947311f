"""The command line of the plugin: `kubectl holdfast COMMAND`."""

from __future__ import annotations

import argparse
import io
import json
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Final, NoReturn, TextIO

from pulumi_holdfast.cli.kubectl.check import check_file
from pulumi_holdfast.cli.kubectl.cluster import Cluster
from pulumi_holdfast.cli.kubectl.command_line import JOB_HELP, access_of, add_access, open_cluster
from pulumi_holdfast.cli.kubectl.control import Waiting, move_job, resume_job, stop_job
from pulumi_holdfast.cli.kubectl.drill import command as drill
from pulumi_holdfast.cli.kubectl.history import history_lines
from pulumi_holdfast.cli.kubectl.job_view import ROW_HEADS, job_row, job_view, table
from pulumi_holdfast.cli.kubectl.ui import command as ui
from pulumi_holdfast.controller.kube.objects import uid_of
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.quantities import DurationError, parse_duration

_INTERRUPTED: Final = 128 + signal.SIGINT
_FAILED: Final = 1
_WRONG_USAGE: Final = 2
# C0 and C1 without tab and newline, and what changes the direction or the visibility of text.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command: its help, what adds its arguments, and what runs it and returns the exit code."""

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _on_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help=JOB_HELP)


def _jobs_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to print")


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--filename", metavar="FILE", required=True, help="the manifest; - for stdin")


def _move_arguments(parser: argparse.ArgumentParser) -> None:
    _on_job(parser)
    parser.add_argument("pool", metavar="POOL", help="a tier of the namespace's ladder, by its pool")
    parser.add_argument("--timeout", default="15m", type=_duration, help="how long each step may take")


def _duration(written: str) -> float:
    try:
        return parse_duration(written).total_seconds()
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _jobs(parsed: argparse.Namespace) -> int:
    with open_cluster(access_of(parsed)) as cluster:
        policy, events = cluster.policy(), cluster.events()
        views = [job_view(job, policy, events) for job in cluster.jobs()]
        namespace = cluster.namespace
    views.sort(key=lambda view: view.reference)
    if parsed.output == "json":
        print(json.dumps([asdict(view) for view in views], default=str, indent=2))
    elif views:
        now = datetime.now(UTC)
        print(table(ROW_HEADS, [job_row(view, now) for view in views]))
    else:
        print(f"No JobSets and no RayJobs in the namespace {namespace}.")
    return 0


def _why(parsed: argparse.Namespace) -> int:
    with open_cluster(access_of(parsed)) as cluster:
        key = cluster.job_named(parsed.job)
        job = cluster.job(key)
        lines = history_lines(job, cluster.policy(), cluster.events(uid_of(job)), datetime.now(UTC))
    print("\n".join(lines))
    return 0


def _check(parsed: argparse.Namespace) -> int:
    access = access_of(parsed)
    stdin = sys.stdin.read() if parsed.filename == "-" else None
    with open_cluster(access) as cluster:
        verdicts = check_file(cluster, access, parsed.filename, stdin)
    print("\n".join(line for verdict in verdicts for line in verdict.lines))
    return 0 if all(verdict.is_good for verdict in verdicts) else _FAILED


def _stop(parsed: argparse.Namespace) -> int:
    return _said(parsed, lambda cluster: stop_job(cluster, cluster.job_named(parsed.job)))


def _resume(parsed: argparse.Namespace) -> int:
    return _said(parsed, lambda cluster: resume_job(cluster, cluster.job_named(parsed.job)))


def _move(parsed: argparse.Namespace) -> int:
    waiting = Waiting(seconds=parsed.timeout, say=lambda line: print(line, flush=True))
    return _said(
        parsed, lambda cluster: move_job(cluster, cluster.job_named(parsed.job), parsed.pool, waiting)
    )


def _said(parsed: argparse.Namespace, does: Callable[[Cluster], str]) -> int:
    with open_cluster(access_of(parsed)) as cluster:
        print(does(cluster))
    return 0


COMMANDS: Final[Mapping[str, Command]] = {
    "jobs": Command(
        summary="list the jobs: tier, pool, failures, wait, next limit, cost, last reason",
        arguments=_jobs_arguments,
        run=_jobs,
    ),
    "why": Command(
        summary="print what happened to a job, and what happens next", arguments=_on_job, run=_why
    ),
    "check": Command(
        summary="say whether admission accepts a manifest, and which tiers its job reaches",
        arguments=_check_arguments,
        run=_check,
    ),
    "stop": Command(
        summary="suspend a job, also during a move, and leave it suspended", arguments=_on_job, run=_stop
    ),
    "resume": Command(summary="resume a job that is stopped or given up", arguments=_on_job, run=_resume),
    "move": Command(
        summary="stop a job, and resume it on another tier", arguments=_move_arguments, run=_move
    ),
    "drill": Command(
        summary="interrupt a node of a job as a cloud does, and measure what that costs",
        arguments=drill.add_arguments,
        run=drill.run,
    ),
    "ui": Command(
        summary="serve a page with the ladder and its jobs, on this machine only",
        arguments=ui.add_arguments,
        run=ui.run,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for a failure, 2 for wrong usage, 130 when interrupted."""
    parsed = build_parser().parse_args(sys.argv[1:] if argv is None else list(argv))
    command = COMMANDS.get(parsed.command or "")
    if command is None:
        build_parser().print_help()
        return _WRONG_USAGE
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with redirect_stdout(_Printable(sys.stdout)), redirect_stderr(_Printable(sys.stderr)):
            return command.run(parsed)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of the output, such as `head`, has what it wants.
        sys.stderr.close()
        return 0
    except ConfigError as failure:
        print(f"error: {failure}", file=_Printable(sys.stderr))
        return _FAILED


class _Printable(io.TextIOBase):
    """A stream without the control and direction characters that objects of a cluster may contain, and a terminal obeys."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        return self._stream.write(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the plugin's command line."""
    parser = argparse.ArgumentParser(
        prog="kubectl holdfast",
        description="The jobs of a namespace on their fallback ladder, with your own rights.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, each in COMMANDS.items():
        subparser = commands.add_parser(name, help=each.summary, description=each.summary)
        each.arguments(subparser)
        add_access(subparser)
    return parser


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
