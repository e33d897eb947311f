"""A stack of a test's own program, on the real engine, with the stand-in kubernetes provider on a control plane."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pulumi import automation as auto

from rehearsal.providers.faults import Faults
from rehearsal.providers.kubernetes.charts import ChartMirror
from rehearsal.providers.kubernetes.provider import KubernetesProvider
from rehearsal.providers.serving import serve

CHECKOUT = Path(__file__).resolve().parents[2]
TOOLS = CHECKOUT / ".tools" / "bin"


class KubernetesStack:
    """Runs one program after another on the same state."""

    def __init__(self, stack: auto.Stack, provider: KubernetesProvider) -> None:
        self._stack = stack
        self.provider = provider

    def preview(self, program: Callable[[], None]) -> Mapping[str, int]:
        """Return how many resources `up` would create, update and so on."""
        self._stack.workspace.program = program
        return {op: count for op, count in self._stack.preview().change_summary.items() if op != "same"}

    def up(self, program: Callable[[], None]) -> Mapping[str, int]:
        """Bring the stack up and return how many resources were created, updated and so on."""
        self._stack.workspace.program = program
        return _changes(self._stack.up().summary)

    def refresh(self) -> Mapping[str, int]:
        """Read everything back and return how many resources had changed."""
        return _changes(self._stack.refresh().summary)

    def destroy(self) -> Mapping[str, int]:
        """Delete everything and return how many resources were deleted."""
        return _changes(self._stack.destroy().summary)

    def outputs(self) -> Mapping[str, object]:
        """Return the stack's outputs."""
        return {name: output.value for name, output in self._stack.outputs().items()}

    def exported(self) -> str:
        """Return the stack's state as text, secrets in it encrypted."""
        return str(self._stack.export_stack().deployment)

    def cancel(self) -> None:
        """Take the lock of a run that was killed."""
        self._stack.cancel()


@contextmanager
def kubernetes_stack(
    folder: Path, kubeconfig: Path, *, faults: Faults | None = None, charts: ChartMirror | None = None
) -> Generator[KubernetesStack]:
    """A stack whose state is in `folder` and whose objects are on the control plane of `kubeconfig`."""
    provider = KubernetesProvider(
        client_kubeconfig=kubeconfig,
        helm=TOOLS / "helm",
        charts=charts or ChartMirror(CHECKOUT / ".tools" / "charts"),
        faults=faults or Faults(),
    )
    with serve(provider) as served:
        state = folder / "state"
        state.mkdir(parents=True, exist_ok=True)
        environment = {
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{served.port}",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        }
        options = auto.LocalWorkspaceOptions(
            project_settings=auto.ProjectSettings(
                name="test", runtime="python", backend=auto.ProjectBackend(url=state.as_uri())
            ),
            pulumi_home=str(folder / "home"),
            env_vars=environment,
            pulumi_command=auto.PulumiCommand(str(TOOLS.parent)),
        )
        stack = auto.create_or_select_stack("test", project_name="test", program=_nothing, opts=options)
        yield KubernetesStack(stack, provider)


def _changes(summary: auto.UpdateSummary) -> Mapping[str, int]:
    changes = summary.resource_changes or {}
    return {op: count for op, count in changes.items() if op != "same"}


def _nothing() -> None:
    """Stand for the program until a test gives one."""
