"""`holdfast preflight STACK`: prints each quota of a stack's cloud, and fails if a part of the stack cannot run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.infra.aws.config.stack import AwsPlatform
from holdfast.infra.aws.preflight.usage import quota_uses
from holdfast.infra.bootstrap.command import run_command
from holdfast.infra.paths import in_project
from holdfast.infra.preflight.quotas import report
from holdfast.infra.program import load_platform
from holdfast.scheduling.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("stack", metavar="STACK", help="a stack in stacks/, for example `aws-dev`")


def run(parsed: argparse.Namespace) -> int:
    """Print the quotas of the stack; return 1 if one of them is too small for a part of it. Raises ConfigError.

    The command line of the cloud uses its own credentials: set AWS_PROFILE to the profile of the stack.
    """
    platform = load_platform(Path(in_project(f"stacks/Pulumi.{parsed.stack}.yaml")))
    if not isinstance(platform, AwsPlatform):
        raise ConfigError(
            [
                Problem(
                    field=parsed.stack,
                    value=f"a stack on {platform.cloud}",
                    allowed="a stack on aws",
                    fix="The guide of the cloud has the commands that show its quotas.",
                )
            ]
        )
    uses = quota_uses(platform, parsed.stack, run_command)
    for line in report(uses):
        print(line)
    return int(any(use.blocks for use in uses))
