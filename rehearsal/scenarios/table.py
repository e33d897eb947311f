"""A table of text. Pure."""

from collections.abc import Sequence


def render_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines with each column as wide as its widest cell, under their heads."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
