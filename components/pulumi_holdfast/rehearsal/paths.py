"""The paths of the rehearsal's files."""

import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pulumi_holdfast.rehearsal.errors import RehearsalError

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_CHECKOUT: Final = _PACKAGE.parents[1]
#: The folders of the repository that a rehearsal needs beside the package: the checkout, or what a wheel carries of it.
REPOSITORY: Final = _CHECKOUT if (_CHECKOUT / "tools").is_dir() else _PACKAGE / "repository"
# Another project may have a folder `tools` of its own.
_PINS: Final = "tools/pulumi/go.mod"
_PROJECT: Final = "Pulumi.yaml"


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A project, and the folders below it that the rehearsal writes.

    Creates no folders; the writers create them.
    """

    project_root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> "Workspace":
        """Return the workspace around `start` (default: the current directory).

        Raises RehearsalError where neither it nor a folder above holds a Pulumi.yaml.
        """
        origin = (start or Path.cwd()).resolve()
        for folder in (origin, *origin.parents):
            if (folder / _PROJECT).is_file():
                return cls(project_root=folder)
        raise RehearsalError(
            f"{origin} is not in a project; run the command in the folder with Pulumi.yaml or below it"
        )

    @property
    def state_dir(self) -> Path:
        """The rehearsal's files, one folder per stack."""
        return self.project_root / ".rehearsal"

    @property
    def tools_root(self) -> Path:
        """The folder with the pins of the tools: this project, otherwise the checkout or package that Holdfast runs from."""
        return self.project_root if (self.project_root / _PINS).is_file() else REPOSITORY

    @property
    def tools_dir(self) -> Path:
        """What `holdfast tools` makes, beside the pins of a checkout; with an installed package, in the user's cache.

        They take 700 MB: the projects of a user share those of a version, except for a project that has its own.
        """
        if (self.tools_root / _PROJECT).is_file():
            return self.tools_root / ".tools"
        own = self.project_root / ".tools"
        if own.is_dir():
            return own
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "holdfast" / f"tools-{version('pulumi-holdfast')}"

    @property
    def tools_bin(self) -> Path:
        """The programs that `holdfast tools` builds."""
        return self.tools_dir / "bin"

    @property
    def charts_dir(self) -> Path:
        """The Helm charts that `holdfast tools` downloads."""
        return self.tools_dir / "charts"

    def stack_dir(self, stack: str) -> Path:
        """Return the folder of a stack."""
        return self.state_dir / stack

    def kubeconfig(self, stack: str) -> Path:
        """Return the kubeconfig of a stack's control plane."""
        return self.stack_dir(stack) / "kubeconfig"

    def logs_dir(self, stack: str) -> Path:
        """Return the folder for the logs of a stack's processes."""
        return self.stack_dir(stack) / "logs"
