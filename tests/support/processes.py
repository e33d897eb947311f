"""The processes that work in a folder."""

import os

import psutil

from holdfast.simulator.paths import Workspace


def processes_of(workspace: Workspace) -> list[str]:
    """The command lines of every process whose program, argument or folder is of this workspace."""
    root = str(workspace.project_root.resolve())
    found: list[str] = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            words = [*(process.info["cmdline"] or ()), process.cwd()]
            if process.pid != os.getpid() and any(root in word for word in words):
                found.append(" ".join(words))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
