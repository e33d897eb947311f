"""Runs the process behind one pod for as long as the pod is there."""

import asyncio
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.operator_runner.adaptation import Controller
from holdfast.simulator.operator_runner.backoff import delay_seconds, failures_after
from holdfast.simulator.operator_runner.containers import (
    CannotRunError,
    grace_seconds_of,
    identity_of,
    restarts_of,
    service_account_of,
)
from holdfast.simulator.operator_runner.pod_files import PodFiles
from holdfast.simulator.operator_runner.preparation import Prepared, Surroundings, prepare
from holdfast.simulator.operator_runner.reporter import PodReporter
from holdfast.simulator.operator_runner.sources import PodSources
from holdfast.simulator.operator_runner.supervised_process import SupervisedProcess
from holdfast.simulator.operator_runner.volumes import volumes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCES_SECONDS = 10.0
# Clients read the file again every minute; half a day is left when the next one is written.
TOKEN_SECONDS = 24 * 3600
TOKEN_RENEWAL_SECONDS = 12 * 3600

_log = logging.getLogger(__name__)


class HostedPod:
    """One pod and the process behind it.

    `pod` is the pod as last seen; `ports` maps its container's ports to this machine's while a process runs.
    """

    def __init__(self, pod: Json, controller: Controller, program: Path, surroundings: Surroundings) -> None:
        self.pod = pod
        self.ports: Mapping[int, int] = {}
        self._identity = identity_of(pod)
        self._controller = controller
        self._program = program
        self._surroundings = surroundings
        self._files = PodFiles(surroundings.pods / self._identity.uid)
        self._reporter = PodReporter(surroundings.client, self._identity, restarts=restarts_of(pod))

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
        client, namespace = self._surroundings.client, self._identity.namespace
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
            self._surroundings,
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
            self._surroundings.client.service_account_token,
            self._identity.namespace,
            service_account_of(self.pod),
            TOKEN_SECONDS,
        )
        self._files.write_token(token)
