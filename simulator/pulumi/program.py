"""Runs the program so that its failure is one message, and so that it ends when the engine does."""

import asyncio
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import grpc
from pulumi import RunError

from holdfast.scheduling.errors import ConfigError
from holdfast.simulator.errors import RehearsalError

# A program that computes for longer than this after the engine is gone is left to itself.
_END_SECONDS = 10.0
_CLOSE_SECONDS = 0.5


class HostedProgram:
    """A program as the Automation API takes it: a function that registers resources.

    A refused configuration, or an error raised on purpose, keeps its text. Anything else is a fault of the
    program: named in one line, its traceback kept in `log`.
    """

    def __init__(self, program: Callable[[], None], *, log: Path) -> None:
        self._program = program
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._ended = threading.Event()

    def __call__(self) -> None:
        """Run the program. Raises RunError, which the engine shows as its message alone."""
        self._outlive_the_engine()
        try:
            self._program()
        except RunError:
            raise
        except (ConfigError, RehearsalError) as refusal:
            raise RunError(str(refusal)) from None
        except Exception as fault:  # noqa: BLE001 - the last frame before the engine, which would print it all
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.write_text(traceback.format_exc(), encoding="utf-8")
            reason = f"{type(fault).__name__}: {fault}"
            raise RunError(f"the program failed: {reason} (traceback: {self._log})") from None

    def end(self) -> None:
        """End what still runs once the engine is gone, and wait for it. Harmless when nothing does."""
        if self._loop is None or self._task is None or self._loop.is_closed():
            return
        if not self._ended.is_set():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._ended.wait(_END_SECONDS)
        # The Automation API closes its loop, unless the engine is gone: then it fails at its own log line before.
        deadline = time.monotonic() + _CLOSE_SECONDS
        while not self._loop.is_closed() and time.monotonic() < deadline:
            time.sleep(_CLOSE_SECONDS / 20)
        with suppress(RuntimeError):
            self._loop.close()

    def _outlive_the_engine(self) -> None:
        """Keep the loop running when calls to a killed engine fail, until `end`.

        The Automation API stops the loop then, in the middle of the program, and nothing ever runs the rest:
        its clean-up would be run by the garbage collector, and fail there.
        """
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._ended.clear()
        self._loop.set_exception_handler(_ignore_lost_calls)
        if self._task is not None:
            self._task.add_done_callback(lambda _: self._ended.set())


def _ignore_lost_calls(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    if not isinstance(context.get("exception"), grpc.RpcError):
        loop.default_exception_handler(context)
