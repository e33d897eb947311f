"""One process of the controller, from its settings to its end."""

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from holdfast.fallback.api.connection import Connection
from holdfast.fallback.api.leader_election import Fence
from holdfast.fallback.reconciler.assembly import Controller
from holdfast.fallback.reconciler.metrics import Metrics
from holdfast.fallback.reconciler.serving import serving
from holdfast.fallback.reconciler.settings import Settings


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; whoever leads then makes room for another.

    Raises ConfigError where the API server's address cannot be told, OSError where the port cannot be had.
    """
    metrics = Metrics()
    connection = Connection(settings.access, seen=_measuring(metrics))
    controller = Controller(settings, connection, metrics, Fence(_going_clock))
    try:
        async with serving(
            settings.address, settings.port, is_ready=lambda: controller.is_ready, metrics=metrics.text
        ):
            await _until_told(asyncio.create_task(controller.run()))
    finally:
        await connection.close()


async def _until_told(running: "asyncio.Task[None]") -> None:
    loop = asyncio.get_running_loop()
    for told in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(told, running.cancel)
    with suppress(asyncio.CancelledError):
        await running


def _going_clock() -> float:
    """Return seconds of a clock that goes on while the machine sleeps, where there is one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def _measuring(metrics: Metrics) -> Callable[[str, int, float], None]:
    def seen(method: str, status: int, seconds: float) -> None:
        metrics.requests.labels(method, str(status)).observe(seconds)

    return seen
