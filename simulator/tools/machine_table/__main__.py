"""`python -m holdfast.simulator.tools.machine_table`: write the tables of AWS's and of Azure's machines anew."""

import sys
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.machine_table.aws import machine_table, read_sources
from holdfast.simulator.tools.machine_table.azure import azure_machine_table, read_azure_sources


def main() -> int:
    """Write the tables and return the exit code."""
    try:
        project_root = Workspace.find().project_root
        tables = {
            "aws.json": machine_table(*read_sources(project_root)),
            "azure.json": azure_machine_table(read_azure_sources(project_root)),
        }
    except RehearsalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, table in tables.items():
        _write(project_root / "scheduling" / "machines" / name, table)
    return 0


def _write(place: Path, table: str) -> None:
    place.write_text(table, encoding="utf-8")
    print(f"wrote {place.name}: {table.count(chr(10))} lines")


if __name__ == "__main__":
    sys.exit(main())
