"""Two replicas never lead at the same time, whatever happens to their requests."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pulumi_holdfast.controller.kube.client import LEASE, POD, ApiError, Client, LeadershipLost, Unreachable
from pulumi_holdfast.controller.kube.leader_election import (
    DURATION_SECONDS,
    RENEW_SECONDS,
    Fence,
    LeaderElectionConfig,
    LeaderElector,
    LeaseRecord,
    ObservedLease,
    acquired_lease,
    released_lease,
)
from pulumi_holdfast.ladder.json import Json
from tests.support.coroutines import until, virtually
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.fakes.faulty_connection import FaultyConnection
from tests.support.json_objects import obj


@dataclass
class Replica:
    """A candidate with a way of its own to the server."""

    api: FakeApi
    name: str
    lost: bool = False
    terms: int = 0
    fence: Fence = field(init=False)
    task: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self.fence = Fence(asyncio.get_running_loop().time)
        connection = FaultyConnection(self.api)
        connection.fault = lambda _method, _path: "lose" if self.lost else "pass"
        self.client = Client(connection, may_write=self.fence.seconds_left)
        election = LeaderElector(
            self.client, LeaderElectionConfig(namespace="ns", name="lease", identity=self.name), self.fence
        )
        self.task = asyncio.create_task(election.run(self._lead))

    async def _lead(self) -> None:
        self.terms += 1
        await asyncio.Event().wait()

    async def end(self) -> None:
        """End as on SIGTERM."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@virtually
async def test_a_lost_renewal_response_does_not_end_leadership() -> None:
    api = FakeApi()
    only = Replica(api, "only")
    await until(lambda: only.fence.is_open)
    lost = iter([True, False, True, False, True])
    arrives = api.request

    async def lose_answer(method: str, path: str, **given: Any) -> Json:
        answer = await arrives(method, path, **given)
        if method == "PUT" and next(lost, False):
            raise Unreachable("fake", "the answer was lost")
        return answer

    api.request = lose_answer
    await asyncio.sleep(60)
    assert only.fence.is_open
    assert only.terms == 1
    await only.end()


@virtually
async def test_a_lease_that_another_replica_overwrites_ends_leadership() -> None:
    api = FakeApi()
    only = Replica(api, "only")
    await until(lambda: only.fence.is_open)
    lease = api.get(LEASE, "ns", "lease")
    assert lease is not None
    await api.put(LEASE, {**lease, "spec": {**lease["spec"], "holderIdentity": "intruder"}})
    await until(lambda: not only.fence.is_open, seconds=5)
    assert await until(lambda: only.fence.is_open) >= 10
    await only.end()


@virtually
async def test_a_write_times_out_with_the_leadership() -> None:
    api = FakeApi()
    only = Replica(api, "only")
    await until(lambda: only.fence.is_open)
    await only.client.create(POD, "ns", {"metadata": {"name": "p"}})
    assert api.sent[-1].seconds <= RENEW_SECONDS, "a request that hangs must not arrive in another's term"
    await only.end()
    with pytest.raises(LeadershipLost):
        await only.client.delete(POD, "ns", "p", uid="uid-of-p")
    assert api.get(POD, "ns", "p") is not None
    assert (await only.client.get(POD, "ns", "p"))["metadata"]


@virtually
async def test_a_throttled_client_sends_only_lease_requests() -> None:
    api = FakeApi()
    only = Replica(api, "only")
    await until(lambda: only.fence.is_open)

    def throttle(sent: Sent) -> None:
        if sent.method == "POST" and "pods" in sent.path:
            raise ApiError(429, "TooManyRequests", "slow down", retry_after_seconds=20)

    api.fail = throttle
    clock = asyncio.get_running_loop().time
    with pytest.raises(ApiError):
        await only.client.create(POD, "ns", {"metadata": {"name": "p"}})
    began = clock()
    await only.client.page(POD)
    assert clock() - began == pytest.approx(20, abs=0.1)
    assert only.fence.is_open
    await only.end()


@pytest.mark.parametrize("seed", range(15))
@virtually
async def test_two_replicas_never_lead_whatever_requests_are_lost(seed: int) -> None:
    chance = random.Random(seed)

    api = FakeApi()
    replicas = [Replica(api, f"r{number}") for number in range(3)]
    led = 0
    for _ in range(400):
        await asyncio.sleep(chance.uniform(0.1, 2))
        leading = [each for each in replicas if each.fence.is_open]
        assert len(leading) <= 1, f"{[each.name for each in leading]} lead at once"
        led += len(leading)
        unlucky = chance.choice(replicas)
        unlucky.lost = chance.random() < 0.3
    assert led > 100
    for each in replicas:
        each.lost = False
    for each in replicas:
        await each.end()
    assert obj(obj(api.get(LEASE, "ns", "lease"))["spec"])["holderIdentity"] == ""


AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
TERM = LeaseRecord(
    holder="other",
    renewed="2026-11-21T11:59:59.000000Z",
    acquired="2026-11-21T11:00:00.000000Z",
    transitions=3,
    duration_seconds=15,
    version="7",
)


def test_a_lease_is_taken_when_it_has_not_changed_for_as_long_as_it_lasts() -> None:
    seen = ObservedLease(term=TERM, since=100).then(TERM, 110)
    assert not seen.may_take("me", 114.9), "15 s have not passed since it was first seen"
    assert seen.may_take("me", 115)
    seen = ObservedLease(term=TERM, since=0)
    for second in range(1, 100):
        seen = seen.then(replace(TERM, renewed=f"renewal {second}"), float(second * 10))
        assert not seen.may_take("me", second * 10 + 5)
    ahead = replace(TERM, renewed="2036-01-01T00:00:00.000000Z")
    seen = ObservedLease(term=ahead, since=0)
    assert not seen.may_take("me", 10)
    assert seen.may_take("me", 15)


def test_a_lease_without_another_holder_is_free_at_once() -> None:
    free = LeaseRecord.of(released_lease("ns", "lease", TERM, AT))
    assert ObservedLease(term=free, since=0).may_take("me", 0)
    assert ObservedLease(term=replace(TERM, holder="me"), since=0).may_take("me", 0)
    assert ObservedLease(term=LeaseRecord.of({}), since=0).may_take("me", 0)


def test_a_lease_is_taken_under_its_version_and_a_renewal_changes_only_the_time() -> None:
    lease = acquired_lease("ns", "lease", "me", TERM, AT)
    assert obj(lease["metadata"])["resourceVersion"] == "7"
    assert LeaseRecord.of(lease).transitions == 4
    assert LeaseRecord.of(lease).acquired == "2026-11-21T12:00:00.000000Z"
    first = LeaseRecord.of(acquired_lease("ns", "lease", "me", None, AT))
    again = LeaseRecord.of(
        acquired_lease("ns", "lease", "me", replace(first, version="8"), AT.replace(minute=1))
    )
    assert replace(again, renewed=first.renewed, version=first.version) == first
    assert again.renewed != first.renewed


def test_a_leader_stops_writing_well_before_another_may_begin() -> None:
    assert RENEW_SECONDS + 5 <= DURATION_SECONDS
