"""One process of the controller: its log, its HTTP server, its signals and its clock."""

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from pulumi_holdfast.controller.api.connection import Connection
from pulumi_holdfast.controller.api.leader_election import Fence
from pulumi_holdfast.controller.reconciler.controller import Controller
from pulumi_holdfast.controller.reconciler.metrics import Metrics
from pulumi_holdfast.controller.reconciler.settings import Settings
from pulumi_holdfast.ladder.errors import ConfigError

_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
_UNAVAILABLE: Final = 503


@asynccontextmanager
async def serve_http(
    address: str, port: int, *, is_ready: Callable[[], bool], metrics: Callable[[], bytes]
) -> AsyncGenerator[int]:
    """Serve `/healthz`, `/readyz` and `/metrics` while the block runs; yields the port.

    A process that answers is healthy. It is ready once it has listed the cluster: a standby replica is ready too.
    """

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readiness(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(status=_UNAVAILABLE, text="the cluster has not been listed yet")

    async def numbers(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": _PROMETHEUS})

    app = web.Application()
    app.router.add_get("/healthz", health)
    app.router.add_get("/readyz", readiness)
    app.router.add_get("/metrics", numbers)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


# Attributes of every record; all others come from `extra`.
_ORDINARY: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON line: time, level, message, logger, and the fields of `extra`.

    Callers log only named fields: no request, header, manifest or environment is ever logged, and so no secret of a job.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


_log: Final = logging.getLogger(__name__)


def log_to_stderr(level: str) -> None:
    """Log everything of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; a leader then steps down.

    Raises ConfigError if the API server's address is unknown, OSError if the port is not available.
    """
    metrics = Metrics()
    connection = Connection(settings.access, seen=_observe_requests(metrics))
    others = other_connections(settings)
    controller = Controller(settings, connection, metrics, Fence(_boot_clock), others=others)
    try:
        async with serve_http(
            settings.address, settings.port, is_ready=lambda: controller.is_ready, metrics=metrics.text
        ):
            await _until_signalled(asyncio.create_task(controller.run()))
    finally:
        for each in (connection, *others.values()):
            await each.close()


def other_connections(settings: Settings) -> Mapping[str, Connection]:
    """Return the connections to other clusters.

    A cluster with an invalid kubeconfig is skipped, so that jobs at home are still reconciled.
    """
    found: dict[str, Connection] = {}
    for name, access in settings.other_clusters().items():
        try:
            found[name] = Connection(access)
        except ConfigError:
            _log.exception(
                "cluster %s is not reached: its tiers are skipped, and copies there are left alone", name
            )
    return found


async def _until_signalled(running: "asyncio.Task[None]") -> None:
    loop = asyncio.get_running_loop()
    for told in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(told, running.cancel)
    with suppress(asyncio.CancelledError):
        await running


def _boot_clock() -> float:
    """Return seconds of a clock that continues while the machine sleeps, if there is one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def _observe_requests(metrics: Metrics) -> Callable[[str, int, float], None]:
    def seen(method: str, status: int, seconds: float) -> None:
        metrics.request_seconds.labels(method, str(status)).observe(seconds)

    return seen
