"""`python -m tests.soak COMMAND`: long runs that a release needs and a commit does not."""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from pulumi_holdfast.rehearsal.errors import FAILURES

_INTERRUPTED: Final = 128 + signal.SIGINT
_SAMPLE: Final = 3
_SEED: Final = "default: HOLDFAST_SEED, otherwise drawn and printed"


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 for a failure, 130 when interrupted."""
    parsed = parse(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(parsed) or 0
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

    def command(name: str, title: str, seed: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=title)
        if seed:
            made.add_argument("--seed", type=int, metavar="S", help=f"{seed}; {_SEED}")
        return made

    def number(parser: argparse.ArgumentParser, name: str, default: int, title: str = "") -> None:
        text = ", ".join(part for part in (title, f"default: {default:,}") if part)
        parser.add_argument(name, type=_positive, default=default, metavar="N", help=text)

    faults = command(
        "faults", "run many jobs on a ladder while everything around them fails", "draws the faults"
    )
    number(faults, "--jobs", 200)
    length = faults.add_mutually_exclusive_group()
    length.add_argument("--rounds", type=_positive, default=6, metavar="N", help="of faults; default: 6")
    length.add_argument(
        "--two", type=_positive, metavar="N", help="N faults in two clusters, and between them"
    )
    command("alerts", "judge the alerts and the dashboard with Prometheus' promtool")
    crash = command(
        "crash",
        "kill the engine after a resource, and prove that the next run converges",
        "chooses the sample",
    )
    crash.add_argument("stack", metavar="STACK")
    crash.set_defaults(sample=_SAMPLE)
    which = crash.add_mutually_exclusive_group()
    which.add_argument(
        "--every", dest="sample", action="store_const", const=None, help="after every resource"
    )
    which.add_argument("--sample", type=_positive, metavar="N", help=f"after N of them; default: {_SAMPLE}")
    bench = command("bench", "compare previews with as many ConfigMaps, and moves of jobs with restarts")
    bench.add_argument("--moves-only", action="store_true", help="measure only moves of jobs")
    bench.add_argument("--jobs", type=_positive, metavar="N", help="jobs to move; default: 1, 100 and 1000")
    command("cli", "run the local stack with the Pulumi command line and the published Kubernetes plugin")
    verdicts = command(
        "reachability",
        "compare verdicts with the real scheduler and Karpenter on drawn NodePools",
        "of the first round",
    )
    number(verdicts, "--rounds", 10)
    # A plan costs pods times NodePools: two rounds of 20 jobs take less time than one of 40.
    number(verdicts, "--jobs", 20, "of a round")
    number(
        command(
            "judges",
            "judge what drawn stacks register by what the clouds and SDKs publish",
            "draws the stacks",
        ),
        "--count",
        60,
        "of each cloud",
    )
    models = command("record-models", "record what a cloud publishes about its API")
    models.add_argument("cloud", choices=("aws", "gcp", "azure-native"))
    models.add_argument(
        "folder",
        type=Path,
        help="the package botocore or googleapiclient, or the folder of the packages azure-mgmt-*",
    )
    replacing = command("record-replacing", "record which fields replace a resource of AWS")
    replacing.add_argument("folder", type=Path, help="the sources of the Terraform provider")
    for one in (models, replacing):
        one.add_argument("source", help="where the folder is from, and its version")
    comparison = command(
        "compare-replacing",
        "compare which fields replace a resource of Azure in the simulator and in the provider",
    )
    comparison.add_argument(
        "sources", type=Path, help="provider/pkg/gen/replacement.go of github.com/pulumi/pulumi-azure-native"
    )
    mutants = command("mutants", "apply small changes to the sources and check that unit tests fail")
    mutants.add_argument(
        "--area", metavar="AREA", help="only the mutations of one list in tests/soak/mutants"
    )
    mutants.add_argument(
        "--only", metavar="TEXT", help="only the mutations whose file or effect contains TEXT"
    )
    return parser.parse_args(argv)


def _run(parsed: argparse.Namespace) -> int | None:  # noqa: C901 - one branch for each command
    # Each command imports only what it needs: the bench measures, and mutants need no simulator.
    from pulumi_holdfast.rehearsal.commands import enter_workspace

    match parsed.command:
        case "mutants":
            from tests.soak.mutants.runner import run_mutants

            return run_mutants(area=parsed.area, only=parsed.only)
        case "record-replacing":
            from tests.soak.judges import replacing

            replacing.record(parsed.folder, parsed.source)
        case "record-models":
            from tests.soak.judges import recording

            recording.record(parsed.cloud, parsed.folder, parsed.source)
        case "judges":
            from tests.soak.judges.command import judges

            judges(seed=parsed.seed, count=parsed.count)
        case "compare-replacing":
            from tests.soak.judges.command import compare_replacing

            return compare_replacing(parsed.sources)
        case "alerts":
            from tests.soak.alerts.command import alerts

            alerts(enter_workspace())
        case "crash":
            from tests.soak.crash.command import crash

            crash(parsed.stack, enter_workspace(), size=parsed.sample, seed=parsed.seed)
        case "reachability":
            from tests.soak.reachability.command import reachability

            enter_workspace()
            reachability(seed=parsed.seed, rounds=parsed.rounds, jobs=parsed.jobs)
        case "cli":
            from tests.soak.command_line import command_line

            return command_line(enter_workspace())
        case "bench":
            from tests.soak.bench.command import bench

            bench(enter_workspace(), jobs=parsed.jobs, moves_only=parsed.moves_only)
        case _:
            from tests.soak.faults.command import faults

            faults(
                enter_workspace(), seed=parsed.seed, jobs=parsed.jobs, rounds=parsed.rounds, two=parsed.two
            )
    return None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
