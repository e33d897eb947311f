"""Ordinary clients of S3 with the policy that a stack gives to the jobs of a namespace.

S3 is moto's server, behind a door that asks the policy as S3 asks it; see resume.py for the packages. Its name keeps it from
being collected with the others.
"""

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from pulumi_holdfast.aws.checkpoints import bucket_access
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.control_plane.processes import free_ports
from tests.soak.frameworks.resume import PYTHON
from tests.support.fakes.iam_evaluation import Request, is_allowed
from tests.support.json_objects import obj, objects
from tests.support.waiting import wait_until

CLIENTS: Final = Path(__file__).with_name("s3_clients.py")
ACCOUNT: Final = "123456789012"
ACTIONS: Final = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
#: Headers that concern one connection alone.
HOP: Final = ("connection", "content-length", "date", "expect", "server", "transfer-encoding")
ADMINISTRATOR: Final = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


def door(policy: str, moto: int) -> ThreadingHTTPServer:
    """A server that passes to moto what a policy allows, and answers as S3 does to the rest."""

    def allowed(action: str, resource: str, prefix: str | None = None) -> bool:
        context = {"aws:ResourceAccount": ACCOUNT} | ({} if prefix is None else {"s3:prefix": prefix})
        request = Request(action=f"s3:{action}", resource=f"arn:aws:s3:::{resource}", context=context)
        return is_allowed([policy.replace("${aws:PrincipalAccount}", ACCOUNT)], request)

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            address = urlsplit(self.path)
            bucket, _, key = unquote(address.path).lstrip("/").partition("/")
            if key:
                may = allowed(ACTIONS.get(self.command, "PutObject"), f"{bucket}/{key}")
            else:
                may = self.command in ("GET", "HEAD") and allowed(
                    "ListBucket",
                    bucket,
                    parse_qs(address.query, keep_blank_values=True).get("prefix", [None])[0],
                )
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not may:
                self.reply(403, b"", {})
                return
            upstream = HTTPConnection("127.0.0.1", moto)
            passed = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            upstream.request(self.command, self.path, body, passed)
            found = upstream.getresponse()
            # Who may not list a bucket does not learn what is missing: this request has no prefix.
            hidden = found.status == 404 and key and not allowed("ListBucket", bucket)
            self.reply(
                403 if hidden else found.status, b"" if hidden else found.read(), dict(found.getheaders())
            )

        def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Door)


@pytest.fixture(scope="module")
def moto() -> Generator[int]:
    """The port of a server with the buckets of two namespaces."""
    (port,) = free_ports(1)
    server = subprocess.Popen([PYTHON, "-m", "moto.server", "-p", str(port)], stderr=subprocess.DEVNULL)

    def made() -> bool:
        try:
            for bucket in ("of-vision", "of-tabular"):
                connection = HTTPConnection("127.0.0.1", port)
                connection.request("PUT", f"/{bucket}")
                if connection.getresponse().status != 200:
                    return False
        except OSError:
            return False
        return True

    try:
        wait_until(made, "the buckets are there")
        yield port
    finally:
        server.terminate()
        server.wait()


@contextmanager
def serving(policy: str, moto: int) -> Generator[str]:
    server = door(policy, moto)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def asked(endpoint: str, uri: str) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, CLIENTS, endpoint, uri]
    environment = {**os.environ, **ADMINISTRATOR, "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_ordinary_clients_find_write_and_miss_checkpoints_of_their_namespace_alone(moto: int) -> None:
    policy = bucket_access(bucket_arn="arn:aws:s3:::of-vision", key_arn=None)
    with serving(policy, moto) as endpoint:
        own = asked(endpoint, "s3://of-vision/vision")
        assert own.returncode == 0, own.stderr
        other = asked(endpoint, "s3://of-tabular/tabular")
    assert other.returncode != 0


def test_a_policy_for_a_prefix_alone_is_an_error_to_them(moto: int) -> None:
    policy = bucket_access(bucket_arn="arn:aws:s3:::of-vision", key_arn=None)
    limited = obj(json.loads(policy))
    on_objects, on_bucket = objects(limited["Statement"])
    on_prefix: Json = {**on_bucket, "Condition": {"StringLike": {"s3:prefix": "vision/*"}}}
    with serving(json.dumps({**limited, "Statement": [on_objects, on_prefix]}), moto) as endpoint:
        assert "Error" in asked(endpoint, "s3://of-vision/vision").stderr
