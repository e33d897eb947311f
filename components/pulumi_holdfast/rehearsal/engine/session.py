"""Runs preview, up, refresh and destroy of one stack with the real engine."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypedDict

from pulumi.automation import EngineEvent, OnEvent
from pulumi.automation.errors import CommandError

from pulumi_holdfast.rehearsal.engine.checkpoint import (
    CLEAR_PENDING,
    Checkpoint,
    adopt,
    find_adoptable,
    read_checkpoint,
)
from pulumi_holdfast.rehearsal.engine.display import Audience, Display, OnLine, ProgressReporter
from pulumi_holdfast.rehearsal.engine.events import CommandOutcome, EngineEventRecorder, failure
from pulumi_holdfast.rehearsal.engine.process import (
    EngineCommand,
    EngineProcess,
    HostedProgram,
    engine_environment,
    use_separate_connections,
)
from pulumi_holdfast.rehearsal.engine.providers import ProviderSource, install_pack_launcher, serving
from pulumi_holdfast.rehearsal.engine.settings import Subject
from pulumi_holdfast.rehearsal.engine.workspace import (
    EngineFolder,
    EngineStack,
    EngineWorkspace,
    release_stale_locks,
)
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool


class _Listeners(TypedDict):
    """The output arguments of a command of the Automation API."""

    on_output: OnLine
    on_event: OnEvent
    color: str
    suppress_progress: bool


# The providers are served from here; the search for plugins takes 2.4 s on a stack of two resources.
_NO_LOOK_FOR_PLUGINS = "--skip-plugin-pre-install"


class Rehearsal:
    """One stack with running providers; created by `Rehearsal.open`.

    Each command raises EngineFailure where the engine stops, with the result up to then.
    """

    def __init__(
        self,
        *,
        stack: EngineStack,
        command: EngineCommand,
        subject: Subject,
        folder: EngineFolder,
        providers: ProviderSource,
        audience: Audience,
    ) -> None:
        self._stack = stack
        self._command = command
        self._subject = subject
        self._folder = folder
        self._providers = providers
        self._audience = audience
        self._packs = [str(pack) for pack in subject.policy_packs]
        self._settings = [str(file) for file in subject.policy_settings]

    @classmethod
    @contextmanager
    def open(
        cls,
        stack: str,
        workspace: Workspace,
        *,
        subject: Subject,
        providers: ProviderSource,
        audience: Audience | None = None,
        process: EngineProcess | None = None,
        place: str | None = None,
    ) -> Generator["Rehearsal"]:
        """Serve the providers, copy the project and stack files, and yield the stack.

        `process` records the engine's process, so that tests can kill it; `place` is the folder of the stack, by
        default its name. Raises RehearsalError where the engine is missing or the stack is locked.
        """
        folder = EngineFolder.of(place or stack, workspace)
        folder.prepare(project=subject.project, stack=stack, settings=subject.settings)
        install_pack_launcher(folder.home, os.environ)
        use_separate_connections()
        with serving(subject, providers, home=folder.home, user=os.environ) as ports:
            environment = {
                **engine_environment(os.environ),
                **folder.environment(),
                "PULUMI_DEBUG_PROVIDERS": ports,
            }
            program = HostedProgram(subject.program, log=workspace.logs_dir(place or stack) / "program.log")
            command = EngineCommand(
                executable=find_tool("pulumi", workspace),
                environment=environment,
                process=process or EngineProcess(),
                on_end=program.end,
            )
            project = EngineWorkspace(folder=folder, project=subject.name, command=command, program=program)
            yield cls(
                stack=EngineStack(stack, project),
                command=command,
                subject=subject,
                folder=folder,
                providers=providers,
                audience=audience or Audience(),
            )

    def preview(self) -> CommandOutcome:
        """Return the changes that `up` would make."""
        return self._run(
            "preview",
            lambda to: self._stack.preview(
                policy_packs=self._packs, policy_pack_configs=self._settings, **to
            ),
        )

    def up(self, *, judged: bool = False) -> CommandOutcome:
        """Run `up` after a preview with the policies.

        Stack policies run at the end of a run: without the preview a violation stops `up` after all resources are
        created. `judged`: the policies have already checked this plan.
        """
        self._recover()
        if self._packs and not judged:
            self.preview()
        return self._run(
            "up",
            lambda to: self._stack.up(policy_packs=self._packs, policy_pack_configs=self._settings, **to),
        )

    def refresh(self) -> CommandOutcome:
        """Update the stack's state from the cloud."""
        self._recover()
        return self._run("refresh", lambda to: self._stack.refresh(**to))

    def destroy(self) -> CommandOutcome:
        """Delete all resources, dependents first.

        Like the engine's command it previews first: otherwise a protected resource stops the run after many others are
        deleted. Without protected resources the preview is skipped.
        """
        self._recover()
        if any(one.protected for one in self._checkpoint().resources):
            self._run("destroy", lambda to: self._stack.preview_destroy(**to))
        return self._run("destroy", lambda to: self._stack.destroy(**to))

    def _recover(self) -> None:
        """Release the locks of killed runs, and recover their pending operations."""
        name, stack = self._subject.name, self._stack.name
        release_stale_locks(self._folder.locks(name, stack), stack=stack)
        checkpoint = self._checkpoint()
        if not checkpoint.pending:
            return
        names = ", ".join(operation.name for operation in checkpoint.pending)
        self._audience.show(f"The previous run was killed during {names}: reading the result from the cloud.")
        ids = find_adoptable(checkpoint, self._providers.made)
        if ids:
            self._stack.import_stack(adopt(checkpoint, ids))
        self._run("refresh after a killed run", lambda to: self._stack.refresh(**to), CLEAR_PENDING)

    def _checkpoint(self) -> Checkpoint:
        return read_checkpoint(self._folder.checkpoint(self._subject.name, self._stack.name))

    def _run(self, command: str, call: Callable[[_Listeners], object], *flags: str) -> CommandOutcome:
        recorder, said, began = EngineEventRecorder(), list[str](), time.monotonic()
        display = Display(self._audience.show)

        def outcome() -> CommandOutcome:
            return recorder.outcome(
                command=command,
                stack=self._stack.name,
                seconds=time.monotonic() - began,
                stdout="\n".join(said),
            )

        with ProgressReporter(display) as reporter:

            def on_output(line: str) -> None:
                said.append(line)
                reporter.line(line)

            def on_event(event: EngineEvent) -> None:
                recorder(event)
                reporter.event(event)

            listeners: _Listeners = {
                "on_output": on_output,
                "on_event": on_event,
                "color": self._audience.color,
                # Its dots arrive late and on separate lines; `reporter` replaces them.
                "suppress_progress": True,
            }
            try:
                with self._command.adding(_NO_LOOK_FOR_PLUGINS, *flags):
                    call(listeners)
            except CommandError:
                raise failure(outcome(), self._command.last) from None
            return outcome()
