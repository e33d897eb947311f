"""The fault proxy."""

import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from queue import Queue
from typing import Final

import pytest
import yaml

from pulumi_holdfast.controller.kube.access import ApiAccess
from tests.soak import fault_proxy
from tests.soak.fault_proxy import Fault, FaultProxy
from tests.support.background import Silent, served

LIMIT: Final = 180


def test_a_proxy_that_cannot_start_raises_the_reason(tmp_path: Path) -> None:
    proxy = FaultProxy(
        kubeconfig=tmp_path / "not made" / "kubeconfig", access=ApiAccess(server="https://api.example:6443")
    )
    with pytest.raises(FileNotFoundError, match="not made"), proxy.serving():
        pytest.fail("the block must not run")


@contextmanager
def api_server(arrived: "Queue[str]") -> Generator[str]:
    """An API server for the length of the block, by its address."""

    class Handler(Silent, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with served(Handler) as address:
        yield address


@pytest.mark.parametrize(
    ("fault", "is_answered", "arrivals"),
    [
        (Fault.PASS, True, 1),
        (Fault.LOSE, False, 0),
        (Fault.LOSE_ANSWER, False, 1),
        (Fault.LATE, False, 1),
        (Fault.TWICE, True, 2),
    ],
)
def test_a_request_arrives_and_is_answered_as_its_fault_says(
    fault: Fault, is_answered: bool, arrivals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_proxy, "LATE_SECONDS", 0.01)
    arrived: Queue[str] = Queue()
    with api_server(arrived) as address:
        proxy = FaultProxy(
            kubeconfig=tmp_path / "kubeconfig", access=ApiAccess(server=address), decide=lambda _: fault
        )
        with proxy.serving():
            (cluster,) = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"]
            request = urllib.request.Request(f"{cluster['cluster']['server']}/jobs", b"{}", method="POST")
            if is_answered:
                with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                    assert answer.status == 201
            else:
                with pytest.raises(OSError, match=r"closed connection|reset"):
                    urllib.request.urlopen(request, timeout=LIMIT)
            assert [arrived.get(timeout=LIMIT) for _ in range(arrivals)] == ["{}"] * arrivals
    assert arrived.empty()
