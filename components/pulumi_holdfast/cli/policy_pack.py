"""Builds the policy pack as one self-contained folder: `holdfast pack FOLDER`.

The folder holds the pack, the parts of the package that it uses with their machine tables, and the pinned packages for an
environment of its own. `pulumi preview --policy-pack <folder>` and `pulumi policy publish` take it as it is.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.rehearsal.paths import REPOSITORY

_PACK: Final = REPOSITORY / "policies"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
#: What the pack imports of the package.
PARTS: Final = ("ladder", "program")
_OWN_ENVIRONMENT: Final = "virtualenv: ../.venv"
_SKIPPED: Final = ("__pycache__", "requirements.in")


def build(folder: Path) -> None:
    """Write the pack to a folder, replacing what an earlier build left there.

    Raises ConfigError if the folder has anything else in it.
    """
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "PulumiPolicy.yaml").is_file():
            raise ConfigError.of(
                field="FOLDER",
                value=f"{folder}, which holds other files",
                allowed="a folder that is empty, does not exist, or has an earlier pack",
                fix="Name another folder.",
            )
        shutil.rmtree(folder)
    ignored = shutil.ignore_patterns(*_SKIPPED)
    shutil.copytree(_PACK, folder, ignore=ignored)
    package = folder / _PACKAGE.name
    package.mkdir()
    shutil.copy2(_PACKAGE / "__init__.py", package)
    for name in PARTS:
        shutil.copytree(_PACKAGE / name, package / name, ignore=ignored)
    description = folder / "PulumiPolicy.yaml"
    lines = description.read_text("utf-8").splitlines()
    kept = (line for line in lines if not line.lstrip().startswith("#"))
    own = (line.replace(_OWN_ENVIRONMENT, "virtualenv: venv") for line in kept)
    description.write_text("\n".join(own) + "\n", "utf-8")
