"""The program that `pulumi up` runs."""

# ruff: noqa: E402 - the rest is imported without a garbage collector
import gc
import sys
from pathlib import Path

# The program ends in seconds, and its garbage with it: to look for garbage takes a tenth of its time.
gc.disable()

# `pulumi install` installs the locked packages and not the project, which a checkout imports from its own root.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from holdfast.infra.program import run

run(check_access=True)
