"""What runs in a thread of its own for the length of a block: a server, or a function that is repeated."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer


class Silent:
    """A handler of HTTP requests that logs none."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Print nothing."""


@contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler]) -> Generator[str]:
    """Serve HTTP on a free port of this machine; yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def serving(server: BaseServer) -> Generator[None]:
    """Serve, and close the server."""
    try:
        with _running(server.serve_forever, server.shutdown):
            yield
    finally:
        server.server_close()


@contextmanager
def repeating(act: Callable[[], None], seconds: float) -> Generator[None]:
    """Call a function again and again, with pauses of `seconds`."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            act()

    with _running(repeat, ended.set):
        yield


@contextmanager
def _running(target: Callable[[], None], stop: Callable[[], None]) -> Generator[None]:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(60)
