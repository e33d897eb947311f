"""`python -m tests.soak COMMAND`: long runs that a release needs and a commit does not."""

import argparse
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.soak.seeds import SEED_VARIABLE, seed_of

_INTERRUPTED: Final = 128 + signal.SIGINT
_SAMPLE: Final = 3
_SOURCES: Final = "the sources of the Terraform provider"
_SEED: Final = "default: HOLDFAST_SEED, otherwise drawn and printed"


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 for a failure, 130 when interrupted."""
    parsed = parse(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(parsed)
    except FAILURES as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: run it again and it starts from the beginning", file=sys.stderr)
        return _INTERRUPTED


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line. Exits with code 2 and a message if it is not valid."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    faults = commands.add_parser(
        "faults", help="run many jobs on a ladder while everything around them fails"
    )
    faults.add_argument("--seed", type=int, metavar="S", help=f"draws the faults; {_SEED}")
    faults.add_argument("--jobs", type=_positive, default=200, metavar="N", help="default: 200")
    length = faults.add_mutually_exclusive_group()
    length.add_argument("--rounds", type=_positive, default=6, metavar="N", help="of faults; default: 6")
    length.add_argument(
        "--two", type=_positive, metavar="N", help="N faults in two clusters, and between them"
    )
    faults.add_argument(
        "--picture", type=Path, metavar="FILE", help="with --two: draw a job that went there and back"
    )
    commands.add_parser("alerts", help="judge the alerts and the dashboard with Prometheus' promtool")
    steps = commands.add_parser("model", help="take simulated jobs through many steps of the state machine")
    steps.add_argument("--seed", type=int, metavar="S", help=f"of the first part; {_SEED}")
    steps.add_argument("--steps", type=_positive, default=1_000_000, metavar="N", help="default: 1,000,000")
    crash = commands.add_parser(
        "crash", help="kill the engine after a resource, and prove that the next run converges"
    )
    crash.add_argument("stack", metavar="STACK")
    crash.set_defaults(sample=_SAMPLE)
    which = crash.add_mutually_exclusive_group()
    which.add_argument(
        "--every", dest="sample", action="store_const", const=None, help="after every resource"
    )
    which.add_argument("--sample", type=_positive, metavar="N", help=f"after N of them; default: {_SAMPLE}")
    crash.add_argument("--seed", type=int, metavar="S", help=f"chooses the sample; {_SEED}")
    bench = commands.add_parser(
        "bench", help="measure preview and up against an empty program, moves against restarts"
    )
    bench.add_argument("stack", metavar="STACK", nargs="?", default="local")
    part = bench.add_mutually_exclusive_group()
    part.add_argument("--moves-only", action="store_true", help="measure only moves of jobs")
    part.add_argument("--policies-only", action="store_true", help="measure only the cost of the policy pack")
    bench.add_argument("--jobs", type=_positive, metavar="N", help="jobs to move; default: 1, 100 and 1000")
    commands.add_parser(
        "cli", help="run the local stack with the Pulumi command line and the published Kubernetes plugin"
    )
    languages = commands.add_parser(
        "languages", help="judge one program in Python, TypeScript, Go and YAML with the packed policy pack"
    )
    languages.add_argument(
        "--record", action="store_true", help="keep what the engine sends, for the unit tests"
    )
    verdicts = commands.add_parser(
        "reachability", help="compare verdicts with the real scheduler and Karpenter on drawn NodePools"
    )
    verdicts.add_argument("--seed", type=int, metavar="S", help=f"of the first round; {_SEED}")
    verdicts.add_argument("--rounds", type=_positive, default=10, metavar="N", help="default: 10")
    # A plan costs pods times NodePools: two rounds of 20 jobs take less time than one of 40.
    verdicts.add_argument("--jobs", type=_positive, default=20, metavar="N", help="of a round; default: 20")
    filters = commands.add_parser(
        "filters", help="compare checks with the filters of the real scheduler on drawn pods and nodes"
    )
    filters.add_argument("--seed", type=int, metavar="S", help=f"of the first 2000; {_SEED}")
    filters.add_argument("--count", type=_positive, default=20_000, metavar="N", help="default: 20000")
    filters.add_argument("--record", action="store_true", help="record the sample of the unit tests as well")
    drawn = commands.add_parser(
        "judges", help="judge what drawn stacks register by what the clouds and SDKs publish"
    )
    drawn.add_argument("--seed", type=int, metavar="S", help=f"draws the stacks; {_SEED}")
    drawn.add_argument("--count", type=_positive, default=60, metavar="N", help="of each cloud; default: 60")
    models = commands.add_parser("record-models", help="record what a cloud publishes about its API")
    models.add_argument("cloud", choices=("aws", "gcp", "azure-native"))
    replacing = commands.add_parser("record-replacing", help="record which fields replace a resource of AWS")
    for one, title in (
        (models, "the package botocore or googleapiclient, or the folder of the packages azure-mgmt-*"),
        (replacing, _SOURCES),
    ):
        one.add_argument("folder", type=Path, help=title)
        one.add_argument("source", help="where the folder is from, and its version")
    comparison = commands.add_parser(
        "compare-replacing", help="compare which fields replace a resource in the simulator and in a provider"
    )
    comparison.add_argument("cloud", choices=("gcp", "azure-native"))
    comparison.add_argument(
        "sources",
        type=Path,
        help=f"{_SOURCES}; on Azure provider/pkg/gen/replacement.go of github.com/pulumi/pulumi-azure-native",
    )
    mutants = commands.add_parser(
        "mutants", help="apply small changes to the sources and check that unit tests fail"
    )
    mutants.add_argument(
        "--area", metavar="AREA", help="only the mutations of one list in tests/soak/mutants"
    )
    mutants.add_argument(
        "--only", metavar="TEXT", help="only the mutations whose file or effect contains TEXT"
    )
    return parser.parse_args(argv)


def _record(parsed: argparse.Namespace) -> int:
    if parsed.command == "record-replacing":
        from tests.soak.judges import replacing

        replacing.record(parsed.folder, parsed.source)
    else:
        from tests.soak.judges import recording

        recording.record(parsed.cloud, parsed.folder, parsed.source)
    return 0


def _run(parsed: argparse.Namespace) -> int:
    # Each command imports only what it needs: the bench measures, and mutants need no simulator.
    if parsed.command == "mutants":
        from tests.soak.mutants.runner import run_mutants

        return run_mutants(area=parsed.area, only=parsed.only)
    if parsed.command.startswith("record-"):
        return _record(parsed)
    if parsed.command in {"judges", "compare-replacing", "model", "alerts"}:
        return _judge(parsed)
    from pulumi_holdfast.rehearsal.commands import enter_workspace

    workspace = enter_workspace()
    if parsed.command == "crash":
        from tests.soak.crash.command import crash

        crash(parsed.stack, workspace, size=parsed.sample, seed=parsed.seed)
    elif parsed.command in {"reachability", "filters"}:
        _compare(parsed, workspace)
    elif parsed.command == "languages":
        from tests.soak.languages.command import judge_languages

        return judge_languages(workspace, record=parsed.record)
    elif parsed.command == "cli":
        from tests.soak.command_line import command_line

        return command_line(workspace)
    elif parsed.command == "faults":
        from tests.soak.faults.command import faults, two_cluster_faults

        if parsed.two:
            two_cluster_faults(
                workspace, seed=parsed.seed, jobs=parsed.jobs, faults=parsed.two, picture=parsed.picture
            )
            return 0
        faults(workspace, seed=parsed.seed, jobs=parsed.jobs, rounds=parsed.rounds)
    else:
        from tests.soak.bench.command import BenchOptions, bench

        options = BenchOptions(
            stack=parsed.stack,
            jobs=parsed.jobs,
            moves_only=parsed.moves_only,
            policies_only=parsed.policies_only,
        )
        bench(options, workspace)
    return 0


def _judge(parsed: argparse.Namespace) -> int:
    """Run what needs neither an engine nor a cluster."""
    if parsed.command == "judges":
        from tests.soak.judges.command import judges

        judges(seed=parsed.seed, count=parsed.count)
    elif parsed.command == "compare-replacing":
        from tests.soak.judges.command import compare_replacing

        return compare_replacing(parsed.cloud, parsed.sources)
    elif parsed.command == "model":
        from tests.soak.model import model

        model(seed_of(parsed.seed, os.environ.get(SEED_VARIABLE)), steps=parsed.steps)
    else:
        from pulumi_holdfast.rehearsal.commands import enter_workspace
        from tests.soak.alerts.command import alerts

        alerts(enter_workspace())
    return 0


def _compare(parsed: argparse.Namespace, workspace: Workspace) -> None:
    """Compare what the checks find with what the real parts do."""
    if parsed.command == "reachability":
        from tests.soak.reachability.command import reachability

        reachability(seed=parsed.seed, rounds=parsed.rounds, jobs=parsed.jobs)
    else:
        from tests.soak.filters.command import filters

        filters(workspace, seed=parsed.seed, count=parsed.count, is_recorded=parsed.record)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
