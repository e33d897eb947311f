"""Serves the pack to Pulumi's engine: `PolicyPack` starts a server in its constructor and never returns."""

# ruff: noqa: E402 - the rest is imported without a garbage collector
import gc
import sys
from pathlib import Path

# Nothing that is imported becomes garbage: to look for it takes a tenth of the start.
gc.disable()

# In a checkout that is not installed, only this folder is on the import path; a packed pack has the package beside it.
sys.path.append(str(Path(__file__).resolve().parents[1] / "components"))

from pack import policies
from server import serve

gc.freeze()
gc.enable()
serve(policies())
