"""`holdfast init NAME`: writes a new project with one stack, as files that the user owns."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_holdfast.cli.template.files import marked_lines, project_files, read_stack_name
from pulumi_holdfast.ladder.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", metavar="NAME", help="a cloud and an environment, for example `aws-dev`")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="the folder to write; by default NAME")


def run(parsed: argparse.Namespace) -> int:
    """Write the project, and print what to do next. Raises ConfigError for a bad name or a folder that holds files."""
    name = read_stack_name(parsed.name)
    folder: Path = parsed.folder or Path(str(name))
    made = project_files(name, version("holdfast"))
    write_project(folder, made)
    stack_file = f"stacks/Pulumi.{name}.yaml"
    print(f"{folder}: {len(made)} files. README.md says what is next.")
    for number, line in marked_lines(made[stack_file]):
        print(f"  fill in {stack_file}:{number}: {line}")
    return 0


def write_project(folder: Path, files: Mapping[str, str]) -> None:
    """Write files to a new or empty folder. Raises ConfigError for any other."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError.of(
            field="--folder",
            value=f"{folder}, which is {'a folder with files' if folder.is_dir() else 'a file'}",
            allowed="a folder that is empty or does not exist",
            fix="Name another folder with --folder.",
        )
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
