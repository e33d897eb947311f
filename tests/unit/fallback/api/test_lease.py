"""Whoever holds the Lease leads, and nobody else takes it before it has run out by his own clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from holdfast.fallback.api.leader_election import (
    DURATION_SECONDS,
    RENEW_SECONDS,
    LeaseRecord,
    ObservedLease,
    acquired_lease,
    released_lease,
)
from tests.support.json_objects import obj

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
TERM = LeaseRecord(
    holder="other",
    renewed="2026-11-21T11:59:59.000000Z",
    acquired="2026-11-21T11:00:00.000000Z",
    transitions=3,
    duration_seconds=15,
    version="7",
)


def test_a_lease_that_is_renewed_is_not_taken_however_long_it_lasts() -> None:
    seen = ObservedLease(term=TERM, since=0)
    for second in range(1, 100):
        seen = seen.then(replace(TERM, renewed=f"renewal {second}"), float(second * 10))
        assert not seen.may_take("me", second * 10 + 5), "it was renewed five seconds ago"


def test_a_lease_is_taken_when_it_has_not_changed_for_as_long_as_it_lasts() -> None:
    seen = ObservedLease(term=TERM, since=100).then(TERM, 110)
    assert not seen.may_take("me", 114.9), "15 s have not passed since it was first seen"
    assert seen.may_take("me", 115), "now they have, by our clock alone"


def test_a_clock_that_is_far_off_makes_no_difference() -> None:
    ahead = replace(TERM, renewed="2036-01-01T00:00:00.000000Z")
    seen = ObservedLease(term=ahead, since=0)
    assert not seen.may_take("me", 10), "its holder's clock is ten years ahead, and it is held"
    assert seen.may_take("me", 15), "and is over all the same when nobody renews it"


def test_a_released_lease_is_free_at_once() -> None:
    free = LeaseRecord.of(released_lease("ns", "lease", TERM, AT))
    assert ObservedLease(term=free, since=0).may_take("me", 0), "nobody holds it"


def test_our_own_lease_is_ours() -> None:
    assert ObservedLease(term=replace(TERM, holder="me"), since=0).may_take("me", 0), (
        "an answer that was lost is no loss"
    )


def test_a_lease_changes_hands_under_the_version_that_was_seen() -> None:
    lease = acquired_lease("ns", "lease", "me", TERM, AT)
    assert obj(lease["metadata"])["resourceVersion"] == "7", "of two who take it, the server lets one"
    assert LeaseRecord.of(lease).transitions == 4, "it changed hands"
    assert LeaseRecord.of(lease).acquired == "2026-11-21T12:00:00.000000Z", "now"


def test_a_renewal_changes_nothing_but_the_time() -> None:
    first = LeaseRecord.of(acquired_lease("ns", "lease", "me", None, AT))
    again = LeaseRecord.of(
        acquired_lease("ns", "lease", "me", replace(first, version="8"), AT.replace(minute=1))
    )
    assert replace(again, renewed=first.renewed, version=first.version) == first, "we lead since then"
    assert again.renewed != first.renewed, "and still do"


def test_a_leader_stops_writing_well_before_another_may_begin() -> None:
    assert RENEW_SECONDS + 5 <= DURATION_SECONDS, "what is under way has five seconds to arrive"


def test_a_lease_that_says_nothing_is_nobodys() -> None:
    assert ObservedLease(term=LeaseRecord.of({}), since=0).may_take("me", 0), (
        "an empty one is there to be taken"
    )
