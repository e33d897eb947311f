"""What a stack needs around it: a control plane for its Kubernetes objects, a host for its operators."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from holdfast.simulator.control_plane import ControlPlane
from holdfast.simulator.operator_runner import OperatorRunner
from holdfast.simulator.paths import Workspace
from holdfast.simulator.stacks.cloud_likeness import api_server_profile


class Surroundings:
    """The control plane of a stack, and the host of its operators.

    `report` is told, a line at a time, what is being done; `cloud` is whose API server it is to be like. Nothing is
    started before it is asked for.
    """

    def __init__(
        self, *, stack: str, workspace: Workspace, report: Callable[[str], None], cloud: str = ""
    ) -> None:
        self._stack = stack
        self._likeness = api_server_profile(cloud)
        self._control_plane = ControlPlane(
            stack, workspace, report=report, admission_plugins=self._likeness.admission_plugins
        )
        self._host = OperatorRunner(workspace, stack, report=report)
        self._report = report

    def start(self) -> None:
        """Bring both up; what is up is left as it is."""
        if not self._control_plane.healthy():
            self._report(f"Starting the control plane of {self._stack}.")
        self._start_control_plane()
        self._host.start()

    def _start_control_plane(self) -> None:
        self._likeness.put_into(self._control_plane.start())

    def remove(self) -> None:
        """End every process and drop what the API server held. Harmless when nothing is there."""
        self._host.stop()
        self._control_plane.delete()

    def answers(self) -> bool:
        """Whether the control plane runs and its API server answers."""
        return self._control_plane.healthy()

    @contextmanager
    def lent(self) -> Generator[None]:
        """Have a control plane for the length of the block; one that was not there is removed again."""
        was_there = self.answers()
        try:
            if not was_there:
                self._report(f"Starting a control plane for {self._stack}.")
                self._start_control_plane()
            yield
        finally:
            if not was_there:
                self._control_plane.delete()
