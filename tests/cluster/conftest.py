"""Deletes the control plane of a folder after its tests: sixteen idle ones take as much CPU as a whole core."""

from pathlib import Path

import pytest


class Folder(pytest.Package):
    """A folder of tests: what its `conftest.py` makes with the scope "package" ends with it.

    pytest knows such a scope of folders with an `__init__.py` alone, and takes others for the whole session.
    """

    def setup(self) -> None:
        """There is no `__init__.py` to import."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector:
    """Collect each folder below this one as such."""
    return Folder.from_parent(parent, path=path)  # pyright: ignore[reportUnknownMemberType]  # pytest leaves it untyped
