"""The program that `pulumi up` runs."""

import sys
from pathlib import Path

# `pulumi install` installs the locked packages and not the project, which a checkout imports from its sources.
sys.path.append(str(Path(__file__).resolve().parents[1] / "components"))

from pulumi_holdfast.stack_program import main

main()
