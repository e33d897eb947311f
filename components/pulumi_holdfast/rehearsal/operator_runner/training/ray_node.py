"""What is changed for a node of Ray whose peers share its machine.

Ray refuses two nodes with different loopback addresses ("Creating 2 instances in the same host with different IP address is
not supported"), so all nodes of a cluster have the address of their head, and each has ports of its own. The port of the
head's GCS is the same for every cluster, and it listens on every interface: one cluster runs at a time.
"""

import hashlib
import re
import shutil
import tempfile
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.objects import labels_of, namespace_of, uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS

_CLUSTER: Final = "ray.io/cluster"
_NODE_TYPE: Final = "ray.io/node-type"
# Beyond Ray's ports of workers, and below those that the system gives to clients.
_PORTS: Final = range(20_000, 32_000, 2)
_OBJECT_STORE_BYTES: Final = 100_000_000
_START: Final = re.compile(r"ray start [^;&|]*")
_SECONDS: Final = 10


def is_ray_node(pod: Json) -> bool:
    """Whether a pod is a head or a worker of a RayCluster."""
    return _NODE_TYPE in labels_of(pod)


def head_name(pod: Json) -> str:
    """The name, with its namespace, of the Service of a node's head."""
    return f"{labels_of(pod).get(_CLUSTER)}-head-svc.{namespace_of(pod)}"


def temporary_folder(pod: Json) -> Path:
    """The folder of a head's session; short, because a socket's path has 107 characters at most."""
    return Path(tempfile.gettempdir()) / f"holdfast-ray-{_digest(pod)[:8]}"


def forget(pod: Json) -> None:
    """Remove what a node has left outside of its folder."""
    shutil.rmtree(temporary_folder(pod), ignore_errors=True)


def on_shared_machine(text: str, pod: Json, address: str) -> str:
    """A text of a node's containers or probes with the node's own ports, and with the address of its head for localhost."""
    agent = _PORTS[int(_digest(pod), 16) % len(_PORTS)]

    def started(found: re.Match[str]) -> str:
        words = re.sub(
            r"--dashboard-agent-listen-port=\d+", f"--dashboard-agent-listen-port={agent}", found[0]
        )
        words = re.sub(r"--metrics-export-port=\d+", f"--metrics-export-port={agent + 1}", words)
        words = re.sub(r"--dashboard-host=\S+", f"--dashboard-host={address}", words).rstrip()
        words += (
            f" --node-ip-address={address} --object-store-memory={_OBJECT_STORE_BYTES} --disable-usage-stats"
        )
        return (
            f"{words} --temp-dir={temporary_folder(pod)} --include-log-monitor=false"
            if "--head" in words
            else words
        )

    changed = _START.sub(started, text).replace("localhost:52365", f"127.0.0.1:{agent}")
    # Ray takes 127.0.0.1 for the address of the machine in its network.
    return re.sub(r"(?:localhost|127\.0\.0\.1):(8265|6379)", rf"{address}:\1", changed)


def _digest(pod: Json) -> str:
    return hashlib.sha256(uid_of(pod).encode()).hexdigest()


def dashboard_of(head: Json) -> str | None:
    """The address of a head that runs as processes, None of one that is simulated."""
    shown = str(mapping(head.get("status")).get("podIP") or "")
    return f"127{shown.removeprefix('10')}" if labels_of(head).get(RUNS.key) == RUNS.value and shown else None


def forwarded(address: str, port: int, method: str, target: str, body: bytes) -> tuple[int, bytes]:
    """The status and the body of a dashboard's answer; 502 if there is none."""
    connection = HTTPConnection(address, port, timeout=_SECONDS)
    try:
        connection.request(method, target, body or None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException) as error:
        return 502, str(error).encode()
    finally:
        connection.close()
