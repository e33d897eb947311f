"""`holdfast` as a user runs it."""

import subprocess
import sys
from pathlib import Path

from tests.support.control_plane import CHECKOUT


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a project's folder, with nothing of this process's surroundings."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(root: Path, *arguments: str) -> str:
    """What a command says that must fail, in the way in which each has to."""
    ended = command(root, *arguments)
    assert ended.returncode == 1, f"a shell must be able to tell: {ended.stdout}{ended.stderr}"
    assert ended.stderr.startswith("error: "), "an error is called one"
    assert "Traceback" not in ended.stdout + ended.stderr, "a traceback reached the user"
    return ended.stderr
