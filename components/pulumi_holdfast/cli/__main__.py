"""The command line `holdfast`: one table of commands, grouped in the help.

What a command needs is imported when it runs: `holdfast --help` and the shell's completion import no SDK.
"""

import argparse
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, cast

# What a shell reports for a command that Ctrl-C ended.
_INTERRUPTED: Final = 128 + signal.SIGINT
_FAILED: Final = 1
_RESUMES: Final = "it continues from here"
_RESTARTS: Final = "it starts from the beginning"

Adds = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A subcommand.

    `run` names the function that takes the parsed arguments and returns the exit code, as `module:function`.
    `arguments` adds its options, or names a function that does; that module is imported only for this command.
    `after_interrupt` is what the command does when it is run again after Ctrl-C.
    """

    summary: str
    run: str
    arguments: Adds | str | None = None
    after_interrupt: str = _RESTARTS


def _stack(parser: argparse.ArgumentParser) -> None:
    _complete(parser.add_argument("stack", metavar="STACK", help="a stack in stacks/, for example `local`"))


def _complete(argument: argparse.Action) -> None:
    """Complete an argument with the names of stacks."""
    argument.completer = _stacks  # type: ignore[attr-defined]  # read by argcomplete, not declared by argparse


def _stack_and_force(parser: argparse.ArgumentParser) -> None:
    _stack(parser)
    parser.add_argument(
        "--force", action="store_true", help="remove everything without running the engine's destroy"
    )


def _stack_and_picture(parser: argparse.ArgumentParser) -> None:
    _stack(parser)
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="write the walk down the ladder and back up as SVG"
    )


def _stack_or_program(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument(
        "target",
        metavar="STACK|FOLDER",
        help="a stack in stacks/, or the folder of any Pulumi program in Python",
    )
    _complete(target)
    to = parser.add_argument(
        "--to", metavar="STACK", help="a second stack: a job moves to a tier in its cluster, and returns"
    )
    _complete(to)
    program = parser.add_argument_group("for the folder of a program")
    program.add_argument("--stack", metavar="NAME", help="the stack whose configuration the program reads")
    program.add_argument(
        "--existing",
        action="append",
        type=Path,
        default=[],
        metavar="PATH",
        help="manifests of objects that exist before the program: definitions, nodes; for a stack on an existing cluster, "
        "sections of its owner's stack file; may be repeated",
    )
    program.add_argument(
        "--answers",
        type=Path,
        metavar="FILE",
        help="results of functions that are not simulated, by their tokens, as YAML",
    )
    program.add_argument(
        "--charts", type=Path, metavar="FOLDER", help="a folder with the unpacked Helm charts of the program"
    )
    program.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="run the installed plugin of a package, which is not simulated; may be repeated",
    )


def _stacks(**_: object) -> list[str]:
    return sorted(file.stem.removeprefix("Pulumi.") for file in Path("stacks").glob("Pulumi.*.yaml"))


def _rehearsals(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", prog="holdfast rehearse")
    for name, each in REHEARSALS.items():
        add = verbs.add_parser(name, help=each.summary, description=each.summary)
        cast("Adds", each.arguments)(add)
        add.add_argument(
            "--verbose",
            action="store_true",
            help="print what is otherwise only in the log: the engine's lines",
        )


def _pack_and_plugin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        metavar="FOLDER",
        help="of the policy pack; an earlier pack in it is replaced",
    )
    parser.add_argument(
        "--kubectl",
        type=Path,
        metavar="FILE",
        help="of the kubectl plugin: name it kubectl-holdfast and put it on PATH",
    )


def _of_stack(
    summary: str, function: str, *, arguments: Adds = _stack, after_interrupt: str = _RESUMES
) -> Command:
    """Return a command that takes a stack."""
    run = f"pulumi_holdfast.rehearsal.commands:{function}"
    return Command(summary=summary, run=run, arguments=arguments, after_interrupt=after_interrupt)


def _of_module(summary: str, module: str, *, after_interrupt: str = _RESTARTS) -> Command:
    """Return a command whose module has the functions `add_arguments` and `run`."""
    adds, run = f"{module}:add_arguments", f"{module}:run"
    return Command(summary=summary, run=run, arguments=adds, after_interrupt=after_interrupt)


REHEARSALS: Final[Mapping[str, Command]] = {
    "run": Command(
        summary="run the whole lifecycle of a stack or of any Pulumi program in Python, preview to destroy",
        run="pulumi_holdfast.rehearsal.commands:rehearse_stack",
        arguments=_stack_or_program,
    ),
    "preview": _of_stack("print the policies' verdicts on the engine's plan, and a summary", "preview_stack"),
    "up": _of_stack("bring the stack up, with the control plane it needs", "up_stack"),
    "refresh": _of_stack("read the actual resources into the stack's state", "refresh_stack"),
    "destroy": _of_stack("delete the stack's resources and keep the control plane", "destroy_stack"),
    "down": _of_stack(
        "destroy the stack, then stop all of its processes", "down_stack", arguments=_stack_and_force
    ),
    "demo": _of_stack(
        "run the spot eviction scenarios on a stack that is up", "demo_stack", arguments=_stack_and_picture
    ),
}

GROUPS: Final[dict[str, dict[str, Command]]] = {
    "Run a stack on this machine, with no account and no cloud": {
        "rehearse": Command(
            summary=f"{', '.join(list(REHEARSALS)[:-1])} or {list(REHEARSALS)[-1]}; `rehearse STACK` is `rehearse run STACK`",
            run="pulumi_holdfast.cli.__main__:rehearse",
            arguments=_rehearsals,
        ),
        "tools": _of_module(
            "find or build the tools, and regenerate the files that come from pinned sources",
            "pulumi_holdfast.rehearsal.tools.command",
            after_interrupt=_RESUMES,
        ),
    },
    "Prepare a cloud": {
        "bootstrap": _of_module(
            "create the state store and the key that a cloud's stacks need",
            "pulumi_holdfast.cli.bootstrap.command",
            after_interrupt=_RESUMES,
        ),
        "preflight": _of_module(
            "compare the quotas of a stack's account with the stack's demand", "pulumi_holdfast.cli.preflight"
        ),
        "cost": _of_module(
            "print the hourly cost of a stack before it exists", "pulumi_holdfast.cli.cost.command"
        ),
    },
    "Plan a ladder": {
        "economics": _of_module(
            "calculate the savings on spot and the settings of a ladder",
            "pulumi_holdfast.analysis.economics.command",
        ),
        "replay": _of_module(
            "replay a ladder on recorded availability, with the controller's own decisions",
            "pulumi_holdfast.analysis.replay.command",
        ),
    },
    "Take one part": {
        "chart": _of_module(
            "write the fallback controller as a Helm chart, for a cluster that Pulumi does not manage",
            "pulumi_holdfast.cli.controller_chart",
        ),
        "pack": Command(
            summary="build the policy pack as one self-contained folder, and the kubectl plugin as one file",
            run="pulumi_holdfast.cli.__main__:pack",
            arguments=_pack_and_plugin,
        ),
        "schemas": _of_module(
            "regenerate the schemas of stack files and of the package, and the tables of configuration.md",
            "pulumi_holdfast.cli.package_schema",
        ),
    },
}

COMMANDS: Final = {name: command for group in GROUPS.values() for name, command in group.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for a failure, 2 for wrong usage, 130 when interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(build_parser(_completed_command()))
    parsed = parse(words)
    command = COMMANDS[parsed.subcommand] if parsed.subcommand != "rehearse" else REHEARSALS[parsed.verb]
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell ignores SIGINT for a background job. The engine would inherit that and could not be interrupted.
        signal.signal(signal.SIGINT, _ignore)
    try:
        return cast("int", _resolve(command.run)(parsed))
    except KeyboardInterrupt:
        print(
            f"interrupted: run `holdfast {shlex.join(words)}` again and {command.after_interrupt}",
            file=sys.stderr,
        )
        return _INTERRUPTED
    except Exception as failure:
        if not _is_for_the_user(failure):
            raise
        print(f"error: {failure}", file=sys.stderr)
        return _FAILED


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command. A word behind `rehearse` that is no verb is a stack or a folder: its whole lifecycle runs."""
    given = list(words)
    parser = build_parser(given[0] if given else None)
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        parser.error(_no_such("command", given[0], COMMANDS))
    if given[:1] == ["rehearse"] and len(given) > 1 and given[1] not in {*REHEARSALS, "-h", "--help"}:
        if len(given) > 2 and not given[2].startswith("-") and not given[1].startswith("-"):
            # A lifecycle takes one stack.
            parser.error(_no_such("verb", given[1], REHEARSALS))
        given.insert(1, "run")
    return parser.parse_args(given)


