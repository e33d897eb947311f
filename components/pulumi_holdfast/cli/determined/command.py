"""`holdfast determined FILE`: prints the resource pools of Determined's master configuration as a stack's `pools`."""

import argparse
import sys
from pathlib import Path

from pulumi_holdfast.cli.determined.conversion import as_yaml, convert
from pulumi_holdfast.cli.determined.parser import read_master_file
from pulumi_holdfast.ladder.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file to convert."""
    parser.add_argument("file", type=Path, help="master.yaml, or a file that holds its resource_pools")


def run(parsed: argparse.Namespace) -> int:
    """Print `pools:` as YAML and return 0; return 1, with a line for each problem, if something has no equivalent."""
    try:
        print(as_yaml(convert(read_master_file(parsed.file))), end="")
    except ConfigError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0
