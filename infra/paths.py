"""Where what the configuration names lies: its paths are relative to the project's folder."""

from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).resolve().parents[1]


def in_project(path: str) -> str:
    """The absolute path, wherever the program is run from."""
    return str(_PROJECT / path)


def chart_source(source: str) -> str:
    """Where charts come from: an address as it is, a directory by its absolute path."""
    return source if "://" in source else in_project(source)
