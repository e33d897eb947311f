"""One training pod: its volumes, its containers in order, its end, and its status at the API server."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import count, metadata_of, name_of, namespace_of, uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.errors import FAILURES, Cancellation
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.objects import now
from pulumi_holdfast.rehearsal.operator_runner.pod_files import PodFiles
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError
from pulumi_holdfast.rehearsal.operator_runner.process import Command
from pulumi_holdfast.rehearsal.operator_runner.training import ray_node
from pulumi_holdfast.rehearsal.operator_runner.training.container import (
    Container,
    Lifecycle,
    containers_of,
    is_sidecar,
)
from pulumi_holdfast.rehearsal.operator_runner.training.logs import log_of
from pulumi_holdfast.rehearsal.operator_runner.training.status import (
    PodOutcome,
    described,
    is_deleted,
    pod_status,
    storage_eviction,
)
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import (
    Surroundings,
    own_address,
    shown_address,
)
from pulumi_holdfast.rehearsal.operator_runner.training.volumes import PodVolumes, VolumeSources

_RETRY_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 30
_STORAGE_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.1
_TURN_SECONDS: Final = 90.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What all training pods share: `folder` has the files of each pod, `mark` marks their processes.

    `rejects` says why the node of a pod does not admit it, or does not yet (Pending). It blocks. `ray_turn` is held while a node
    of Ray starts.
    """

    client: KubeClient
    sources: VolumeSources
    folder: Path
    logs: Path
    mark: str
    rejects: Callable[[Json], PodOutcome | None]
    ray_turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class TrainingPod:
    """A pod and the processes of its containers; `pod` is its last observed state, `is_admitted`: its node runs it."""

    def __init__(self, pod: Json, machine: Machine) -> None:
        self.pod = pod
        self._machine = machine
        self._files = PodFiles(machine.folder / uid_of(pod))
        self._volumes = PodVolumes(pod, self._files, machine.sources)
        self._ending = asyncio.Event()
        self._writing = asyncio.Lock()
        self._address = ""
        self._services: frozenset[str] = frozenset()
        self._inits: list[Container] = []
        self._containers: list[Container] = []
        self._terminating: asyncio.Task[None] | None = None
        self._evicted: PodOutcome | None = None
        self.is_admitted = False

    def update(self, pod: Json) -> None:
        """Take a new state of the pod; its deletion ends it with notice."""
        self.pod = pod
        if is_deleted(pod) and self._terminating is None:
            self._ending.set()
            self._terminating = asyncio.create_task(self._terminate())

    async def run(self) -> None:
        """Run until the pod has ended and its status says so. A cancellation kills all processes without a status."""
        cancellation = Cancellation()
        try:
            outcome = await self._rejection()
            if outcome is None:
                self.is_admitted = True
                await self._prepare(cancellation)
                outcome = await self._outcome()
            _log.info("training pod %s: %s %s", described(self.pod), outcome.phase, outcome.message)
            await self._report(outcome, until_written=True)
        finally:
            if self._terminating is not None:
                self._terminating.cancel()
            cancellation.cancel()
            self._files.remove()
            ray_node.forget(self.pod)

    async def _rejection(self) -> PodOutcome | None:
        """Why the node rejects the pod; None once it admits it. While the machine has no room, the pod waits."""
        said = ""
        while (
            found := await asyncio.to_thread(self._machine.rejects, self.pod)
        ) and found.phase == "Pending":
            if self._ending.is_set():
                return PodOutcome(phase="Failed", reason=found.reason, message=found.message)
            if said != found.message:
                said = found.message
                _log.warning("training pod %s waits: %s", described(self.pod), said)
                await self._report(found)
            await self._pause(_RETRY_SECONDS)
        return found

    async def _outcome(self) -> PodOutcome:
        watching = asyncio.create_task(self._watch_storage())
        try:
            has_succeeded = await self._run_containers()
        finally:
            watching.cancel()
        return self._evicted or PodOutcome(phase="Succeeded" if has_succeeded else "Failed")

    async def _watch_storage(self) -> None:
        """Evict the pod, without a grace period, once it has written more than it may."""
        while self._evicted is None:
            await asyncio.sleep(_STORAGE_SECONDS)
            used = await asyncio.to_thread(self._used)
            self._evicted = storage_eviction(self.pod, used)
        self._ending.set()
        await asyncio.gather(*(each.stop(lambda: 0.0) for each in (*self._containers, *self._inits)))

    def _used(self) -> Mapping[str, int]:
        volumes = {each.name: each for each in self._files.volumes.glob("*")}
        return {name: _size(each) for name, each in {**volumes, "": self._files.folder}.items()}

    async def lose(self) -> None:
        """Report that an earlier runner was killed, and the processes of the pod with it."""
        self._prepare_containers()
        for each in (*self._inits, *self._containers):
            each.forget()
        await self._report(PodOutcome(phase="Failed"), until_written=True)

    async def _prepare(self, cancellation: Cancellation) -> None:
        """Write the volumes and learn the names of peers, as soon as all exist; return early if the pod is to end."""
        problem = ""
        while not self._ending.is_set():
            try:
                await self._volumes.present(cancellation)
                await asyncio.to_thread(self._volumes.write)
                services = await asyncio.to_thread(
                    self._machine.client.list, "v1", "Service", namespace=namespace_of(self.pod)
                )
            except (CannotRunError, *FAILURES, OSError) as error:
                if problem != str(error):
                    problem = str(error)
                    _log.warning("training pod %s waits: %s", described(self.pod), problem)
                    await self._report(PodOutcome(phase="Pending", reason="FailedMount", message=problem))
                await self._pause(_RETRY_SECONDS)
                continue
            subdomain = str(mapping(self.pod.get("spec")).get("subdomain") or "")
            self._services = frozenset({name_of(each) for each in services} | {subdomain}) - {""}
            self._address = own_address(self.pod, services)
            break
        self._prepare_containers()

    def _prepare_containers(self) -> None:
        policy = str(mapping(self.pod.get("spec")).get("restartPolicy") or "Always")
        self._inits = [
            self._container(
                each, "Always" if is_sidecar(each) else "Never" if policy == "Never" else "OnFailure"
            )
            for each in containers_of(self.pod, "initContainers")
        ]
        self._containers = [self._container(each, policy) for each in containers_of(self.pod, "containers")]

    def _container(self, spec: Json, policy: str) -> Container:
        def restarts(code: int) -> bool:
            return not self._ending.is_set() and (policy == "Always" or (policy == "OnFailure" and code != 0))

        lifecycle = Lifecycle(
            command=self._command,
            here=lambda spec, text: self._surroundings().here(text, self.pod, self._volumes.mounts(spec)),
            changed=lambda: self._report(self._now()),
            ending=self._ending,
            restarts=restarts,
            address=self._address,
        )
        return Container(spec, lifecycle)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            cluster=self._machine.sources.cluster,
            images=self._machine.folder / "images",
            mark=self._machine.mark,
            folder=self._files.folder,
            address=self._address,
            services=self._services,
        )

    def _command(self, container: Json, attempt: int) -> Command:
        log = log_of(self._machine.logs, self.pod, str(container.get("name")), attempt)
        mounts = self._volumes.mounts(container)
        return self._surroundings().command(self.pod, container, mounts, self._volumes.lookup, log)

    async def _run_containers(self) -> bool:
        """Run the init containers in order and then the containers; return whether the pod has succeeded."""
        sidecars: list[asyncio.Task[int | None]] = []
        try:
            for container, spec in zip(self._inits, containers_of(self.pod, "initContainers"), strict=True):
                if is_sidecar(spec):
                    sidecars.append(asyncio.create_task(container.run()))
                    await container.settled.wait()
                elif await container.run() != 0:
                    return False
            codes = await self._run_in_turn()
        except asyncio.CancelledError:
            for each in sidecars:
                each.cancel()
            raise
        finally:
            self._ending.set()
        if self._terminating is None:
            left = self._seconds_left(time.monotonic())
            for each in reversed(self._inits):
                await each.stop(left)
        await asyncio.gather(*sidecars)
        return all(code == 0 for code in codes)

    async def _run_in_turn(self) -> list[int | None]:
        """Run the containers. Nodes of Ray start one after another: of those that start at once, some time out."""
        is_ray = ray_node.is_ray_node(self.pod)
        async with self._machine.ray_turn if is_ray else contextlib.nullcontext():
            running = asyncio.gather(*(each.run() for each in self._containers))
            try:
                until = time.monotonic() + (_TURN_SECONDS if is_ray else 0)
                while time.monotonic() < until and not (running.done() or self._is_ready()):
                    await asyncio.sleep(_POLL_SECONDS)
            except asyncio.CancelledError:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                raise
        return await running

    def _is_ready(self) -> bool:
        return all(each.state.is_ready for each in self._containers)

    async def _terminate(self) -> None:
        """End the containers and then the sidecars, all within the grace period of the deletion."""
        left = self._seconds_left(time.monotonic())
        await asyncio.gather(*(each.stop(left) for each in self._containers))
        for each in reversed(self._inits):
            await each.stop(left)

    def _seconds_left(self, began: float) -> Callable[[], float]:
        def left() -> float:
            # A later deletion may shorten the grace period.
            usual = count(mapping(self.pod.get("spec")).get("terminationGracePeriodSeconds"), _GRACE_SECONDS)
            return (
                began
                + count(metadata_of(self.pod).get("deletionGracePeriodSeconds"), usual)
                - time.monotonic()
            )

        return left

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), timeout=seconds)

    def _now(self) -> PodOutcome:
        has_run = any(each.state.started_at or each.state.last for each in self._containers)
        return PodOutcome(phase="Running" if has_run else "Pending")

    async def _report(self, outcome: PodOutcome, *, until_written: bool = False) -> None:
        """Write the status of the pod; with `until_written`, try until it is written or the pod is gone."""
        # A request that was sent is answered before the next one, also if its sender is canceled meanwhile.
        while not await asyncio.shield(self._written_in_turn(outcome)) and until_written:
            await asyncio.sleep(_RETRY_SECONDS)

    async def _written_in_turn(self, outcome: PodOutcome) -> bool:
        async with self._writing:
            return await self._written(outcome)

    async def _written(self, outcome: PodOutcome) -> bool:
        status = pod_status(
            self.pod,
            outcome,
            [each.state for each in self._inits],
            [each.state for each in self._containers],
            shown_address(self._address) if self._address else "",
            now(),
        )
        # With its uid: do not change a later pod with the same name.
        patch: Json = {"metadata": {"uid": uid_of(self.pod)}, "status": status}
        try:
            self.pod = await asyncio.to_thread(
                self._machine.client.patch_status,
                "v1",
                "Pod",
                name_of(self.pod),
                patch,
                namespace_of(self.pod),
            )
        except FAILURES as error:
            is_gone = isinstance(error, ApiError) and (error.is_missing or error.is_conflict)
            _log.warning("training pod %s: cannot write its status: %s", described(self.pod), error)
            return is_gone
        return True


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # it was removed meanwhile
                total += (Path(path) / name).lstat().st_size
    return total
