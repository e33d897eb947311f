"""Simulates the dashboards of simulated Ray heads.

KubeRay reads the status of a RayJob from the dashboard of its head over HTTP, by the name of its Service. A simulated
pod does not listen, so KubeRay reaches this proxy through its HTTP_PROXY. A job runs while its head runs. It succeeds
when the head has the annotation `holdfast.dev/complete: "true"`, and fails with `holdfast.dev/fail: "true"`. A head
with `holdfast.dev/silent: "true"` does not answer. A request for a head that runs as processes is passed on to it.
"""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import urlsplit

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.controllers import LOOPBACK
from pulumi_holdfast.rehearsal.operator_runner.training.ray_node import dashboard_of, forwarded

COMPLETE = "holdfast.dev/complete"
FAIL = "holdfast.dev/fail"
SILENT = "holdfast.dev/silent"
DASHBOARD_PORT = 8265
JOBS = "/api/jobs"

# Maps the name and the namespace of a Service to its pods.
HeadPods = Callable[[str, str], Sequence[Json]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Response:
    """An HTTP response with a JSON body."""

    status: int
    body: JsonValue


def answer(method: str, url: str, body: Json, heads: HeadPods) -> Response:
    """The response of the dashboard at `url`. `heads` returns the pods of its Service."""
    parts = urlsplit(url)
    names = (parts.hostname or "").split(".")
    if parts.port != DASHBOARD_PORT or names[2:3] != ["svc"]:
        return Response(status=502, body={"error": f"{url} is not the dashboard of a Ray head"})
    running = [pod for pod in heads(names[0], names[1]) if _answers(pod)]
    if not running:
        return Response(status=502, body={"error": f"{parts.hostname} has no running Ray head"})
    submission = parts.path.removeprefix(JOBS).strip("/") if parts.path.startswith(JOBS) else None
    if submission is None:
        return Response(status=200, body={})
    if method == "POST" and not submission:
        return Response(
            status=200, body={key: body.get("submission_id") for key in ("job_id", "submission_id")}
        )
    if method == "GET":
        return Response(status=200, body=_job(submission, running[0]) if submission else [])
    return Response(status=200, body={})


def _answers(head: Json) -> bool:
    return mapping(head.get("status")).get("phase") == "Running" and not _is_annotated(head, SILENT)


def _is_annotated(head: Json, name: str) -> bool:
    return mapping(mapping(head.get("metadata")).get("annotations")).get(name) == "true"


def _status_of(head: Json) -> str:
    if _is_annotated(head, FAIL):
        return "FAILED"
    return "SUCCEEDED" if _is_annotated(head, COMPLETE) else "RUNNING"


def _job(submission: str, head: Json) -> Json:
    status = _status_of(head)
    return {
        "type": "SUBMISSION",
        "job_id": None,
        "submission_id": submission,
        "status": status,
        "message": "simulated",
        "entrypoint": "simulated",
        "start_time": 1,
        "end_time": 0 if status == "RUNNING" else 2,
    }


class RayDashboards(ThreadingHTTPServer):
    """Serves the dashboards as an HTTP proxy on a free loopback port, until the process ends."""

    def __init__(self, client: KubeClient) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        self._client = client
        self.address = f"http://{LOOPBACK}:{self.server_port}"
        threading.Thread(target=self.serve_forever, name="Ray dashboards", daemon=True).start()

    def heads(self, service: str, namespace: str) -> Sequence[Json]:
        """Return the pods of a Service."""
        found = self._client.get("v1", "Service", service, namespace)
        selector = mapping(mapping((found or {}).get("spec")).get("selector"))
        if not selector:
            return []
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        return self._client.list("v1", "Pod", namespace=namespace, label_selector=labels)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        real = self._real()
        if real is not None:
            parts = urlsplit(self.path)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            self._send(*forwarded(real, DASHBOARD_PORT, self.command, target, text))
            return
        body: JsonValue = json.loads(text or b"{}")
        try:
            response = answer(
                self.command, self.path, mapping(body), cast("RayDashboards", self.server).heads
            )
        except FAILURES as error:
            response = Response(status=502, body={"error": str(error)})
        self._send(response.status, json.dumps(response.body).encode())

    def _real(self) -> str | None:
        """The address of the dashboard that is asked, if it is one of real processes."""
        names = (urlsplit(self.path).hostname or "").split(".")
        if names[2:3] != ["svc"]:
            return None
        try:
            heads = cast("RayDashboards", self.server).heads(names[0], names[1])
        except FAILURES:
            return None
        return next((found for found in map(dashboard_of, heads) if found), None)

    def _send(self, status: int, shown: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(shown)))
        self.end_headers()
        self.wfile.write(shown)

    do_POST = do_DELETE = do_GET  # noqa: N815 - the base class calls these names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's signature
        _log.debug(format, *args)
