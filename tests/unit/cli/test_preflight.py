"""`holdfast preflight`: its exit code."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pytest

from pulumi_holdfast.cli import preflight
from pulumi_holdfast.config.preflight import QuotaUse


def use(granted: float | None) -> QuotaUse:
    return QuotaUse(
        name="vCPUs", unit="vCPUs", asked=8, least=4, fields=("pools[0]",), increase="ask", granted=granted
    )


@pytest.mark.parametrize(
    ("granted", "code"), [([8], 0), ([6], 0), ([2], 1), ([None], 1), ([8, None], 0)], ids=str
)
def test_a_quota_that_is_too_small_fails_the_command_and_so_does_no_answer_at_all(
    granted: Sequence[float | None], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(file: Path, stack: str, runner: object) -> Sequence[QuotaUse]:
        return [*map(use, granted)]

    monkeypatch.setattr(preflight, "quota_uses", found)
    assert preflight.run(argparse.Namespace(stack="aws-dev")) == code
