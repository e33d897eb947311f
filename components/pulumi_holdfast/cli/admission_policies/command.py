"""`holdfast policies admission FILE...`: prints the policies that check jobs in the API server, for any program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from pulumi_holdfast.cli.admission_policies.manifests import admission_manifests
from pulumi_holdfast.cli.admission_policies.program import read_program

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand and its files."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    summary = "print the policies that check jobs in the API server, and FallbackPolicies with the facts of their pools"
    action = actions.add_parser("admission", help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    action.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="manifests of FallbackPolicies and NodePools, the output of `pulumi stack export` or `pulumi preview --json`",
    )
    action.add_argument("--warn", action="store_true", help="warn about jobs instead of rejecting them")


def run(parsed: argparse.Namespace) -> int:
    """Print the manifests as YAML for `kubectl apply --server-side -f -`, and return 0."""
    manifests = admission_manifests(read_program(parsed.files), warn=parsed.warn)
    print(yaml.safe_dump_all(manifests, sort_keys=False, width=10_000), end="")
    return 0
