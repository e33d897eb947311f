"""At which write the controller dies."""

from __future__ import annotations

import pytest

from tests.soak.fault_proxy.proxy import Asked, Fate
from tests.soak.faults.injection import DeadlyWrite

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/train/jobsets/one"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/one"


def asked(method: str = "PATCH", path: str = JOBSETS) -> Asked:
    """A write to a job."""
    return Asked(method=method, path=path, watch=False)


def deaths(deadly: DeadlyWrite, write: int, *, is_done: bool = True) -> list[str]:
    """The deaths there will have been, for the write at which one is wanted."""
    died: list[str] = []
    deadly.kill_at(write, lambda: died.append("it"), is_done=is_done)
    return died


def test_nobody_dies_who_was_not_to() -> None:
    assert DeadlyWrite().fate(asked()) is Fate.PASS, "every request goes on"


@pytest.mark.parametrize(("is_done", "fate"), [(True, Fate.LOSE_ANSWER), (False, Fate.LOSE)])
def test_it_dies_once_at_the_write_that_was_named(is_done: bool, fate: Fate) -> None:
    deadly = DeadlyWrite()
    died = deaths(deadly, 2, is_done=is_done)
    assert [deadly.fate(asked()) for _ in range(4)] == [Fate.PASS, fate, Fate.PASS, Fate.PASS], (
        "the second alone"
    )
    assert died == ["it"], "and once"
    assert not deadly.spare(), "nobody is left to die"


@pytest.mark.parametrize(
    "harmless", [asked(method="GET"), asked(path=LEASES), asked(path="/api/v1/namespaces/train/events")]
)
def test_reads_leases_and_events_do_not_count(harmless: Asked) -> None:
    deadly = DeadlyWrite()
    died = deaths(deadly, 1)
    assert deadly.fate(harmless) is Fate.PASS, "it goes on"
    assert not died, "and nobody dies at it"


def test_whoever_is_spared_dies_at_no_write() -> None:
    deadly = DeadlyWrite()
    died = deaths(deadly, 1)
    assert deadly.spare(), "somebody would have died"
    assert deadly.fate(asked()) is Fate.PASS, "the write goes on"
    assert not died, "and nobody dies at it"
