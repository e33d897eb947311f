"""What rules work out of a stack is worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.stack import Stack, once
from tests.support.stack_resources import compliant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource


def test_what_several_rules_ask_for_is_worked_out_for_the_first_of_them() -> None:
    asked: list[int] = []

    @once
    def count(resources: Sequence[StackResource]) -> int:
        asked.append(1)
        return len(resources)

    stack = Stack(compliant())
    assert (count(stack), count(stack)) == (4, 4), "both are told"
    assert len(asked) == 1, "it is the same stack"
    assert count(Stack(compliant()[:1])) == 1, "another stack is another answer"


def test_a_list_of_resources_keeps_nothing() -> None:
    resources = compliant()
    counted = once(len)
    assert counted(resources) == 4, "a list may change, and its answer with it"
    resources.pop()
    assert counted(resources) == 3, "so it is worked out anew"
