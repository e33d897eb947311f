"""The rules of a GCP stack's bucket of checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.gcp.config.cluster_rules import key_problem
from holdfast.infra.gcp.config.stack import WayBack
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.stack import GcpCheckpoints

#: Days for which Cloud Storage can keep what was soft-deleted.
_FEWEST_DAYS: Final = 7
_MOST_DAYS: Final = 90


def checkpoint_problems(checkpoints: GcpCheckpoints, region: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a bucket; `region` is None where it is not known."""
    days = checkpoints.retain_days
    if checkpoints.way_back is WayBack.SOFT_DELETE and not _FEWEST_DAYS <= days <= _MOST_DAYS:
        yield Problem(
            field=f"{at}.retainDays",
            value=f"{days} with soft delete",
            allowed=f"{_FEWEST_DAYS} to {_MOST_DAYS}, for which Cloud Storage can keep what was soft-deleted",
            fix=f"Write `retainDays: {min(max(days, _FEWEST_DAYS), _MOST_DAYS)}`, or `wayBack: versioning` beside it.",
        )
    if checkpoints.hierarchical and checkpoints.way_back is WayBack.VERSIONING:
        yield Problem(
            field=f"{at}.wayBack",
            value="versioning with hierarchical: true",
            allowed="soft-delete there: a bucket with real folders keeps no versions, and Cloud Storage FUSE, for which "
            "such folders are made, supports none",
            fix="Write `wayBack: soft-delete`, or leave out hierarchical.",
        )
    if checkpoints.kms_key is not None and region is not None:
        wrong = key_problem(checkpoints.kms_key, region, f"{at}.kmsKey")
        yield from (wrong,) if wrong else ()
