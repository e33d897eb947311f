"""Files and folders that change at once or not at all."""

import shutil
import tempfile
from pathlib import Path

from holdfast.simulator.paths import Workspace


def partial_dir(workspace: Workspace) -> Path:
    """Where half-made things lie: on the same file system as their places, so that a rename is enough."""
    folder = workspace.tools_bin.parent / "partial"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def empty_partial_dir(workspace: Workspace) -> None:
    """Remove what an interrupted run left half made."""
    shutil.rmtree(partial_dir(workspace))
    partial_dir(workspace)


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".", delete=False
    ) as file:
        file.write(text)
    Path(file.name).replace(path)


def replace_folder(made: Path, place: Path) -> None:
    """Put the folder `made` where `place` is; what was there goes. Both on one file system."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = made.with_name(f"{made.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    made.rename(place)
    shutil.rmtree(old, ignore_errors=True)
