"""Lets the engine run policy packs without its language host."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

_LAUNCHER = "pulumi-analyzer-policy-python"
_BIN = Path(__file__).parent / "bin"


def with_policy_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the engine finds a launcher of Python packs.

    The engine's own comes first where it is installed; ours then is not on the path.
    """
    path = environment.get("PATH", "")
    if shutil.which(_LAUNCHER, path=path):
        return dict(environment)
    return {**environment, "PATH": f"{_BIN}:{path}", "REHEARSAL_PYTHON": sys.executable}
