"""Runs the process of one pod while the pod exists, and reports the status of the pod."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.errors import FAILURES, Cancellation
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.objects import now
from pulumi_holdfast.rehearsal.operator_runner.controllers import (
    LOOPBACK,
    Prepared,
    RunnerContext,
    SimulatedController,
    prepare,
)
from pulumi_holdfast.rehearsal.operator_runner.pod_files import PodFiles, PodSources
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import (
    CannotRunError,
    PodIdentity,
    grace_seconds_of,
    identity_of,
    main_container,
    projected_tokens,
    readiness_probe,
    restarts_of,
    service_account_of,
    volumes_of,
)
from pulumi_holdfast.rehearsal.operator_runner.process import SupervisedProcess, delay_seconds, failures_after

_OURS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


@dataclass(frozen=True, kw_only=True)
class ProcessState:
    """The state of the process of a pod.

    `at` is the time of the state in RFC 3339; `waiting_for` is the reason that no process runs, empty if one runs.
    """

    at: str
    ready: bool = False
    restarts: int = 0
    waiting_for: str = ""


def pod_status(pod: Json, state: ProcessState, pod_ip: str) -> Json:
    """The status of a pod with a process in `state`; keeps conditions of other writers."""
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


# Neither the proxy of the user nor that of the cluster.
_OPENER = build_opener(ProxyHandler({}))


async def answers(port: int, path: str) -> bool:
    """Whether an HTTP GET of `path` on a loopback port succeeds."""

    def get() -> bool:
        try:
            with _OPENER.open(f"http://{LOOPBACK}:{port}{path}", timeout=ANSWER_SECONDS):
                return True
        except (OSError, HTTPException):
            return False

    return await asyncio.to_thread(get)


PROBE_SECONDS = 0.3
STEADY_PROBE_SECONDS = 5.0


class PodReporter:
    """Writes the status of one pod; `restarts` is the restart count so far."""

    def __init__(self, client: KubeClient, identity: PodIdentity, *, restarts: int = 0) -> None:
        self._client = client
        self._identity = identity
        self._state = ProcessState(at=now(), restarts=restarts, waiting_for="its files are being written")

    @property
    def ready(self) -> bool:
        """Whether the process is ready."""
        return self._state.ready

    async def report_waiting(self, pod: Json, reason: str) -> None:
        """Report that no process runs because of `reason`."""
        await self._write(pod, replace(self._state, ready=False, waiting_for=reason))

    def record_exit(self) -> None:
        """Record that the process exited; `report_waiting` reports the reason."""
        self._state = replace(self._state, ready=False, restarts=self._state.restarts + 1)

    async def report_running(self, pod: Json, ports: Mapping[int, int]) -> None:
        """Report that the process runs, and then the results of its readiness probe, until canceled."""
        probe = readiness_probe(main_container(pod))
        ready = probe is None
        await self._write(pod, replace(self._state, ready=ready, waiting_for=""))
        while probe is not None:
            answered = await answers(ports[probe.port], probe.path)
            if answered != ready:
                ready = answered
                await self._write(pod, replace(self._state, ready=ready))
            await asyncio.sleep(STEADY_PROBE_SECONDS if ready else PROBE_SECONDS)

    async def _write(self, pod: Json, state: ProcessState) -> None:
        self._state = replace(state, at=now())
        # With its uid: do not change a later pod with the same name.
        status = pod_status(pod, self._state, _pod_ip(self._identity.uid))
        patch: Json = {"metadata": {"uid": self._identity.uid}, "status": status}
        name, namespace = self._identity.name, self._identity.namespace
        try:
            await asyncio.to_thread(
                self._client.merge_patch, "v1", "Pod", name, patch, namespace=namespace, subresource="status"
            )
        except FAILURES as error:
            _log.warning("pod %s: cannot write its status: %s", name, error)


def _pod_ip(uid: str) -> str:
    # Nothing connects to the address, but Services list only pods with an address outside the loopback range.
    # 10.1.0.0/16 is neither the pod range of kwok nor the Service range of the API server.
    digest = hashlib.sha256(uid.encode()).digest()
    return f"10.1.{digest[0]}.{max(digest[1], 1)}"


SOURCES_SECONDS = 10.0
# Clients read the file every minute.
TOKEN_SECONDS = 24 * 3600

_log = logging.getLogger(__name__)


class OperatorPod:
    """One pod and its process.

    `pod` is the last observed state; `ports` maps container ports to local ports while a process runs.
    """

    def __init__(
        self, pod: Json, controller: SimulatedController, program: Path, context: RunnerContext
    ) -> None:
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
        """Whether the process is ready."""
        return self._reporter.ready

    async def run(self) -> None:
        """Run the process, with exponential backoff between attempts, until canceled."""
        cancellation = Cancellation()
        try:
            await self._run_with_backoff(cancellation)
        finally:
            cancellation.cancel()
            self._files.remove()

    async def _run_with_backoff(self, cancellation: Cancellation) -> None:
        sources: PodSources | None = None
        failures = 0
        while True:
            begin = time.monotonic()
            try:
                sources = sources or self._sources(cancellation)
                reason = await self._run_once(sources)
            except (CannotRunError, *FAILURES, OSError) as error:
                reason = str(error)
            failures = failures_after(failures, ran_seconds=time.monotonic() - begin)
            seconds = delay_seconds(failures)
            _log.warning("pod %s: %s; next attempt in %.0f s", self._identity.name, reason, seconds)
            await self._reporter.report_waiting(self.pod, reason)
            await asyncio.sleep(seconds)

    def _sources(self, cancellation: Cancellation) -> PodSources:
        client, namespace = self._context.client, self._identity.namespace
        return PodSources(client, namespace, volumes_of(self.pod), self._files, cancellation)

    async def _run_once(self, sources: PodSources) -> str:
        """Run the process once; returns the reason for its end."""
        await sources.present(timeout_seconds=SOURCES_SECONDS)
        await self._write_tokens()
        prepared = await asyncio.to_thread(
            prepare, self.pod, self._controller, self._program, self._files, self._context, sources.lookup
        )
        return await self._supervise(await SupervisedProcess.start(prepared.command), prepared)

    async def _supervise(self, process: SupervisedProcess, prepared: Prepared) -> str:
        tool, log = self._controller.tool, prepared.command.log
        _log.info("pod %s: %s runs, ports %s", self._identity.name, tool, dict(prepared.ports))
        self.ports = prepared.ports
        tasks = [
            asyncio.create_task(self._reporter.report_running(self.pod, prepared.ports)),
            asyncio.create_task(self._keep_tokens()),
        ]
        try:
            code = await process.ended()
        finally:
            for task in tasks:
                task.cancel()
            self.ports = {}
            self._reporter.record_exit()
            await process.end(grace_seconds=grace_seconds_of(self.pod))
        return f"{tool} exited with code {code}; read its log {log}"

    async def _keep_tokens(self) -> None:
        shortest = min([TOKEN_SECONDS, *(each.seconds for each in projected_tokens(self.pod))])
        while True:
            # When half of the shortest lifetime has passed.
            await asyncio.sleep(shortest / 2)
            try:
                await self._write_tokens()
            except FAILURES as error:
                _log.warning("pod %s: cannot renew its tokens: %s", self._identity.name, error)

    async def _write_tokens(self) -> None:
        self._files.write_token(await self._token(TOKEN_SECONDS))
        projected: dict[str, dict[str, str]] = {}
        for each in projected_tokens(self.pod):
            token = await self._token(each.seconds, each.audience)
            projected.setdefault(each.volume, {})[each.path] = token
        for volume, tokens in projected.items():
            self._files.write_projected(volume, tokens)

    async def _token(self, seconds: int, audience: str | None = None) -> str:
        return await asyncio.to_thread(
            self._context.client.service_account_token,
            self._identity.namespace,
            service_account_of(self.pod),
            seconds,
            audience=audience,
        )
