"""The Automation API's workspace and stack, without the commands whose answers are known here already."""

from collections.abc import Callable
from datetime import UTC, datetime

from pulumi.automation import CommandResult, LocalWorkspace, OutputMap, Stack, UpdateSummary

# Public through `Stack.create_or_select`, which makes a plain Stack whatever class it is called on.
from pulumi.automation._stack import StackInitMode  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
from pulumi.automation.errors import StackNotFoundError

from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.pulumi.locks import release_stale_locks
from holdfast.simulator.pulumi.process import EngineCommand


class EngineWorkspace(LocalWorkspace):
    """The copied project of one stack on the file backend.

    The Automation API starts the command some seven times for one `up`; with what this class answers from
    files and events it is once, and twice for a stack that is new.
    """

    def __init__(
        self, *, folder: EngineFolder, project: str, command: EngineCommand, program: Callable[[], None]
    ) -> None:
        super().__init__(
            work_dir=str(folder.project),
            pulumi_home=str(folder.home),
            program=program,
            pulumi_command=command,
        )
        self._folder = folder
        self._project = project

    def select_stack(self, stack_name: str) -> None:
        """Look the stack up in the file backend. Raises StackNotFoundError where it is not there."""
        if not self._folder.checkpoint(self._project, stack_name).is_file():
            raise StackNotFoundError(
                CommandResult(stdout="", stderr=f"no state of stack {stack_name}", code=1)
            )

    def create_stack(self, stack_name: str) -> None:
        """Make a new stack. Raises RehearsalError where a living run holds its lock, CommandError otherwise."""
        release_stale_locks(self._folder.locks(self._project, stack_name), stack=stack_name)
        super().create_stack(stack_name)

    def stack_outputs(self, stack_name: str) -> OutputMap:  # noqa: ARG002 - the base class's signature
        """Return nothing: outputs are taken from events, where secrets are hidden; the command would show them."""
        return {}


class EngineStack(Stack):
    """One stack of an EngineWorkspace, made where it is not there."""

    def __init__(self, name: str, workspace: EngineWorkspace) -> None:
        super().__init__(name, workspace, StackInitMode.CREATE_OR_SELECT)

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002 - the base class's signature
        """Return an empty summary: counts and durations are taken from events."""
        return UpdateSummary(
            kind="update",
            start_time=datetime.now(tz=UTC),
            message="",
            environment={},
            config={},
            result="succeeded",
        )
