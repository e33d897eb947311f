"""Builds the plugin as one executable file: `holdfast pack --kubectl FILE`.

The file is a zip archive of Python modules with a line before it that names the interpreter, so it needs Python 3.11 and
kubectl and nothing else. The same sources give the same file on every machine.
"""

from __future__ import annotations

import ast
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOLDFAST: Final = Path(__file__).resolve().parents[2]
_MAIN: Final = "pulumi_holdfast.cli.kubectl.__main__"
_LEFT_OUT: Final = frozenset({"pulumi_holdfast.cli.kubectl.bundle"})
_INTERPRETER: Final = b"#!/usr/bin/env python3\n"
#: What the page consists of, beside the module that serves it.
_DATA: Final = ("cli/kubectl/ui/page.html", "cli/kubectl/ui/page.css", "cli/kubectl/ui/page.js")
# Old interpreters must be able to read this module, and only this one.
_START: Final = b"""import sys

if sys.version_info < (3, 11):
    sys.exit("error: Python: got %d.%d; allowed: 3.11 or newer. Install it as python3." % sys.version_info[:2])

from pulumi_holdfast.cli.kubectl.__main__ import main

sys.exit(main())
"""
#: A constant time for every file, as for the controller's archives.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_READABLE: Final = 0o100644 << 16
_EXECUTABLE: Final = 0o755


def build(path: Path) -> None:
    """Write the plugin to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(archive(plugin_files(_HOLDFAST)))
    path.chmod(_EXECUTABLE)


def plugin_files(root: Path) -> Mapping[str, bytes]:
    """Return the files of the plugin by their path in the archive: every module that it imports, and the page."""
    files = {"__main__.py": _START}
    for name in sorted(imported_modules(root, _MAIN)):
        file = _file_of(root, name)
        if file is not None:
            files[f"{root.name}/{file.relative_to(root).as_posix()}"] = file.read_bytes()
    for name in _DATA:
        files[f"{root.name}/{name}"] = (root / name).read_bytes()
    return files


def imported_modules(root: Path, start: str) -> frozenset[str]:
    """Return all modules of ours that a module imports, directly or not, with the packages around them."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        file = None if name in found or name in _LEFT_OUT else _file_of(root, name)
        if file is None:
            continue
        found.add(name)
        package = name.rpartition(".")[0]
        ahead += [package] if package else []
        ahead += _imports(ast.parse(file.read_bytes()))
    return frozenset(found)


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return the executable archive of files, in the order of their paths and without compression.

    Compressed bytes differ between versions of zlib.
    """
    packed = io.BytesIO()
    packed.write(_INTERPRETER)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_STORED) as target:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(path, _TIME)
            entry.external_attr, entry.create_system = _READABLE, 3
            target.writestr(entry, content)
    return packed.getvalue()


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield from _imports(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(root: Path, name: str) -> Path | None:
    if name.partition(".")[0] != root.name:
        return None
    base = root.joinpath(*name.split(".")[1:])
    return next((file for file in (base / "__init__.py", base.with_suffix(".py")) if file.is_file()), None)
