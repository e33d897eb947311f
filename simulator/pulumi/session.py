"""A stack under rehearsal: preview, up, refresh and destroy by the real engine."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypedDict

from pulumi.automation import EngineEvent, OnEvent
from pulumi.automation.errors import CommandError

from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.checkpoint import (
    CLEAR_PENDING,
    Checkpoint,
    adopt,
    find_adoptable,
    read_checkpoint,
)
from holdfast.simulator.pulumi.display import Audience, Display, OnLine, ProgressReporter
from holdfast.simulator.pulumi.events import EventRecorder, Outcome, failure
from holdfast.simulator.pulumi.process import (
    EngineCommand,
    EngineProcess,
    HostedProgram,
    engine_environment,
    use_separate_connections,
)
from holdfast.simulator.pulumi.providers import ProviderSource, install_pack_launcher, serving
from holdfast.simulator.pulumi.settings import Subject
from holdfast.simulator.pulumi.workspace import (
    EngineFolder,
    EngineStack,
    EngineWorkspace,
    release_stale_locks,
)
from holdfast.simulator.tools.locate import find_tool


class _Listeners(TypedDict):
    """What the Automation API is told, for one command, of where its output goes."""

    on_output: OnLine
    on_event: OnEvent
    color: str
    suppress_progress: bool


# Providers are served from here: to look for their plugins first costs 2.4 s, on a stack of two resources.
_NO_LOOK_FOR_PLUGINS = "--skip-plugin-pre-install"


class Rehearsal:
    """One stack, its providers being served; made by `Rehearsal.open`.

    Every command raises EngineFailure where the engine stops, with what was done until then.
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
        self._stand_ins = providers
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
        """Serve the providers, copy project and stack file, and yield the stack.

        `process`, where given, is told of the engine's process, so that it can be killed; `place` is the folder
        the stack is kept in, by default that of its name. Raises RehearsalError where the engine is missing or its
        stack cannot be made.
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
            project = EngineWorkspace(
                folder=folder,
                project=subject.name,
                command=command,
                program=program,
            )
            yield cls(
                stack=EngineStack(stack, project),
                command=command,
                subject=subject,
                folder=folder,
                providers=providers,
                audience=audience or Audience(),
            )

    def preview(self) -> Outcome:
        """Return what an `up` would do; nothing is changed."""
        return self._run(
            "preview",
            lambda to: self._stack.preview(
                policy_packs=self._packs, policy_pack_configs=self._settings, **to
            ),
        )

    def up(self, *, judged: bool = False) -> Outcome:
        """Make everything as the program says, once the policies have seen the plan.

        They judge a whole stack at the end of a run: without a preview a violation stops `up` when all is made.
        `judged`: they have seen this plan.
        """
        self._take_up_what_was_left()
        if self._packs and not judged:
            self.preview()
        return self._run(
            "up",
            lambda to: self._stack.up(policy_packs=self._packs, policy_pack_configs=self._settings, **to),
        )

    def refresh(self) -> Outcome:
        """Read what there is into the stack's state."""
        self._take_up_what_was_left()
        return self._run("refresh", lambda to: self._stack.refresh(**to))

    def destroy(self) -> Outcome:
        """Remove everything, what depends on others first.

        As with the engine's own command, the plan comes first: without it what is protected is met on the way, when
        much of the rest is gone. Where nothing is, the plan cannot be refused, and is left out.
        """
        self._take_up_what_was_left()
        if any(one.protected for one in self._checkpoint().resources):
            self._run("destroy", lambda to: self._stack.preview_destroy(**to))
        return self._run("destroy", lambda to: self._stack.destroy(**to))

    def _take_up_what_was_left(self) -> None:
        """Release the locks of dead runs and read what became of the operations they did not see end."""
        name, stack = self._subject.name, self._stack.name
        release_stale_locks(self._folder.locks(name, stack), stack=stack)
        checkpoint = self._checkpoint()
        if not checkpoint.pending:
            return
        names = ", ".join(operation.name for operation in checkpoint.pending)
        self._audience.show(f"The run before was killed in the middle of {names}: reading what became of it.")
        ids = find_adoptable(checkpoint, self._stand_ins.made)
        if ids:
            self._stack.import_stack(adopt(checkpoint, ids))
        self._run("refresh after a killed run", lambda to: self._stack.refresh(**to), CLEAR_PENDING)

    def _checkpoint(self) -> Checkpoint:
        return read_checkpoint(self._folder.checkpoint(self._subject.name, self._stack.name))

    def _run(self, command: str, call: Callable[[_Listeners], object], *flags: str) -> Outcome:
        recorder, said, began = EventRecorder(), list[str](), time.monotonic()
        display = Display(self._audience.show)

        def outcome() -> Outcome:
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
                # Its dots come in lines of their own, long after what they were to bridge: `reporter` says more.
                "suppress_progress": True,
            }
            try:
                with self._command.adding(_NO_LOOK_FOR_PLUGINS, *flags):
                    call(listeners)
            except CommandError:
                raise failure(outcome(), self._command.last) from None
            return outcome()
