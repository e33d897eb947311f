"""Serves the page and its data on the loopback interface, to the user who started it.

Other users of the machine, and pages of other origins in the same browser, can connect to a loopback port. So the data needs
a token that only the printed address has, in its fragment, which browsers send to no server; requests must name this server
as their host, so that no other name can be made to resolve here; and nothing can be changed through it.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulumi_holdfast.ladder.json import Json

ADDRESS: Final = "127.0.0.1"
_POLL_SECONDS: Final = 1.0
_KEEP_ALIVE_SECONDS: Final = 10.0
_FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Feed:
    """The newest board. A thread reads the cluster while a page is open, and only then."""

    def __init__(self, read: Callable[[], Json]) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._line: bytes = b""
        self._version = 0
        self._pages = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="read the cluster", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading, and end every stream."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(5)

    def open_page(self) -> None:
        """Count a page that was opened."""
        with self._changed:
            self._pages += 1
            self._changed.notify_all()

    def close_page(self) -> None:
        """Count a page that was closed."""
        with self._changed:
            self._pages -= 1

    def wait(self, known: int) -> tuple[int, bytes] | None:
        """Return the newest board once it is newer than `known`, or nothing new after a while; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._version > known, _KEEP_ALIVE_SECONDS)
            if self._is_closed:
                return None
            return (self._version, self._line) if self._version > known else (known, b"")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._pages > 0)
                if self._is_closed:
                    return
            line = self._read_line()
            with self._changed:
                if line != self._line:
                    self._line, self._version = line, self._version + 1
                    self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_closed, _POLL_SECONDS)

    def _read_line(self) -> bytes:
        try:
            return json.dumps(self._read()).encode() + b"\n"
        except Exception as error:  # noqa: BLE001 - the page shows it and the next reading may succeed
            return json.dumps({"error": str(error) or type(error).__name__}).encode() + b"\n"


def hosts_of(port: int) -> frozenset[str]:
    """Return the values of the Host header by which a browser asks for the page: without the port where it is HTTP's own."""
    names = (ADDRESS, "localhost")
    return frozenset({f"{name}:{port}" for name in names} | (set(names) if port == HTTP_PORT else set[str]()))


class PageServer(ThreadingHTTPServer):
    """The server; `address` is what the user opens."""

    daemon_threads = True

    def __init__(self, feed: Feed, port: int = 0) -> None:
        self.feed = feed
        self.token = secrets.token_urlsafe(32)
        super().__init__((ADDRESS, port), _Handler)
        self.hosts = hosts_of(self.server_port)

    @property
    def address(self) -> str:
        """The page's address, with the token in its fragment."""
        return f"http://{ADDRESS}:{self.server_port}/#{self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # type: ignore[reportIncompatibleVariableOverride]  # the class that makes it
    server_version = "holdfast"
    sys_version = ""
    # A client that sends nothing does not keep its thread.
    timeout = 60

    def do_GET(self) -> None:
        """Serve a file of the page, or the stream of boards."""
        refused = self._refusal()
        if refused is not None:
            self._send(refused, "text/plain", f"{refused.value} {refused.phrase}\n".encode())
        elif self.path == "/boards":
            self._stream()
        else:
            name, kind = _FILES[self.path]
            self._send(
                HTTPStatus.OK, kind, files("pulumi_holdfast.cli.kubectl.ui").joinpath(name).read_bytes()
            )

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Log nothing: the terminal is the user's."""

    def _refusal(self) -> HTTPStatus | None:
        if self.headers.get("Host") not in self.server.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            return HTTPStatus.FORBIDDEN
        if self.path == "/boards":
            given = self.headers.get("Authorization", "")
            is_given = hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode())
            return None if is_given else HTTPStatus.UNAUTHORIZED
        return None if self.path in _FILES else HTTPStatus.NOT_FOUND

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in _HEADERS.items():
            self.send_header(name, value)

    def _stream(self) -> None:
        """Send a line for each new board, and an empty one from time to time, until the page is closed."""
        self._head(HTTPStatus.OK, "application/x-ndjson")
        self.end_headers()
        feed, known = self.server.feed, 0
        feed.open_page()
        try:
            while (found := feed.wait(known)) is not None:
                known, line = found
                self.wfile.write(line or b"\n")
                self.wfile.flush()
        except OSError:
            pass  # the page was closed
        finally:
            feed.close_page()
