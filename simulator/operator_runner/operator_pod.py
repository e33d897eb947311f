"""Runs the process behind one pod for as long as the pod is there."""

import asyncio
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.operator_runner.controllers import Controller, Prepared, RunnerContext, prepare
from holdfast.simulator.operator_runner.pod_files import PodFiles, PodSources
from holdfast.simulator.operator_runner.pod_spec import (
    CannotRunError,
    grace_seconds_of,
    identity_of,
    restarts_of,
    service_account_of,
    volumes_of,
)
from holdfast.simulator.operator_runner.process import SupervisedProcess, delay_seconds, failures_after

if TYPE_CHECKING:
    from collections.abc import Mapping
import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.pod_spec import PodIdentity, main_container, readiness_probe
from holdfast.simulator.operator_runner.process import now

_OURS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


@dataclass(frozen=True, kw_only=True)
class ProcessState:
    """The state of the process behind a pod.

    `at` is when it came to be, in RFC 3339; `waiting_for` says why no process runs, empty while one does.
    """

    at: str
    ready: bool = False
    restarts: int = 0
    waiting_for: str = ""


def pod_status(pod: Json, state: ProcessState, pod_ip: str) -> Json:
    """The status of a pod whose process is in `state`; conditions of others stay as they are."""
    others = [
        mapping(each)
        for each in sequence(mapping(pod.get("status")).get("conditions"))
        if mapping(each).get("type") not in _OURS
    ]
    ours: list[Json] = [_condition(name, state) for name in _OURS]
    container = main_container(pod)
    shown: Json = {
        "name": container.get("name"),
        "image": container.get("image"),
        "imageID": "",
        "ready": state.ready,
        "started": not state.waiting_for,
        "restartCount": state.restarts,
        "state": _container_state(state),
    }
    return {
        "phase": "Pending" if state.waiting_for and state.restarts == 0 else "Running",
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": mapping(pod.get("status")).get("startTime") or state.at,
        "conditions": [*others, *ours],
        "containerStatuses": [shown],
    }


def _condition(name: str, state: ProcessState) -> Json:
    holds = state.ready or name not in ("ContainersReady", "Ready")
    return {"type": name, "status": "True" if holds else "False", "lastTransitionTime": state.at}


def _container_state(state: ProcessState) -> Json:
    if not state.waiting_for:
        return {"running": {"startedAt": state.at}}
    reason = "CrashLoopBackOff" if state.restarts else "ContainerCreating"
    return {"waiting": {"reason": reason, "message": state.waiting_for}}


ANSWER_SECONDS = 2.0


async def answers(port: int, path: str) -> bool:
    """Whether an HTTP GET of `path` on a loopback port is answered with success, as a kubelet judges it."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            status = await _status(port, path)
    except (OSError, TimeoutError, ValueError, IndexError):
        return False
    return 200 <= status < 400


async def _status(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


PROBE_SECONDS = 0.3
STEADY_PROBE_SECONDS = 5.0


class PodReporter:
    """Keeps one pod's status in step with its process; `restarts` of it were counted before."""

    def __init__(self, client: KubeClient, identity: PodIdentity, *, restarts: int = 0) -> None:
        self._client = client
        self._identity = identity
        self._state = ProcessState(at=now(), restarts=restarts, waiting_for="its files are being made")

    @property
    def ready(self) -> bool:
        """Whether the process says that it is ready."""
        return self._state.ready

    async def waits(self, pod: Json, reason: str) -> None:
        """No process runs, for `reason`."""
        await self._tell(pod, replace(self._state, ready=False, waiting_for=reason))

    def has_ended(self) -> None:
        """The process has ended; `waits` says why."""
        self._state = replace(self._state, ready=False, restarts=self._state.restarts + 1)

    async def accompany(self, pod: Json, ports: Mapping[int, int]) -> None:
        """Say that a process runs, and from then on whether its readiness probe is answered; until cancelled."""
        probe = readiness_probe(main_container(pod))
        ready = probe is None
        await self._tell(pod, replace(self._state, ready=ready, waiting_for=""))
        while probe is not None:
            answered = await answers(ports[probe.port], probe.path)
            if answered != ready:
                ready = answered
                await self._tell(pod, replace(self._state, ready=ready))
            await asyncio.sleep(STEADY_PROBE_SECONDS if ready else PROBE_SECONDS)

    async def _tell(self, pod: Json, state: ProcessState) -> None:
        self._state = replace(state, at=now())
        # With its uid: a later pod of the same name is another's.
        status = pod_status(pod, self._state, _pod_ip(self._identity.uid))
        patch: Json = {"metadata": {"uid": self._identity.uid}, "status": status}
        name, namespace = self._identity.name, self._identity.namespace
        try:
            await asyncio.to_thread(
                self._client.merge_patch, "v1", "Pod", name, patch, namespace=namespace, subresource="status"
            )
        except RehearsalError as error:
            _log.warning("pod %s: its status could not be written: %s", name, error)


