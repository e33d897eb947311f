"""The `pulumi` command as a user has it: a state and plugins of its own, in a folder that is removed afterward."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.bench.measurement import Measurement, measure

KUBERNETES_PLUGIN = "pulumi-resource-kubernetes"


@dataclass(frozen=True, kw_only=True)
class PulumiCommand:
    """The command, and the folder that holds its projects, its state and its plugins."""

    pulumi: Path
    folder: Path

    def install_kubernetes(self) -> None:
        """Make the state, and install the Kubernetes plugin from PATH."""
        (self.folder / "state").mkdir()
        plugin = shutil.which(KUBERNETES_PLUGIN)
        self.call(
            "plugin",
            "install",
            "resource",
            "kubernetes",
            version("pulumi-kubernetes"),
            "-f",
            str(plugin),
            folder=".",
        )

    def run(self, *arguments: str, folder: str) -> subprocess.CompletedProcess[str]:
        """Run `pulumi` in a project and return its exit code and output."""
        return subprocess.run(
            [str(self.pulumi), *arguments, "--non-interactive"],
            cwd=self.folder / folder,
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
        )

    def call(self, *arguments: str, folder: str = "project") -> str:
        """Run `pulumi` and return its output. Raises RehearsalError with its last lines if it fails."""
        done = self.run(*arguments, folder=folder)
        if done.returncode:
            last_lines = "\n".join((done.stdout + done.stderr).strip().splitlines()[-30:])
            raise RehearsalError(f"pulumi {' '.join(arguments)} failed:\n{last_lines}")
        return done.stdout

    def measured(self, *arguments: str, folder: str = "project") -> Measurement:
        """Run `pulumi` and return its cost."""
        settings = [f"{name}={value}" for name, value in self.environment().items()]
        command = ["env", *settings, str(self.pulumi), *arguments, "--non-interactive"]
        return measure(command, cwd=self.folder / folder)

    def environment(self) -> Mapping[str, str]:
        """Return the settings of the command: a state in the folder, and no download."""
        return {
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "local",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # Compiled modules are kept, as after an installation, and not in the checkout.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.folder / "compiled"),
        }
