"""A stage on stand-in clouds alone: its objects are files, and an empty beginning is an empty folder."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rehearsal.crash.cloud_objects import comparable
from rehearsal.engine import Audience, Rehearsal, Subject
from rehearsal.engine.checkpoint import Checkpoint, read_checkpoint
from rehearsal.engine.clouds import StandInClouds
from rehearsal.engine.folder import EngineFolder
from rehearsal.engine.process import EngineProcess
from rehearsal.paths import Workspace
from rehearsal.providers.faults import Faults


@dataclass(frozen=True, kw_only=True)
class CloudStage:
    """A program that uses nothing but clouds, on a stack of its own."""

    stack: str
    workspace: Workspace
    subject: Subject

    @contextmanager
    def session(
        self, faults: Faults, process: EngineProcess, audience: Audience | None = None
    ) -> Generator[Rehearsal]:
        """Open the stack."""
        with Rehearsal.open(
            self.stack,
            self.workspace,
            subject=self.subject,
            stand_ins=self._clouds(faults),
            process=process,
            audience=audience,
        ) as rehearsal:
            yield rehearsal

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        return read_checkpoint(self._folder.checkpoint(self.subject.name, self.stack))

    def objects(self, types: frozenset[str]) -> tuple[str, ...]:
        """Return a line for each object of the clouds."""
        return comparable(one for one in self._clouds(Faults()).objects() if one.type in types)

    def clear(self) -> None:
        """Forget everything the clouds keep."""
        shutil.rmtree(self._folder.root, ignore_errors=True)

    @property
    def _folder(self) -> EngineFolder:
        return EngineFolder.of(self.stack, self.workspace)

    def _clouds(self, faults: Faults) -> StandInClouds:
        return StandInClouds(
            folder=self._folder.stand_ins,
            checkpoint=self._folder.checkpoint(self.subject.name, self.stack),
            faults=faults,
        )
