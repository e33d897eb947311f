"""Requests through the real kubectl, to a small server that answers as an API server does."""

import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pulumi_holdfast.cli.kubectl import connection
from pulumi_holdfast.cli.kubectl.command_line import open_cluster
from pulumi_holdfast.cli.kubectl.connection import Access, connected, find_target
from pulumi_holdfast.controller.kube.client import MERGE, ApiError, Unreachable
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from tests.support.background import Silent, served


class ApiServer(Silent, BaseHTTPRequestHandler):
    """Answers with what it was sent; a path that ends in a status gets that status."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        tail = self.path.rpartition("/")[2]
        status = int(tail) if tail.isdigit() else 200
        told = {
            "method": self.command,
            "path": self.path,
            "type": self.headers.get("Content-Type"),
            "as": self.headers.get("Impersonate-User"),
            "body": self.rfile.read(length).decode(),
            "reason": "Invalid",
            "message": "spec.x: must be set",
        }
        content = b"404 page not found" if status == 404 else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Warning", '299 - "the field is deprecated"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PATCH = do_POST = do_DELETE = _answer  # noqa: N815 - the names of the handler's methods


@pytest.fixture
def access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Access]:
    """A kubeconfig for the server, with the kubectl of the locked packages on PATH."""
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    file = tmp_path / "kubeconfig"
    context: Json = {"cluster": "c", "user": "u", "namespace": "vision"}
    with served(ApiServer) as address:
        config: Json = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "training", "context": context}],
            "current-context": "training",
        }
        file.write_text(json.dumps(config))
        yield Access(kubeconfig=str(file))


def test_requests_arrive_as_they_are_sent_and_answers_with_their_warnings(access: Access) -> None:
    target = find_target(access)
    assert (target.context, target.namespace) == ("training", "vision")
    with connected(access) as requests:
        answer = requests.request(
            "PATCH", "/api/v1/pods", query={"dryRun": "All"}, body={"a": 1}, content_type=MERGE
        )
        sent = answer.document
        assert (sent["method"], sent["path"], sent["body"]) == (
            "PATCH",
            "/api/v1/pods?dryRun=All",
            '{"a": 1}',
        )
        assert sent["type"] == MERGE
        assert answer.warnings == ("the field is deprecated",)
        for method in ("POST", "DELETE"):
            assert requests.request(method, "/api/v1/pods", body={}).document["method"] == method


def test_rejections_have_the_servers_message_and_status(access: Access) -> None:
    with connected(access) as requests:
        with pytest.raises(ApiError, match=r"spec\.x: must be set") as failed:
            requests.request("POST", "/api/v1/pods/422", body={})
        assert (failed.value.status, failed.value.reason) == (422, "Invalid")
        with pytest.raises(ApiError, match="404 page not found") as missing:
            requests.request("GET", "/apis/absent/404")
        assert missing.value.is_missing


def test_impersonation_is_kubectls(access: Access) -> None:
    with connected(Access(kubeconfig=access.kubeconfig, user="scientist")) as requests:
        assert requests.request("GET", "/api").document["as"] == "scientist"


def test_proxy_is_reachable_by_this_user_only_and_ends_with_the_block(
    access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with connected(access):
        (folder,) = tmp_path.glob("holdfast-*")
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_silent_server_and_missing_context_are_errors_with_a_fix(access: Access, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    config = json.loads(file.read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    file.write_text(json.dumps(config))
    with connected(access) as requests, pytest.raises(Unreachable):
        requests.request("GET", "/api")
    with pytest.raises(ConfigError, match="Try `kubectl get pods`"), open_cluster(access) as cluster:
        cluster.jobs()
    with pytest.raises(ConfigError, match=r"kubeconfig: got context absent .*; allowed: "):
        find_target(Access(kubeconfig=access.kubeconfig, context="absent"))


#: A kubectl whose proxy complains about each request, answers /api alone, and closes the connection of any other.
COMPLAINS = """#!{python}
import os, socketserver, sys
from http.server import BaseHTTPRequestHandler

class Answer(BaseHTTPRequestHandler):
    address_string = lambda self: ""
    log_message = lambda self, *words: None

    def do_GET(self):
        os.write(2, b"E0101 proxy_server.go] Error while proxying request: " + b"x" * 4000 + b" connection refused\\n")
        if self.path == "/api":
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{{}}")

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

path = next(word.partition("=")[2] for word in sys.argv if word.startswith("--unix-socket="))
Server(path, Answer).serve_forever()
"""


@pytest.fixture
def complaining(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "kubectl"
    program.write_text(COMPLAINS.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(connection, "_READ_SECONDS", 20.0)


@pytest.mark.usefixtures("complaining")
def test_proxy_that_complains_at_length_answers_all_requests_and_is_quoted() -> None:
    with connected(Access()) as requests:
        for _ in range(40):
            assert requests.request("GET", "/api").document == {}, "a full pipe would hold it up"
        with pytest.raises(Unreachable, match=r"; kubectl proxy: .*connection refused") as failed:
            requests.request("GET", "/closed")
    assert len(str(failed.value)) < 5000


@pytest.mark.usefixtures("complaining")
def test_log_of_the_proxy_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(connection, "_MOST_BYTES", 20_000)
    with connected(Access()) as requests:
        for _ in range(20):
            requests.request("GET", "/api")
        (log,) = tmp_path.glob("holdfast-*/log")
        assert 0 < log.stat().st_size < 30_000
