"""Requests to the API server with the user's own rights.

`kubectl proxy` sends them, from a socket in a folder that only the user can open. So kubectl reads the kubeconfig, runs the
credential plugins of the clouds and follows the user's proxies, and the plugin needs no package beside Python.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, cast
from urllib.parse import quote, urlencode

from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json, mapping

JSON: Final = "application/json"
_READ_SECONDS: Final = 60.0
_START_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02
_REFUSED: Final = 300
_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 3
_MOST_BYTES: Final = 2**20
#: What `kubectl proxy` answers, as plain text, when it cannot reach the API server or when a credential plugin fails.
_OF_PROXY: Final = frozenset({500, 502})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The response to a request, and the warnings that the API server sent with it."""

    document: Json
    warnings: tuple[str, ...] = ()


class Requests(Protocol):
    """What sends requests to an API server."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = JSON,
    ) -> Answer:
        """Send one request. Raises ApiError when the server rejects it, Unreachable when it does not answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the user chose the cluster: the options of kubectl that the plugin has, too."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    user: str | None = None

    @property
    def options(self) -> Sequence[str]:
        """The options for kubectl."""
        chosen = {"kubeconfig": self.kubeconfig, "context": self.context, "as": self.user}
        return [f"--{name}={value}" for name, value in chosen.items() if value]


@dataclass(frozen=True, kw_only=True)
class Target:
    """The cluster and the namespace that a command works on."""

    context: str
    namespace: str


def kubectl(access: Access, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run kubectl to its end. Raises ConfigError where it is not installed."""
    program = _program()
    return subprocess.run(
        [program, *access.options, *words], input=stdin, capture_output=True, text=True, check=False
    )


def find_target(access: Access) -> Target:
    """Return the context and the namespace that kubectl would use.

    Raises ConfigError where there is no kubeconfig, or none of that context.
    """
    shown = kubectl(access, "config", "view", "--minify", "-o", "json")
    if shown.returncode:
        raise ConfigError([_no_kubeconfig(access, shown.stderr)])
    view = cast("Json", json.loads(shown.stdout))
    contexts = view.get("contexts")
    first = mapping(contexts[0]) if isinstance(contexts, list) and contexts else mapping(None)
    inside = mapping(first.get("context")).get("namespace")
    return Target(
        context=str(first.get("name") or view.get("current-context") or ""),
        namespace=access.namespace or (inside if isinstance(inside, str) and inside else "default"),
    )


@contextmanager
def connected(access: Access) -> Generator[Requests]:
    """Requests with the user's rights, for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        path, log = Path(folder) / "api", ProxyLog(Path(folder) / "log")
        # A file: a pipe that is not read is full one day, and the proxy then waits with every request.
        with log.path.open("ab") as errors:
            process = subprocess.Popen(
                [_program(), *access.options, "proxy", f"--unix-socket={path}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                # Ctrl-C ends this command, which then ends the proxy: it may have a request left to send.
                start_new_session=True,
            )
        try:
            _wait_until_open(path, process, access, log)
            yield SocketRequests(path, log)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)


class ProxyLog:
    """What `kubectl proxy` writes to its standard error: in a file, for as long as the proxy runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tail(self) -> str:
        """Return the last lines; empty where it wrote nothing."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self.path.stat().st_size - _TAIL_BYTES))
                said = file.read(_TAIL_BYTES).decode(errors="replace")
        except OSError:
            return ""
        return "; ".join(said.strip().splitlines()[-_TAIL_LINES:])

    def bound(self) -> None:
        """Empty the file before it is large: the page is served for days, also while no API server answers."""
        with suppress(OSError):
            if self.path.stat().st_size > _MOST_BYTES:
                os.truncate(self.path, 0)


class SocketRequests:
    """Requests through the socket of `kubectl proxy`. Safe to use from many threads."""

    def __init__(self, path: Path, log: ProxyLog) -> None:
        self._path = path
        self._log = log

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = JSON,
    ) -> Answer:
        """Send one request; see Requests."""
        target = quote(path) + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": JSON, "Content-Type": content_type}
        self._log.bound()
        connection = _SocketConnection(self._path)
        try:
            connection.request(method, target, data, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            said = self._log.tail()
            why = f"{str(error) or type(error).__name__}{f'; kubectl proxy: {said}' if said else ''}"
            raise Unreachable("the current context", why) from error
        finally:
            connection.close()
        warnings = tuple(map(warning_text, answer.headers.get_all("Warning") or ()))
        return Answer(document=_document(answer.status, answer.reason, content), warnings=warnings)


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_READ_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def warning_text(header: str) -> str:
    """Return the text of a Warning header: `299 - "text"`, in which quotes are escaped."""
    _, _, quoted = header.partition('"')
    text, _, _ = quoted.rpartition('"')
    return (text or header).replace('\\"', '"').replace("\\\\", "\\")


def _document(status: int, reason: str, content: bytes) -> Json:
    try:
        document = cast("Json", json.loads(content or b"{}"))
    except ValueError:
        document: Json = {"message": content[:500].decode(errors="replace").strip()}
        if status in _OF_PROXY:
            raise Unreachable("the current context", str(document["message"] or reason)) from None
    if status >= _REFUSED:
        raise ApiError(status, str(document.get("reason") or reason), str(document.get("message") or ""))
    return document


def _wait_until_open(path: Path, process: subprocess.Popen[bytes], access: Access, log: ProxyLog) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _accepts(path):
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            raise ConfigError([_no_kubeconfig(access, log.tail())])
        time.sleep(_POLL_SECONDS)


def _accepts(path: Path) -> bool:
    """Whether the proxy listens: its socket is a file before it accepts connections."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _program() -> str:
    found = shutil.which("kubectl")
    if found is None:
        raise ConfigError.of(
            field="kubectl",
            value="no such program on PATH",
            allowed="kubectl, which reads the kubeconfig and sends the requests",
            fix="Install kubectl, or add its folder to PATH.",
        )
    return found


def _no_kubeconfig(access: Access, said: str) -> Problem:
    chosen = f"context {access.context}" if access.context else access.kubeconfig or "the default one"
    return Problem(
        field="kubeconfig",
        value=f"{chosen} ({said.strip().removeprefix('error: ') or 'kubectl proxy did not start'})",
        allowed="a kubeconfig with a current context that kubectl can use",
        fix="Set KUBECONFIG, pass --kubeconfig or --context, or choose one with `kubectl config use-context`.",
    )
