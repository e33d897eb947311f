"""Tells the API server how a hosted pod is."""

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.operator_runner.containers import PodIdentity, main_container, readiness_probe
from holdfast.simulator.operator_runner.readiness import answers
from holdfast.simulator.operator_runner.status import ProcessState, pod_status
from holdfast.simulator.operator_runner.supervised_process import now

PROBE_SECONDS = 0.3
STEADY_PROBE_SECONDS = 5.0

_log = logging.getLogger(__name__)


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
