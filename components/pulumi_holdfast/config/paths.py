"""Resolves paths of the configuration, which are relative to the project's directory."""

import os
from pathlib import Path
from typing import Final, overload

_PROJECT: Final = Path(__file__).resolve().parents[3]


def in_project(path: str) -> str:
    """The absolute path of a path in the project, whatever the working directory."""
    return str(_PROJECT / path)


def from_program(path: Path) -> str:
    """A path of the project, relative to the working directory, so that each checkout gives the same inputs; others unchanged."""
    project = find_project()
    return os.path.relpath(path) if project is not None and path.is_relative_to(project) else str(path)


def find_project() -> Path | None:
    """The folder with Pulumi.yaml around the current directory, None outside of a project."""
    here = Path.cwd()
    return next((each for each in (here, *here.parents) if (each / "Pulumi.yaml").is_file()), None)


def stack_file(stack: str) -> Path:
    """The file of a stack: in the project around the current directory, otherwise in the one of this module."""
    return (find_project() or _PROJECT) / "stacks" / f"Pulumi.{stack}.yaml"


@overload
def chart_source(source: str) -> str: ...
@overload
def chart_source(source: None) -> None: ...
@overload
def chart_source(source: str | None) -> str | None: ...
def chart_source(source: str | None) -> str | None:
    """Where charts come from: an address unchanged, a directory of the project, None for upstream."""
    return source if source is None or "://" in source else from_program(Path(in_project(source)))
