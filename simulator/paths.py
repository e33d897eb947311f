"""Where the rehearsal keeps its files."""

from dataclasses import dataclass
from pathlib import Path

from holdfast.simulator.errors import RehearsalError


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A checkout of the project, and the folders under it which the rehearsal writes.

    Creates nothing: whoever writes into a folder makes it.
    """

    project_root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> "Workspace":
        """Return the workspace around `start` (default: the current directory).

        Raises RehearsalError where neither it nor a folder above holds a Pulumi.yaml.
        """
        origin = (start or Path.cwd()).resolve()
        for folder in (origin, *origin.parents):
            if (folder / "Pulumi.yaml").is_file():
                return cls(project_root=folder)
        raise RehearsalError(
            f"{origin} is in no project: run from a folder at or below the one with Pulumi.yaml"
        )

    @property
    def state_dir(self) -> Path:
        """Everything a rehearsal writes, one folder per stack."""
        return self.project_root / ".rehearsal"

    @property
    def tools_bin(self) -> Path:
        """The programs `make tools` builds."""
        return self.project_root / ".tools" / "bin"

    @property
    def charts_dir(self) -> Path:
        """The Helm charts `make tools` gathers."""
        return self.project_root / ".tools" / "charts"

    def stack_dir(self, stack: str) -> Path:
        """Return the folder of one stack's rehearsal."""
        return self.state_dir / stack

    def kubeconfig(self, stack: str) -> Path:
        """Return the kubeconfig of the control plane of one stack's rehearsal."""
        return self.stack_dir(stack) / "kubeconfig"

    def logs_dir(self, stack: str) -> Path:
        """Return the folder for the logs of the processes of one stack's rehearsal."""
        return self.stack_dir(stack) / "logs"
