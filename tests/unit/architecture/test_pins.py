"""What is pinned in two places is pinned at one version."""

import re
from pathlib import Path

from holdfast.simulator.tools.catalog import tool_named

PROJECT = Path(__file__).parents[3]


def test_pull_requests_are_previewed_by_the_engine_that_rehearsals_run() -> None:
    workflow = (PROJECT / ".github/workflows/preview.yaml").read_text(encoding="utf-8")
    pinned = re.findall(r"pulumi-version: (\S+)", workflow)
    assert pinned == [str(tool_named("pulumi").pin(PROJECT))], (
        "a plan by another engine than the rehearsed one is another plan"
    )
