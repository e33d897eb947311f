"""`python -m tests.soak languages`: examples/languages through the `pulumi` command and the language hosts on PATH.

The command, the hosts, the generated SDKs and their compilers are real, and so is the plugin of the package, which the engine starts. AWS is
simulated, and a Kubernetes provider that accepts everything stands for the API servers of two clusters.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.rehearsal.clouds import CloudProvider
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import serve
from pulumi_holdfast.rehearsal.engine.providers import install_pack_launcher
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import render_table, say
from pulumi_holdfast.rehearsal.paths import Workspace

# ruff: noqa: N802 - the method is the protocol's

#: Folder of examples/languages → its language host, and how its program is checked before it runs.
LANGUAGES: Final[Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]]] = {
    "yaml": ("yaml", ()),
    "python": ("python", ()),
    "typescript": ("nodejs", (("npx", "tsc", "--noEmit"),)),
    "go": ("go", (("go", "mod", "tidy"), ("go", "vet", "./..."))),
}
_STACK: Final = "dev"
_CLUSTERS: Final = 2
_SHOWN: Final = 30


def languages(workspace: Workspace, *, only: str | None = None) -> int:
    """Run the program of each language whose host is on PATH, from preview to destroy, and print a table.

    Returns 0, also without a host: the table says so. Raises RehearsalError if a command fails.
    """
    rows: list[tuple[str, ...]] = []
    for language, (host, checks) in LANGUAGES.items():
        if only not in {None, language}:
            continue
        if shutil.which(f"pulumi-language-{host}") is None:
            rows.append((language, f"skipped: pulumi-language-{host} is not on PATH", "", ""))
            continue
        with _project(language, workspace) as project:
            rows.append((language, *project.run(checks)))
    say(render_table(("language", "result", "resources", "took"), rows))
    return 0


class _Aws(CloudProvider):
    """The simulated AWS, with the part of the schema that YAML asks for."""

    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        """Return a schema with the provider alone."""
        region = {"region": {"type": "string"}}
        schema = {"name": "aws", "version": self._version, "provider": {"inputProperties": region}}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))


@contextmanager
def _project(language: str, workspace: Workspace) -> Generator["_Project"]:
    # As pytest is told: the modules of the pack import each other by their own names.
    sys.path.append(str(workspace.project_root / "policies"))
    from tests.engine.test_policy_pack import EchoProviders

    with tempfile.TemporaryDirectory(prefix=f"holdfast-{language}-") as name:
        folder = Path(name)
        (folder / "state").mkdir()
        shutil.copytree(workspace.project_root / "examples/languages" / language, folder / "project")
        install_pack_launcher(folder / "home", os.environ)
        aws = _Aws("aws", folder / "aws.json", Faults())
        with serve(aws) as cloud, serve(EchoProviders().provider("kubernetes")) as kubernetes:
            yield _Project(
                language=language,
                folder=folder,
                workspace=workspace,
                providers=f"aws:{cloud.port},kubernetes:{kubernetes.port}",
            )


@dataclass(frozen=True, kw_only=True)
class _Project:
    """A copy of a language's example, with a state and a home of the engine of its own."""

    language: str
    folder: Path
    workspace: Workspace
    providers: str

    def run(self, checks: tuple[tuple[str, ...], ...]) -> tuple[str, str, str]:
        """Run every command; return the row of the table without the language."""
        began = time.monotonic()
        self._add_package()
        for check in checks:
            self.call(*check)
        self._pulumi("stack", "init", _STACK)
        pack = ("--policy-pack", str(self.workspace.project_root / "policies"))
        self._pulumi("preview", *pack)
        self._pulumi("up", "--yes", "--skip-preview")
        made = self._resources()
        clusters = sum(each["type"] == "aws:eks/cluster:Cluster" for each in made)
        if clusters != _CLUSTERS:
            raise RehearsalError(f"{self.language}: {clusters} clusters were made, not {_CLUSTERS}")
        self._pulumi("up", "--yes", "--skip-preview", "--expect-no-changes")
        self._pulumi("destroy", "--yes", "--skip-preview")
        if left := self._resources():
            raise RehearsalError(f"{self.language}: destroy left {len(left)} resources in the state")
        say(f"{self.language}: done")
        return (
            "previewed, judged, made, unchanged, destroyed",
            str(len(made)),
            f"{time.monotonic() - began:.0f} s",
        )

    def _add_package(self) -> None:
        if self.language != "python":
            self._pulumi("package", "add", "holdfast")
            return
        # `package add` would install the SDK into the environment of this checkout.
        schema = self.workspace.project_root / "components/pulumi_holdfast/package_schema.json"
        self._pulumi("package", "gen-sdk", str(schema), "--language", "python", "--out", "sdks")

    def _resources(self) -> list[Mapping[str, str]]:
        exported = self._pulumi("stack", "export", "--stack", _STACK)
        return json.loads(exported)["deployment"].get("resources", [])

    def _pulumi(self, *arguments: str) -> str:
        return self.call(str(self.workspace.tools_bin / "pulumi"), *arguments, "--non-interactive")

    def call(self, *command: str) -> str:
        """Run a command in the project. Raises RehearsalError with its last lines if it fails."""
        done = subprocess.run(
            command,
            cwd=self.folder / "project",
            env={**os.environ, **self._environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN:]
            raise RehearsalError(f"{self.language}: {' '.join(command)} failed:\n" + "\n".join(lines))
        return done.stdout

    def _environment(self) -> Mapping[str, str]:
        return {
            # The plugin of the package, as `pip install` puts it on PATH.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "project/sdks/python"),
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "languages",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": self.providers,
        }
