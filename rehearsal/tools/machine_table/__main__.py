"""`python -m rehearsal.tools.machine_table`: write AWS's machine table anew."""

import sys

from rehearsal.errors import RehearsalError
from rehearsal.paths import Workspace
from rehearsal.tools.machine_table.sources import read_sources
from rehearsal.tools.machine_table.table import machine_table


def main() -> int:
    """Write the table and return the exit code."""
    try:
        project_root = Workspace.find().project_root
        described, market = read_sources(project_root)
        table = machine_table(described, market)
    except RehearsalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    place = project_root / "scheduling" / "machines" / "aws.json"
    place.write_text(table, encoding="utf-8")
    print(f"wrote {place.relative_to(project_root)}: {table.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
