"""Finds the generated classes of an SDK in its source, without importing it.

Importing would cost a second a cloud, and is not safe from here: the SDKs load their modules lazily, which up to
Python 3.11.8 breaks when the program, on its own thread, touches a module that is just being loaded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# What begins a statement at the left margin of a generated file; docstrings are indented.
_BOUNDARY = re.compile(
    r"^(?:class (?P<name>\w+)(?:\((?P<bases>[^)]*)\))?:|@|if |else:|elif |def |from |import |[A-Za-z_]\w* = )",
    re.MULTILINE,
)
_SIBLING = re.compile(r"^from \.\. import (?P<folder>\w+)(?: as (?P<alias>\w+))?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SdkClass:
    """A class in an SDK's source."""

    name: str
    file: Path
    bases: str

    @property
    def is_resource(self) -> bool:
        """Tell whether it is a resource or a component."""
        return "Resource" in self.bases

    @property
    def is_enum(self) -> bool:
        """Tell whether it lists the values of a scalar."""
        return "Enum" in self.bases

    @property
    def text(self) -> str:
        """The class as it is written."""
        _, start, end = _index(self.file)[self.name]
        return _read(self.file)[start:end]


def find_in(file: Path, name: str) -> SdkClass | None:
    """Return a class of a file, None where it has none of the name."""
    found = _index(file).get(name)
    return SdkClass(name=name, file=file, bases=found[0]) if found else None


def find_resource(folder: Path, name: str) -> SdkClass | None:
    """Return a resource class of a module folder; its file is named after it in snake case."""
    file = _files_by_class(folder).get(_folded(name))
    return find_in(file, name) if file else None


def resolve(dotted: str, seen_from: Path) -> SdkClass | None:
    """Return the class a name in an annotation means, as seen from the file it stands in; None if unclear."""
    *prefix, name = dotted.split(".")
    return next(
        (
            found
            for file in _candidates(prefix, name, seen_from)
            if (found := find_in(file, name)) is not None
        ),
        None,
    )


def _candidates(prefix: list[str], name: str, seen_from: Path) -> Iterator[Path]:
    folder = seen_from.parent
    if not prefix:
        yield from (seen_from, folder / "_inputs.py", folder / "_enums.py")
    elif prefix[0].startswith("pulumi_"):
        folder = _package_root(folder).parent.joinpath(*(part for part in prefix if part != "outputs"))
    elif prefix[0] != "outputs":
        folder = _siblings(seen_from).get(prefix[0], folder)
    if prefix and prefix[-1] != "outputs":
        yield from (folder / "_inputs.py", folder / "_enums.py")
    if prefix and prefix[-1] == "outputs":
        yield folder / "outputs.py"
    elif _folded(name) in _files_by_class(folder):
        yield _files_by_class(folder)[_folded(name)]


def _package_root(folder: Path) -> Path:
    return next((one for one in (folder, *folder.parents) if one.name.startswith("pulumi_")), folder)


@cache
def _index(file: Path) -> Mapping[str, tuple[str, int, int]]:
    """Return the bases, start and end of each class of a file: files of 4 MB are not parsed for one class."""
    if not file.is_file():
        return {}
    text = _read(file)
    marks = list(_BOUNDARY.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {
        mark["name"]: (mark["bases"] or "", mark.start(), end)
        for mark, end in zip(marks, ends, strict=True)
        if mark["name"]
    }


@cache
def _siblings(file: Path) -> Mapping[str, Path]:
    root = file.parent.parent
    return {mark["alias"] or mark["folder"]: root / mark["folder"] for mark in _SIBLING.finditer(_read(file))}


@cache
def _files_by_class(folder: Path) -> Mapping[str, Path]:
    return {_folded(file.stem): file for file in folder.glob("*.py")}


def _folded(name: str) -> str:
    """Return what a class has in common with the file named after it in snake case."""
    return name.replace("_", "").lower()


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")