def _no_such(what: str, word: str, known: Mapping[str, Command]) -> str:
    """Return that a word is no command, with the nearest one, or all of them where none is near."""
    near = get_close_matches(word, known, n=1)
    return f'no {what} "{word}". ' + (f'Write "{near[0]}".' if near else f"There are: {', '.join(known)}.")


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command line, with the options of one command only."""
    parser = argparse.ArgumentParser(
        prog="holdfast",
        usage="holdfast COMMAND ...",
        description="Spot-first training clusters on EKS, AKS and GKE.",
        epilog=_commands_by_group(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_PrintVersion, nargs=0, default=argparse.SUPPRESS, help="print the version"
    )
    parser.add_argument(
        "--completion",
        choices=("bash", "zsh", "fish"),
        action=_PrintCompletion,
        help='print the completion script of a shell: eval "$(holdfast --completion bash)"',
    )
    commands = parser.add_subparsers(
        dest="subcommand", required=True, metavar="COMMAND", help=argparse.SUPPRESS, prog="holdfast"
    )
    for name, each in COMMANDS.items():
        # Without `help` argparse does not list the command a second time, below the groups.
        subparser = commands.add_parser(name, description=each.summary)
        if name == command and each.arguments is not None:
            adds = (
                cast("Adds", _resolve(each.arguments)) if isinstance(each.arguments, str) else each.arguments
            )
            adds(subparser)
    return parser


def rehearse(parsed: argparse.Namespace) -> int:
    """Run a verb of `holdfast rehearse`."""
    return cast("int", _resolve(REHEARSALS[parsed.verb].run)(parsed))


def pack(parsed: argparse.Namespace) -> int:
    """Build the policy pack in a folder, the kubectl plugin in a file, or both. Raises ConfigError if neither is named."""
    from pulumi_holdfast.ladder.errors import ConfigError

    if parsed.folder is None and parsed.kubectl is None:
        raise ConfigError.of(
            field="FOLDER",
            value="nothing",
            allowed="a folder for the policy pack, or --kubectl with a file for the plugin",
            fix="Write `holdfast pack dist/policy-pack`.",
        )
    if parsed.folder is not None:
        _resolve("pulumi_holdfast.cli.policy_pack:build")(parsed.folder)
    if parsed.kubectl is not None:
        _resolve("pulumi_holdfast.cli.kubectl.bundle:build")(parsed.kubectl)
    return 0


class _PrintVersion(argparse.Action):
    """Prints the version of the installed package, which is looked up only for this."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        del namespace, values, option_string
        print(f"holdfast {version('pulumi-holdfast')}")
        parser.exit()


