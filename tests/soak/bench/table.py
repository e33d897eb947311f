"""The benchmark's table."""

from collections.abc import Mapping, Sequence

from tests.soak.bench.measurement import Measurement

_MIB = 1024 * 1024


def rows(
    empty: Mapping[str, Measurement], stack: Mapping[str, Measurement], name: str
) -> Sequence[Sequence[str]]:
    """Return the table, its head first: each command of the stack beside the empty program's."""
    head = ("command", "empty", name, "ratio", "empty", name, "ratio")
    return [head, *(_row(command, empty[command], stack[command]) for command in stack)]


def render(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, its columns aligned: the first to the left, figures to the right."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in table
    ]


def _row(command: str, empty: Measurement, stack: Measurement) -> tuple[str, ...]:
    return (
        command,
        f"{empty.seconds:.1f} s",
        f"{stack.seconds:.1f} s",
        f"{stack.seconds / empty.seconds:.1f}",
        f"{empty.peak_bytes / _MIB:.0f} MiB",
        f"{stack.peak_bytes / _MIB:.0f} MiB",
        f"{stack.peak_bytes / empty.peak_bytes:.1f}",
    )
