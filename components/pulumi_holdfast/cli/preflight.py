"""`holdfast preflight STACK`: prints each quota of a stack's cloud, and fails if a part of the stack cannot run, or none is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_holdfast.config.loader import stack_file
from pulumi_holdfast.config.preflight import report, run_command
from pulumi_holdfast.stack_program import quota_uses

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("stack", metavar="STACK", help="a stack in stacks/, for example `aws-dev`")


def run(parsed: argparse.Namespace) -> int:
    """Print the quotas of the stack; return 1 if one of them is too small for a part of it, or all are unknown. Raises ConfigError.

    The command line of the cloud uses its own credentials: set AWS_PROFILE to the profile of the stack.
    """
    uses = quota_uses(stack_file(parsed.stack), parsed.stack, run_command)
    for line in report(uses):
        print(line)
    if all(use.granted is None for use in uses):
        print("error: no quota is checked. Log in with the cloud's command line, and run the command again.")
        return 1
    return int(any(use.blocks for use in uses))