class _PrintCompletion(argparse.Action):
    """Prints the script with which a shell completes the commands, options and stacks."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        del namespace, option_string
        from argcomplete.shell_integration import shellcode

        try:
            print(shellcode(["holdfast"], shell=str(values)), flush=True)
        except BrokenPipeError:
            # The reader, such as `head`, has what it wants. Python would write the rest again when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        parser.exit()


def _commands_by_group() -> str:
    width = max(map(len, COMMANDS)) + 2
    blocks = [
        "\n".join([f"{title}:", *(f"  {name:<{width}}{each.summary}" for name, each in group.items())])
        for title, group in GROUPS.items()
    ]
    return "\n\n".join([*blocks, "`holdfast COMMAND --help` shows the options of a command."])


def _completed_command() -> str | None:
    """Return the command on the line that the shell completes."""
    words = os.environ.get("COMP_LINE", "").split()
    return words[1] if len(words) > 1 and words[1] in COMMANDS else None


def _resolve(name: str) -> Callable[..., object]:
    module, _, function = name.partition(":")
    return cast("Callable[..., object]", getattr(importlib.import_module(module), function))


def _is_for_the_user(failure: Exception) -> bool:
    """Whether the message of a failure says all that the user needs: a traceback would hide it."""
    from pulumi_holdfast.rehearsal.errors import FAILURES

    return isinstance(failure, FAILURES)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - the signature of a signal handler
    raise KeyboardInterrupt


def _ignore(number: int, frame: FrameType | None) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
