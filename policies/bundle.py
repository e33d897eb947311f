"""Builds the policy pack as one self-contained folder: `holdfast pack FOLDER`.

The folder holds the pack, the modules of `scheduling` that it uses with their machine tables, the profiles, and the pinned
packages for an environment of its own. `pulumi preview --policy-pack <folder>` and `pulumi policy publish` take it as it is.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from holdfast.scheduling.errors import ConfigError

_PACK: Final = Path(__file__).resolve().parent
_SOURCES: Final = _PACK.parent
#: What the pack imports of this repository.
PACKAGES: Final = ("policies", "scheduling")
_BESIDE: Final = ("__main__.py", "requirements.txt", "PulumiPolicy.yaml")
_OWN_ENVIRONMENT: Final = "virtualenv: ../.venv"
_SKIPPED: Final = (
    "__pycache__",
    "bundle.py",
    "requirements.*",
    "PulumiPolicy.yaml",
    "profiles",
    "__main__.py",
)


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
    package = folder / "holdfast"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""The parts of Holdfast that the policy pack uses."""\n', "utf-8")
    for name in PACKAGES:
        shutil.copytree(_SOURCES / name, package / name, ignore=shutil.ignore_patterns(*_SKIPPED))
    for name in _BESIDE:
        shutil.copy2(_PACK / name, folder / name)
    shutil.copytree(_PACK / "profiles", folder / "profiles")
    description = folder / "PulumiPolicy.yaml"
    lines = description.read_text("utf-8").splitlines()
    kept = (line for line in lines if not line.lstrip().startswith("#"))
    own = (line.replace(_OWN_ENVIRONMENT, "virtualenv: venv") for line in kept)
    description.write_text("\n".join(own) + "\n", "utf-8")
