"""The project's own sources as syntax trees, for the tests that hold the architecture."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "components/pulumi_holdfast"
#: The folders with sources: the parts of the package, and what is run by folder.
PACKAGES = (
    *(
        "ladder",
        "config",
        "kubernetes",
        "aws",
        "azure",
        "gcp",
        "local",
        "program",
        "controller",
        "analysis",
        "rehearsal",
        "cli",
    ),
    "infra",
    "policies",
)


@dataclass(frozen=True, kw_only=True)
class Module:
    """One source file: its path from the root, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The part of the package, or the folder at the root, that the module belongs to."""
        return self.path.removeprefix(f"{PACKAGE}/").split("/", 1)[0]

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every imported module's full name, with the line it is imported on."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module, node.lineno

    def components(self) -> Iterator[ast.ClassDef]:
        """The classes that extend `ComponentResource`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and any(
                ast.unparse(base).endswith("ComponentResource") for base in node.bases
            ):
                yield node


def modules(*packages: str) -> tuple[Module, ...]:
    """All modules of the packages named (of all packages when none is)."""
    return tuple(module for package in packages or PACKAGES for module in _modules_of(package))


@cache
def _modules_of(package: str) -> tuple[Module, ...]:
    found: list[Module] = []
    inside = ROOT / PACKAGE / package
    for file in sorted((inside if inside.is_dir() else ROOT / package).rglob("*.py")):
        text = file.read_text()
        found.append(Module(path=str(file.relative_to(ROOT)), text=text, tree=ast.parse(text)))
    return tuple(found)


def constructor(component: ast.ClassDef) -> ast.FunctionDef:
    """A component's `__init__`."""
    return next(
        node for node in component.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    )
