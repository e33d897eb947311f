"""A user at the keyboard."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


def press_ctrl_c() -> None:
    """Interrupt the test's own thread, as a terminal does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def at_a_terminal() -> Generator[None]:
    """Let Ctrl-C interrupt inside the block: a job that a shell put into the background ignores it, children included."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
