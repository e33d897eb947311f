"""An account in which a real provider creates a stack: a server that judges each request by what a cloud publishes."""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, TypeAlias, cast
from urllib.parse import parse_qsl, urlsplit

from tests.soak.judges.applies import Target
from tests.support.background import Silent

Values: TypeAlias = "dict[str, object]"
#: A response: its status, headers and body.
Response: TypeAlias = "tuple[int, Mapping[str, str], bytes]"

#: The environment of Python in which `make judges` installs moto and the discovery documents.
CLOUDS: Final = Path(__file__).parents[3] / ".tools/clouds"


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request: its service, and what was sent. Names of headers are lowercase."""

    service: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Call:
    """What a request asks for: the operation, its parameters, and what the model says against them."""

    operation: str
    parameters: Values
    wrong: Sequence[str]


@dataclass(kw_only=True)
class Judged:
    """What was sent: the requests that each part answers, and what the models say against them."""

    answered: Counter[str] = field(default_factory=Counter[str])
    operations: set[str] = field(default_factory=set[str])
    wrong: list[str] = field(default_factory=list[str])


class Account(ThreadingHTTPServer, ABC):
    """Judges requests, one at a time, and answers them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.judged = Judged()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.server_port}"

    @abstractmethod
    def target(self) -> Target:
        """Return how a provider reaches the account, and what is there before."""

    @abstractmethod
    def service(self, path: str, headers: Mapping[str, str]) -> tuple[str, str]:
        """Return the service of a request, and the path there."""

    @abstractmethod
    def part(self, service: str) -> str:
        """Return which part of the account answers a service."""

    @abstractmethod
    def read(self, sent: Sent) -> Call:
        """Return what a request asks for. Raises LookupError where no model has it."""

    @abstractmethod
    def respond(self, sent: Sent, call: Call | None, target: str) -> Response:
        """Return the response to a request for `target`; `call` is None where no model has it."""

    def judge(self, sent: Sent) -> Call | None:
        """Return what a request asks for, None where no model has it."""
        with self.lock:
            self.judged.answered[self.part(sent.service)] += 1
            try:
                call = self.read(sent)
            except LookupError as unknown:
                self.judged.wrong.append(str(unknown.args[0]))
                return None
            self.judged.operations.add(f"{sent.service} {call.operation}")
            self.judged.wrong += [f"{sent.service} {one}" for one in call.wrong]
            return call


class _Handler(Silent, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        account = cast("Account", self.server)
        target = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        service, path = account.service(target.path, headers)
        sent = Sent(
            service=service,
            method=self.command,
            path=path,
            query=dict(parse_qsl(target.query, keep_blank_values=True)),
            headers=headers,
            body=self.rfile.read(int(headers.get("content-length") or 0)),
        )
        status, given, content = account.respond(sent, account.judge(sent), f"{target.path}?{target.query}")
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = _answer  # noqa: N815 - the names of the class
