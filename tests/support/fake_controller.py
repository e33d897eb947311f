"""An operator host whose controllers are a small program that a test can steer."""

import os
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from holdfast.simulator.operator_runner.operator_runner import RunnerLayout, read_record
from tests.support.control_plane import CHECKOUT

# Ready when the mounted file says so; ends, with code 7, when it says that.
PROGRAM = """#!{python}
import http.server, os, pathlib, sys
state = pathlib.Path(os.environ["STATE"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        said = state.read_text()
        if said == "end":
            os._exit(7)
        self.send_response(200 if said == "ready" and self.path == "/readyz" else 503)
        self.end_headers()
print("started as", os.environ["WHO"], flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ["HEALTH_PROBE_PORT"])), Handler).serve_forever()
"""

HOST = """
import asyncio, logging, pathlib, sys
from holdfast.simulator.operator_runner.kubelet import Host
from holdfast.simulator.operator_runner.operator_runner import RunnerLayout
from holdfast.simulator.paths import Workspace
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
root, program = map(pathlib.Path, sys.argv[1:])
asyncio.run(Host(RunnerLayout.of("local", Workspace(project_root=root)), lambda tool: program, lambda node: "[]").run())
"""


@contextmanager
def running_host(layout: RunnerLayout, root: Path) -> Generator[RunnerLayout]:
    """A host, as a process of its own, that runs the program for every controller."""
    layout.folder.mkdir(parents=True, exist_ok=True)
    program = layout.folder / "controller"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(root), str(program)],
        cwd=layout.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    ) as host:
        try:
            while host.poll() is None and read_record(layout.record) is None:
                psutil.wait_procs([psutil.Process(host.pid)], timeout=0.05)
            yield layout
        finally:
            host.terminate()
            host.wait(timeout=60)
