"""Runs the program so that its failure is one message."""

import traceback
from collections.abc import Callable
from pathlib import Path

from pulumi import RunError

from rehearsal.errors import RehearsalError
from scheduling.errors import ConfigError


def reporting(program: Callable[[], None], *, log: Path) -> Callable[[], None]:
    """Return the program with its failures turned into the engine's own kind of error.

    A refused configuration, or an error raised on purpose, keeps its text. Anything else is a fault of the
    program: named in one line, its traceback kept in `log`.
    """

    def run() -> None:
        try:
            program()
        except RunError:
            raise
        except (ConfigError, RehearsalError) as refusal:
            raise RunError(str(refusal)) from None
        except Exception as fault:  # noqa: BLE001 - the last frame before the engine, which would print it all
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(traceback.format_exc(), encoding="utf-8")
            raise RunError(
                f"the program failed: {type(fault).__name__}: {fault} (traceback: {log})"
            ) from None

    return run
