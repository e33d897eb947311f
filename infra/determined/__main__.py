"""`python -m holdfast.infra.determined FILE` prints the pools of Determined's master configuration as a stack's own."""

import argparse
import sys
from pathlib import Path

from holdfast.infra.determined.conversion import as_yaml, convert
from holdfast.infra.determined.parser import read_master_file
from holdfast.scheduling.errors import ConfigError


def main(arguments: list[str] | None = None) -> int:
    """Print `pools:` as YAML; 1 where something in the file has no equivalent, with a line for each such thing."""
    parser = argparse.ArgumentParser(prog="python -m holdfast.infra.determined", description=__doc__)
    parser.add_argument("file", type=Path, help="master.yaml, or a file that holds its resource_pools")
    file: Path = parser.parse_args(arguments).file
    try:
        print(as_yaml(convert(read_master_file(file))), end="")
    except ConfigError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
