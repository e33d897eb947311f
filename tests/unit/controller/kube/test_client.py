"""Backoffs grow, are spread at random, and respect Retry-After; pages have as many objects as can be read."""

import random

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.kube.client import JOBSET, TOO_LARGE, ApiError, Backoff, Client
from tests.support.coroutines import in_event_loop
from tests.support.fakes.api_server import FakeApi, Sent


@in_event_loop
async def test_pages_are_smaller_after_an_answer_that_is_too_long() -> None:
    def refuse_more_than_four(sent: Sent) -> None:
        if min(int(sent.query["limit"]), 40 - int(sent.query.get("continue", "0"))) > 4:
            raise ApiError(TOO_LARGE, "RequestEntityTooLarge", "too long")

    server = FakeApi(page=500)
    for number in range(40):
        await server.put(JOBSET, {"metadata": {"name": f"job-{number}", "namespace": "vision"}})
    server.fail = refuse_more_than_four
    found = [each async for each in Client(server).each(JOBSET, namespace="vision", labels="")]
    assert len(found) == 40
    assert server.sent[0].query["limit"] == "500"
    assert len(server.sent) < 40


@given(attempts=st.integers(1, 2000), seed=st.integers(0, 100))
def test_a_wait_is_never_longer_than_the_longest_nor_shorter_than_half_of_it(
    attempts: int, seed: int
) -> None:
    backoff = Backoff(first=0.5, most=30, chance=random.Random(seed))
    waits = [backoff.seconds() for _ in range(attempts)]
    for attempt, wait in enumerate(waits):
        meant = min(30, 0.5 * 2 ** min(attempt, 100))
        assert meant / 2 <= wait <= meant, f"wait {attempt} is about {meant} s, shortened at random"


def test_retry_after_is_a_minimum() -> None:
    backoff = Backoff(first=0.1, most=1, chance=random.Random(1))
    waits = {backoff.seconds(5) for _ in range(20)}
    assert min(waits) >= 5
    assert max(waits) <= 7.5
    assert len(waits) > 10


def test_retry_after_is_limited() -> None:
    assert Backoff(chance=random.Random(1)).seconds(999_999) <= 450


def test_a_success_resets_the_backoff() -> None:
    backoff = Backoff(first=0.5, most=30, chance=random.Random(1))
    for _ in range(10):
        backoff.seconds()
    backoff.succeed()
    assert backoff.seconds() <= 0.5
