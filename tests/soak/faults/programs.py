"""Jobs of real programs that misbehave, beside the simulated ones of a fault run.

They are in a namespace of their own, and fill a node each, so that the ledgers of the simulated jobs need not know them.
"""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE
from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.scenarios.namespace_clone import clone_namespace
from pulumi_holdfast.rehearsal.scenarios.training import TrainingPlace
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.manifests import POOLS
from tests.support.clusters.misbehaving import (
    PROGRAMS,
    MisbehavingJobs,
    misbehaving_job,
    programs_of,
    undisturbed,
)
from tests.support.training_program import TRAINING

_NAMESPACE: Final = "faults-programs"
_CPU: Final = "15"
_SECONDS: Final = 900.0
_POLL_SECONDS: Final = 0.5


class RealPrograms:
    """The jobs while they run; `problems` waits for their end."""

    def __init__(self, jobs: MisbehavingJobs, weights: str) -> None:
        self._jobs = jobs
        self._weights = weights
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="real programs", daemon=True)

    @contextmanager
    def followed(self) -> Generator[None]:
        """Evict what is to be evicted, for the length of the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()

    def problems(self) -> list[str]:
        """Wait until all jobs have ended, and return what is wrong with their ends."""
        until = time.monotonic() + _SECONDS
        while (left := self._jobs.left()) and time.monotonic() < until:
            self._stopping.wait(_POLL_SECONDS)
        late = [f"{self._jobs.described(name)}: it has not ended" for name in left]
        return [*late, *self._jobs.problems(self._weights)]

    def _follow(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            with suppress(*FAILURES):  # the API server is killed again and again
                self._jobs.evict_due()


def real_programs(home: FaultEnvironment, policy: Json) -> RealPrograms:
    """Create a job of each program on the ladder of the run."""
    place = TrainingPlace(
        logs=(home.layout.stack_dir / "logs").resolve(),
        checkpoints=home.layout.stack_dir.resolve() / "checkpoints",
        programs=TRAINING,
    )
    own: Json = {**mapping(policy["metadata"]), "namespace": _NAMESPACE}
    clone_namespace(home.client, _NAMESPACE, {**policy, "metadata": own}, *programs_of(place, _NAMESPACE))
    tolerations: Json = {"tolerations": [{"key": CAPACITY_TYPE, "operator": "Exists"}]}
    home.apply_at_once(
        misbehaving_job(how, _NAMESPACE, POOLS[0], cpu=_CPU, pod=tolerations, is_admitted=False)
        for how in PROGRAMS
    )
    with TemporaryDirectory() as folder:
        weights = undisturbed(Path(folder))
    jobs = MisbehavingJobs(client=home.client, place=place, namespace=_NAMESPACE, names=list(PROGRAMS))
    return RealPrograms(jobs, weights)
