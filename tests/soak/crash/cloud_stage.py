"""A stage on stand-in clouds alone: its objects are files, and an empty beginning is an empty folder."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Audience, Rehearsal, Subject
from holdfast.simulator.pulumi.checkpoint import Checkpoint, read_checkpoint
from holdfast.simulator.pulumi.clouds import StandInClouds
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.pulumi.process import EngineProcess
from tests.soak.crash.cloud_objects import comparable


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
