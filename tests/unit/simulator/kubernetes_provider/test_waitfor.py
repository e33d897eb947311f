"""A program's own conditions are waited for as they are written."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.waitfor import custom_rule

READY: Json = {"status": {"phase": "Running", "size": 3, "conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("condition=Ready", True),
        ("condition=Ready=False", False),
        ("condition=Drained", False),
        ("jsonpath={.status.phase}=Running", True),
        ("jsonpath={.status.phase}=Pending", False),
        ("jsonpath={.status.size}=3", True),
        ("jsonpath={.status.phase}", True),
        ("jsonpath={.status.gone}", False),
        ('["condition=Ready", "jsonpath={.status.phase}=Running"]', True),
        ('["condition=Ready", "jsonpath={.status.phase}=Pending"]', False),
    ],
)
def test_a_condition_holds_as_written(text: str, holds: bool) -> None:
    assert custom_rule(text)(READY).is_ready is holds, f"{text} is misjudged"


@pytest.mark.parametrize("text", ["Ready", "jsonpath={.status[0]}", "jsonpath={..phase}=x"])
def test_what_cannot_be_judged_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(RehearsalError, match=r"condition=<type>"):
        custom_rule(text)
