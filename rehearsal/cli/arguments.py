"""The command line of `python -m holdfast.rehearsal`."""

import argparse
from dataclasses import dataclass
from typing import Final

#: Commands on a stack, and what each does.
ON_A_STACK: Final = {
    "rehearse": "play the whole life of a stack, from its plan to its destroy, on a control plane of its own",
    "preview": "print the engine's plan, the policies' verdicts and a summary",
    "up": "bring the stack up, with the control plane it needs",
    "refresh": "read what there is into the stack's state",
    "destroy": "remove the stack's resources and leave the control plane",
    "down": "destroy the stack, then end every process of it",
    "demo": "play the spot eviction on a stack that is up",
    "crash": "kill the engine after one resource after another and prove that the next run makes up for it",
}

#: Commands that leave nothing behind, and nothing to go on from when they are interrupted.
IN_ITS_OWN_PLACE: Final = frozenset({"rehearse", "crash", "chaos", "bench"})

_SAMPLE: Final = 3
_SEEDS: Final = "default: HOLDFAST_SEED, else drawn and shown"


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What was asked for. `seed` is None where none was given; `sample` is None for every resource.

    `jobs` is how many follow a ladder, None for as many as a command takes by itself.
    """

    command: str
    stack: str
    force: bool = False
    sample: int | None = None
    seed: int | None = None
    repetitions: int = 3
    jobs: int | None = None
    rounds: int = 6
    moves_only: bool = False
    policies_only: bool = False


def parse(argv: list[str]) -> Arguments:
    """Read the command line. Exits with a message, code 2, where it is not understood."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.rehearsal",
        description="Run a stack through the real Pulumi engine on this machine: no account, no cloud.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, does in ON_A_STACK.items():
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument("stack", metavar="STACK", help="a stack of stacks/, as `local`")
        _ADD_FLAGS.get(name, _no_flags)(command)
    bench = commands.add_parser("bench", help="seconds and memory of preview and up, beside an empty program")
    bench.add_argument("stack", metavar="STACK", nargs="?", default="local")
    bench.add_argument("--repetitions", type=_positive, default=3, metavar="N", help="default: 3")
    part = bench.add_mutually_exclusive_group()
    part.add_argument("--moves-only", action="store_true", help="measure moves of jobs alone")
    part.add_argument("--policies-only", action="store_true", help="measure what the policy pack adds alone")
    bench.add_argument("--jobs", type=_positive, metavar="N", help="jobs to move; default: 1, 100 and 1000")
    chaos = commands.add_parser("chaos", help="many jobs on a ladder while everything around them fails")
    chaos.set_defaults(stack="local")
    chaos.add_argument("--seed", type=int, metavar="S", help=f"draws the faults; {_SEEDS}")
    chaos.add_argument("--jobs", type=_positive, default=200, metavar="N", help="default: 200")
    chaos.add_argument("--rounds", type=_positive, default=6, metavar="N", help="of faults; default: 6")
    return Arguments(**vars(parser.parse_args(argv)))


def _no_flags(_: argparse.ArgumentParser) -> None:
    pass


def _down_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="drop everything as it is, without the engine")


def _crash_flags(command: argparse.ArgumentParser) -> None:
    command.set_defaults(sample=_SAMPLE)
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--every", dest="sample", action="store_const", const=None, help="after every resource"
    )
    which.add_argument("--sample", type=_positive, metavar="N", help=f"after N of them; default: {_SAMPLE}")
    command.add_argument(
        "--seed",
        type=int,
        metavar="S",
        help=f"chooses the sample; {_SEEDS}",
    )


_ADD_FLAGS: Final = {"down": _down_flags, "crash": _crash_flags}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
