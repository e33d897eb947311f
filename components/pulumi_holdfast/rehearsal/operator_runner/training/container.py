"""One container of a training pod: its process, its probes, and its restarts."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.objects import count, objects, text
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.objects import now
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError, container_ports
from pulumi_holdfast.rehearsal.operator_runner.process import (
    LARGEST_LOG_BYTES,
    Command,
    SupervisedProcess,
    delay_seconds,
    failures_after,
    keep_end,
)
from pulumi_holdfast.rehearsal.operator_runner.training.status import ContainerState
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import (
    MARK,
    ImagePullError,
    ProgramMissingError,
    end_marked,
)

#: The exit code of a container whose program cannot be started.
_CANNOT_START: Final = 128
_KILLED: Final = 137
_MESSAGE_BYTES: Final = 2048
_POLL_SECONDS: Final = 0.05
_LOG_SECONDS: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """What a container has in common with its pod.

    `command` returns the process of the attempt with a number; `here` is a text of a container as it is on this machine;
    `changed` reports a new state; `ending` is set when the pod
    is to end; `restarts` says whether a process that ended with a code runs again; `address` is the pod's.
    """

    command: Callable[[Json, int], Command]
    here: Callable[[Json, str], str]
    changed: Callable[[], Awaitable[None]]
    ending: asyncio.Event
    restarts: Callable[[int], bool]
    address: str


class Container:
    """A container; `state` is its state now, `settled` is set once it has started or ended for good."""

    def __init__(self, spec: Json, lifecycle: Lifecycle, *, restarts: int = 0) -> None:
        self.state = ContainerState(
            name=text(spec.get("name")), image=text(spec.get("image")), restarts=restarts
        )
        self.settled = asyncio.Event()
        self._spec = spec
        self._pod = lifecycle
        self._process: SupervisedProcess | None = None
        self._command: Command | None = None

    async def run(self) -> int | None:
        """Run until it has ended for good; return its last exit code, None if it never ran.

        A cancellation kills its processes.
        """
        failures = 0
        try:
            while not self._pod.ending.is_set():
                began = time.monotonic()
                code = await self._attempt()
                if code is not None and not self._pod.restarts(code):
                    return code
                failures = failures_after(failures, ran_seconds=time.monotonic() - began)
                if code is not None and not self._pod.ending.is_set():
                    await self._back_off()
                await self._pause(delay_seconds(failures))
        finally:
            self.settled.set()
        return self.state.exit_code if self.state.exit_code is not None else _code_of(self.state.last)

    async def stop(self, seconds_left: Callable[[], float]) -> None:
        """End the process: the preStop command, SIGTERM, and SIGKILL when no seconds are left."""
        hook = [
            str(each)
            for each in sequence(_exec(mapping(mapping(self._spec.get("lifecycle")).get("preStop"))))
        ]
        if hook and self._process is not None:
            await self._succeeds(hook, seconds_left())
        process = self._process
        if process is None:
            return
        process.terminate()
        while self._process is process and seconds_left() > 0:
            await asyncio.sleep(_POLL_SECONDS)
        process.kill_all()

    def forget(self) -> None:
        """Take it as killed by the end of an earlier runner."""
        self.state = replace(
            self.state, exit_code=_KILLED, reason="ContainerStatusUnknown", finished_at=now()
        )

    async def _attempt(self) -> int | None:
        """Run the process once; return its exit code, None if it cannot start yet."""
        try:
            self._command = await asyncio.to_thread(self._pod.command, self._spec, self.state.restarts)
        except ImagePullError as error:
            await self._become(reason="ErrImagePull", message=str(error))
            return None
        except CannotRunError as error:
            await self._become(reason="CreateContainerConfigError", message=str(error))
            return None
        except ProgramMissingError as error:
            return await self._ended(_CANNOT_START, "StartError", str(error))
        self._process = process = await SupervisedProcess.start(self._command)
        is_started = not self._spec.get("startupProbe")
        is_ready = is_started and not self._spec.get("readinessProbe")
        await self._become(
            started_at=now(), exit_code=None, reason="", message="", is_started=is_started, is_ready=is_ready
        )
        beside = [asyncio.create_task(self._probe()), asyncio.create_task(self._shorten(self._command.log))]
        try:
            code = await process.ended()
        finally:
            for each in beside:
                each.cancel()
            # The first process of a container has ended: so do all others.
            process.kill_all()
            await asyncio.to_thread(end_marked, self._command.variables[MARK].rstrip("/"))
            self._process = None
        code = 128 - code if code < 0 else code
        return await self._ended(code, "Error" if code else "Completed", self._last_words(code))

    async def _shorten(self, log: Path) -> None:
        """Keep only the end of a long log, as a kubelet does."""
        while True:
            await asyncio.sleep(_LOG_SECONDS)
            if log.stat().st_size > LARGEST_LOG_BYTES:
                await asyncio.to_thread(keep_end, log)

    async def _ended(self, code: int, reason: str, message: str) -> int:
        await self._become(
            exit_code=code,
            reason=reason,
            message=message,
            finished_at=now(),
            is_started=False,
            is_ready=False,
        )
        return code

    async def _back_off(self) -> None:
        last, restarts = self.state.terminated, self.state.restarts + 1
        await self._become(
            reason="CrashLoopBackOff",
            message=f"back-off of attempt {restarts}",
            restarts=restarts,
            last=last,
            started_at="",
            exit_code=None,
        )

    async def _become(self, **changes: str | int | bool | Json | None) -> None:
        self.state = replace(self.state, **changes)  # pyright: ignore[reportArgumentType]  # its own fields
        await self._pod.changed()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._pod.ending.wait(), timeout=seconds)
        except TimeoutError:
            return

    def _last_words(self, code: int) -> str:
        """The termination message: the end of the log of a failed container that asks for it."""
        if (
            not code
            or self._spec.get("terminationMessagePolicy") != "FallbackToLogsOnError"
            or not self._command
        ):
            return ""
        return self._command.log.read_bytes()[-_MESSAGE_BYTES:].decode(errors="replace")

    async def _probe(self) -> None:
        """Start, then keep what the probes say until canceled; a failed startup or liveness probe ends the process."""
        startup = mapping(self._spec.get("startupProbe"))
        if startup:
            if not await self._holds_in_time(startup):
                await self._fail()
                return
            await self._become(is_started=True, is_ready=not self._spec.get("readinessProbe"))
        self.settled.set()
        await asyncio.gather(self._keep_alive(), self._keep_ready())

    async def _holds_in_time(self, probe: Json) -> bool:
        await asyncio.sleep(count(probe.get("initialDelaySeconds")))
        for _ in range(count(probe.get("failureThreshold"), 3)):
            if await self._holds(probe):
                return True
            await asyncio.sleep(count(probe.get("periodSeconds"), 10))
        return False

    async def _keep_alive(self) -> None:
        probe = mapping(self._spec.get("livenessProbe"))
        while probe:
            if not await self._holds_in_time(probe):
                await self._fail()
                return
            await asyncio.sleep(count(probe.get("periodSeconds"), 10))

    async def _keep_ready(self) -> None:
        probe = mapping(self._spec.get("readinessProbe"))
        await asyncio.sleep(count(probe.get("initialDelaySeconds")))
        while probe:
            if await self._holds(probe) is not self.state.is_ready:
                await self._become(is_ready=not self.state.is_ready)
            await asyncio.sleep(count(probe.get("periodSeconds"), 10))

    async def _fail(self) -> None:
        process = self._process
        if process is not None:
            process.terminate()
            await asyncio.sleep(1)
            process.kill_all()

    async def _holds(self, probe: Json) -> bool:
        seconds = float(count(probe.get("timeoutSeconds"), 1))
        words = [str(each) for each in sequence(_exec(probe))]
        if words:
            return await self._succeeds(words, seconds)
        get = mapping(probe.get("httpGet"))
        port = (get or mapping(probe.get("tcpSocket"))).get("port")
        number = container_ports(self._spec).get(port, 0) if isinstance(port, str) else count(port)
        path = text(get.get("path")) or "/"
        check = _answers_http if get else _accepts
        return await asyncio.to_thread(check, self._pod.address, number, path, seconds)

    async def _succeeds(self, words: list[str], seconds: float) -> bool:
        """Whether a command in the container exits with 0 in time."""
        if self._command is None:
            return False
        try:
            probe = await asyncio.create_subprocess_exec(
                *(self._pod.here(self._spec, word) for word in words),
                cwd=self._command.folder,
                env=self._command.variables,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError:
            return False
        try:
            return await asyncio.wait_for(probe.wait(), timeout=seconds) == 0
        except TimeoutError:
            return False
        finally:
            if probe.returncode is None:
                probe.kill()


def is_sidecar(spec: Json) -> bool:
    """Whether an init container keeps running beside the containers."""
    return spec.get("restartPolicy") == "Always"


def containers_of(pod: Json, field: str) -> tuple[Json, ...]:
    """The `containers` or `initContainers` of a pod."""
    return objects(mapping(pod.get("spec")).get(field))


def _exec(handler: Json) -> "Json | None":
    return mapping(handler.get("exec")).get("command")  # pyright: ignore[reportReturnType]


def _code_of(terminated: Mapping[str, object]) -> int | None:
    code = terminated.get("exitCode")
    return code if isinstance(code, int) else None


def _answers_http(address: str, port: int, path: str, seconds: float) -> bool:
    connection = HTTPConnection(address, port, timeout=seconds)
    try:
        connection.request("GET", path)
        return 200 <= connection.getresponse().status < 400
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _accepts(address: str, port: int, path: str, seconds: float) -> bool:
    del path
    try:
        socket.create_connection((address, port), timeout=seconds).close()
    except OSError:
        return False
    return True
