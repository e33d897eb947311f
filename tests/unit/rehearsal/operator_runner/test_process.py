"""A process writes a log, exits on request, and dies with the operator runner."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from pulumi_holdfast.rehearsal.operator_runner import launch


def test_process_dies_with_a_killed_parent(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    host = (
        "import subprocess, sys, os, time\n"
        f"p = subprocess.Popen([sys.executable, '-S', {launch.__file__!r}, str(os.getpid()), sys.executable, '-S', '-c', {child!r}])\n"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", host], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        orphan = psutil.Process(int(parent.stdout.readline()))
        while "time.sleep" not in " ".join(orphan.cmdline()) or "launch" in " ".join(orphan.cmdline()):
            threading.Event().wait(0.01)  # until launch.py has executed the program
        os.kill(parent.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs([orphan], timeout=10)
    assert (gone, alive) == ([orphan], [])
