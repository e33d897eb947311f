"""Simulates the dashboards of simulated Ray heads.

KubeRay reads the status of a RayJob from the dashboard of its head over HTTP, by the name of its Service. A simulated
pod does not listen, so KubeRay reaches this proxy through its HTTP_PROXY. A job runs while its head runs. It succeeds
when the head has the annotation `holdfast.dev/complete: "true"`, and fails with `holdfast.dev/fail: "true"`. A head
with `holdfast.dev/silent: "true"` does not answer.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.scheduling.json import Json, JsonValue, mapping
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.operator_runner.connect_proxy import Head, read_head
from holdfast.simulator.operator_runner.controllers import LOOPBACK

COMPLETE = "holdfast.dev/complete"
FAIL = "holdfast.dev/fail"
SILENT = "holdfast.dev/silent"
DASHBOARD_PORT = 8265
JOBS = "/api/jobs"
LARGEST_BODY_BYTES = 4_000_000

# Maps the name and the namespace of a Service to its pods.
HeadPods = Callable[[str, str], Sequence[Json]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Response:
    """An HTTP response with a JSON body."""

    status: str
    body: JsonValue


def answer(method: str, url: str, body: Json, heads: HeadPods) -> Response:
    """The response of the dashboard at `url`. `heads` returns the pods of its Service."""
    parts = urlsplit(url)
    names = (parts.hostname or "").split(".")
    if parts.port != DASHBOARD_PORT or names[2:3] != ["svc"]:
        return Response(status="502 Bad Gateway", body={"error": f"{url} is not the dashboard of a Ray head"})
    running = [pod for pod in heads(names[0], names[1]) if _answers(pod)]
    if not running:
        return Response(status="502 Bad Gateway", body={"error": f"{parts.hostname} has no running Ray head"})
    submission = parts.path.removeprefix(JOBS).strip("/") if parts.path.startswith(JOBS) else None
    if submission is None:
        return Response(status="200 OK", body={})
    if method == "POST" and not submission:
        return Response(
            status="200 OK", body={key: body.get("submission_id") for key in ("job_id", "submission_id")}
        )
    if method == "GET":
        return Response(status="200 OK", body=_job(submission, running[0]) if submission else [])
    return Response(status="200 OK", body={})


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


class RayDashboards:
    """Serves the dashboards as an HTTP proxy on a free loopback port."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def serve(self) -> tuple[asyncio.Server, str]:
        """Start the server; returns it and its proxy address."""
        server = await asyncio.start_server(self._handle, LOOPBACK, 0)
        port = server.sockets[0].getsockname()[1]
        return server, f"http://{LOOPBACK}:{port}"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await read_head(reader)
            body = await _body(head, reader)
            response = await asyncio.to_thread(answer, head.method, head.target, body, self._heads)
            writer.write(_render(response))
            await writer.drain()
        except (OSError, EOFError, TimeoutError, ValueError, RehearsalError) as error:
            _log.info("a request to a Ray dashboard failed: %s", error)
        finally:
            writer.close()

    def _heads(self, service: str, namespace: str) -> Sequence[Json]:
        found = self._client.get("v1", "Service", service, namespace)
        selector = mapping(mapping((found or {}).get("spec")).get("selector"))
        if not selector:
            return []
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        return self._client.list("v1", "Pod", namespace=namespace, label_selector=labels)


async def _body(head: Head, reader: asyncio.StreamReader) -> Json:
    length = int(head.headers.get("content-length") or 0)
    if not 0 < length <= LARGEST_BODY_BYTES:
        return {}
    parsed: JsonValue = json.loads(await reader.readexactly(length))
    return mapping(parsed)


def _render(response: Response) -> bytes:
    body = json.dumps(response.body).encode()
    head = (
        f"HTTP/1.1 {response.status}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