def _pod_ip(uid: str) -> str:
    # A real address is of no use to anybody, but Services only list pods that have one, and not a loopback one.
    # 10.1.0.0/16 is neither kwok's range of pods nor the API server's of Services.
    digest = hashlib.sha256(uid.encode()).digest()
    return f"10.1.{digest[0]}.{max(digest[1], 1)}"


SOURCES_SECONDS = 10.0
# Clients read the file again every minute; half a day is left when the next one is written.
TOKEN_SECONDS = 24 * 3600
TOKEN_RENEWAL_SECONDS = 12 * 3600

_log = logging.getLogger(__name__)


class OperatorPod:
    """One pod and the process behind it.

    `pod` is the pod as last seen; `ports` maps its container's ports to this machine's while a process runs.
    """

    def __init__(self, pod: Json, controller: Controller, program: Path, context: RunnerContext) -> None:
        self.pod = pod
        self.ports: Mapping[int, int] = {}
        self._identity = identity_of(pod)
        self._controller = controller
        self._program = program
        self._context = context
        self._files = PodFiles(context.pods / self._identity.uid)
        self._reporter = PodReporter(context.client, self._identity, restarts=restarts_of(pod))

    @property
    def ready(self) -> bool:
        """Whether the process says that it is ready."""
        return self._reporter.ready

    async def run(self) -> None:
        """Keep the process running, with a growing wait between attempts, until cancelled."""
        cancellation = Cancellation()
        try:
            await self._run_again_and_again(cancellation)
        finally:
            cancellation.cancel()
            self._files.remove()

    async def _run_again_and_again(self, cancellation: Cancellation) -> None:
        sources: PodSources | None = None
        failures = 0
        while True:
            begin = time.monotonic()
            try:
                sources = sources or self._sources(cancellation)
                reason = await self._run_once(sources)
            except (CannotRunError, RehearsalError, OSError) as error:
                reason = str(error)
            failures = failures_after(failures, ran_seconds=time.monotonic() - begin)
            seconds = delay_seconds(failures)
            _log.warning("pod %s: %s; next attempt in %.0f s", self._identity.name, reason, seconds)
            await self._reporter.waits(self.pod, reason)
            await asyncio.sleep(seconds)

    def _sources(self, cancellation: Cancellation) -> PodSources:
        client, namespace = self._context.client, self._identity.namespace
        return PodSources(client, namespace, volumes_of(self.pod), self._files, cancellation)

    async def _run_once(self, sources: PodSources) -> str:
        """Run the process once; returns why it does not run any more."""
        await sources.present(timeout_seconds=SOURCES_SECONDS)
        await self._write_token()
        prepared = await asyncio.to_thread(
            prepare,
            self.pod,
            self._controller,
            self._program,
            self._files,
            self._context,
            sources.lookup,
        )
        return await self._accompany(await SupervisedProcess.start(prepared.command), prepared)

    async def _accompany(self, process: SupervisedProcess, prepared: Prepared) -> str:
        tool, log = self._controller.tool, prepared.command.log
        _log.info("pod %s: %s runs, ports %s", self._identity.name, tool, dict(prepared.ports))
        self.ports = prepared.ports
        companions = [
            asyncio.create_task(self._reporter.accompany(self.pod, prepared.ports)),
            asyncio.create_task(self._keep_token()),
        ]
        try:
            code = await process.ended()
        finally:
            for companion in companions:
                companion.cancel()
            self.ports = {}
            self._reporter.has_ended()
            await process.end(grace_seconds=grace_seconds_of(self.pod))
        return f"{tool} ended with code {code}; it wrote {log}"

    async def _keep_token(self) -> None:
        while True:
            await asyncio.sleep(TOKEN_RENEWAL_SECONDS)
            try:
                await self._write_token()
            except RehearsalError as error:
                _log.warning("pod %s: its token could not be renewed: %s", self._identity.name, error)

    async def _write_token(self) -> None:
        token = await asyncio.to_thread(
            self._context.client.service_account_token,
            self._identity.namespace,
            service_account_of(self.pod),
            TOKEN_SECONDS,
        )
        self._files.write_token(token)
