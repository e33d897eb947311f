"""Serves the pack to Pulumi's engine: `PolicyPack` starts a server in its constructor and never returns."""

import sys
from pathlib import Path

# In a checkout that is not installed, only this folder is on the import path.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from holdfast.policies.pack import policies
from holdfast.policies.server import serve

serve(policies())
