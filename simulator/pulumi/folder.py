"""The folder in which the engine rehearses one stack."""

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.settings import read_yaml, rehearsed_project, rehearsed_stack, write_yaml


@dataclass(frozen=True, kw_only=True)
class EngineFolder:
    """What the engine keeps of one stack: project copy, state, home and passphrase.

    Creates nothing before `prepare`.
    """

    root: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "EngineFolder":
        """Return the folder of a stack."""
        return cls(root=workspace.stack_dir(stack) / "engine")

    @property
    def project(self) -> Path:
        """The copy of the project and stack file."""
        return self.root / "project"

    @property
    def state(self) -> Path:
        """The file backend."""
        return self.root / "state"

    @property
    def home(self) -> Path:
        """The engine's home: its plugins and its own settings."""
        return self.root / "home"

    @property
    def passphrase(self) -> Path:
        """The file with the passphrase of this stack's secrets."""
        return self.root / "passphrase"

    @property
    def stand_ins(self) -> Path:
        """What the stand-ins of the clouds remember."""
        return self.root / "clouds"

    def environment(self) -> dict[str, str]:
        """Return what points the engine here: no account, no question, no download."""
        return {
            "PULUMI_HOME": str(self.home),
            # Without `skip` each state file has a second one beside it that is not written at one stroke: a run
            # killed at that moment leaves it cut off, and then no command reads the state any more.
            "PULUMI_BACKEND_URL": f"file://{self.state}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "REHEARSAL_PYTHON": sys.executable,
        }

    def checkpoint(self, project: str, stack: str) -> Path:
        """Return the file with the stack's state."""
        return self.state / ".pulumi" / "stacks" / project / f"{stack}.json"

    def locks(self, project: str, stack: str) -> Path:
        """Return the folder with the stack's locks."""
        return self.state / ".pulumi" / "locks" / "organization" / project / stack

    def prepare(self, *, project: Json, stack: str, settings: Json) -> None:
        """Make the folders and copy the project and the stack's settings; the tracked files stay untouched."""
        for folder in (self.project, self.state, self.home, self.stand_ins):
            folder.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        if not self.passphrase.exists():
            self.passphrase.touch(mode=0o600)
            self.passphrase.write_text(secrets.token_urlsafe(32), encoding="ascii")
        write_yaml(self.project / "Pulumi.yaml", rehearsed_project(project))
        copy = self.project / f"Pulumi.{stack}.yaml"
        write_yaml(copy, rehearsed_stack(settings, previous=read_yaml(copy)))
