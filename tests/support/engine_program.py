"""Runs a small program on the real engine against stand-in clouds."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from pulumi import automation

from rehearsal.paths import Workspace
from rehearsal.providers.cloud import CloudProvider
from rehearsal.providers.cloud.state import CloudState
from rehearsal.providers.faults import Faults
from rehearsal.providers.serving import serve

Program = Callable[[], None]


@dataclass(kw_only=True)
class EngineStack:
    """A stack of one test: its own backend, its own clouds, the providers of some packages served per run."""

    folder: Path
    packages: Sequence[str] = ("aws",)
    faults: Faults = field(default_factory=Faults)
    events: list[automation.EngineEvent] = field(default_factory=list[automation.EngineEvent])

    def cloud(self, package: str = "aws") -> CloudState:
        """Return the cloud of a package, to look at or to change as its console would."""
        return CloudState(self.folder / f"{package}.json")

    def preview(self, program: Program) -> dict[str, int]:
        """Return the planned changes by operation."""
        with ExitStack() as open_servers:
            result = self._stack(program, open_servers).preview(on_event=self.events.append)
        return {str(getattr(op, "value", op)): count for op, count in result.change_summary.items()}

    def up(self, program: Program) -> dict[str, int]:
        """Return the changes made by operation."""
        return self.up_with_outputs(program)[0]

    def up_with_outputs(self, program: Program) -> tuple[dict[str, int], dict[str, Any]]:
        """Return the changes made by operation, and the stack's outputs."""
        with ExitStack() as open_servers:
            result = self._stack(program, open_servers).up(on_event=self.events.append)
        changes = result.summary.resource_changes or {}
        return {str(getattr(op, "value", op)): count for op, count in changes.items()}, {
            name: output.value for name, output in result.outputs.items()
        }

    def refresh(self) -> dict[str, int]:
        """Return what a refresh changed, by operation."""
        with ExitStack() as open_servers:
            result = self._stack(lambda: None, open_servers).refresh(on_event=self.events.append)
        changes = result.summary.resource_changes or {}
        return {str(getattr(op, "value", op)): count for op, count in changes.items()}

    def destroy(self) -> None:
        """Destroy everything."""
        with ExitStack() as open_servers:
            self._stack(lambda: None, open_servers).destroy(on_event=self.events.append)

    def recorded_types(self) -> list[str]:
        """Return the types of all resources in the engine's own state."""
        with ExitStack() as open_servers:
            deployment = self._stack(lambda: None, open_servers).export_stack().deployment or {}
        return [resource["type"] for resource in deployment.get("resources", [])]

    def unlock(self) -> None:
        """Release the lock a killed engine left."""
        with ExitStack() as open_servers:
            self._stack(lambda: None, open_servers).cancel()

    def _stack(self, program: Program, open_servers: ExitStack) -> automation.Stack:
        ports = {
            package: open_servers.enter_context(
                serve(CloudProvider(package, self.folder / f"{package}.json", self.faults))
            ).port
            for package in self.packages
        }
        home = self.folder / "home"
        backend = self.folder / "backend"
        backend.mkdir(exist_ok=True)
        settings = automation.ProjectSettings(
            name="rehearsed", runtime="python", backend=automation.ProjectBackend(url=f"file://{backend}")
        )
        return automation.create_or_select_stack(
            "test",
            "rehearsed",
            program=program,
            opts=automation.LocalWorkspaceOptions(
                project_settings=settings,
                pulumi_home=str(home),
                pulumi_command=automation.PulumiCommand(str(Workspace.find().tools_bin.parent)),
                env_vars={
                    "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name, port in ports.items()),
                },
            ),
        )


def kill_engine() -> None:
    """Kill the engine this process started, as a crash of its machine would."""
    for child in psutil.Process().children(recursive=True):
        if child.name() == "pulumi":
            child.kill()
