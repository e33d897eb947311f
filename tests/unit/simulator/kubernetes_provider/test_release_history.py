"""The revision to go back to is the last one that helm brought to an end."""

import pytest

from holdfast.simulator.kubernetes_provider.release_history import Revision, last_whole


@pytest.mark.parametrize(
    ("statuses", "whole"),
    [
        ([], None),
        (["pending-install"], None),
        (["deployed", "pending-upgrade"], 1),
        (["superseded", "deployed", "pending-rollback"], 2),
        (["failed", "pending-upgrade"], 1),
    ],
)
def test_interrupted_revisions_are_passed_over(statuses: list[str], whole: int | None) -> None:
    history = [Revision(number=at, status=status) for at, status in enumerate(statuses, start=1)]
    assert last_whole(history) == whole, "the release would be brought to a state it never had"
