"""Repeated Events are counted, their number is limited, and failures do not block the controller."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pulumi_holdfast.controller.api.client import EVENT, JOBSET, ApiError, Client, LeadershipLost
from pulumi_holdfast.controller.api.event_recorder import (
    REPEAT_SECONDS,
    EventCorrelator,
    EventRecorder,
    InvolvedObject,
    ObjectEvent,
    event_object,
)
from tests.support.coroutines import virtually
from tests.support.fakes.api_server import FakeApi, Sent, run_virtually
from tests.support.json_objects import obj

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
SAID = ObjectEvent(
    subject=InvolvedObject(kind=JOBSET, namespace="vision", name="train", uid="u"),
    reason="Moved",
    message="it moved",
    is_warning=False,
)


def test_a_repeated_event_is_counted_and_written_later() -> None:
    log = EventCorrelator()
    first = log.take(SAID, AT, 0)
    assert first is not None, "it is new"
    assert first.count == 1, "recorded once"
    assert log.take(SAID, AT, 1) is None, "it was recorded just now"
    assert log.take(SAID, AT, 2) is None, "and again"
    later = log.take(SAID, AT, REPEAT_SECONDS + 1)
    assert later is not None, "an Event is kept for an hour: it is written before it is forgotten"
    assert later.count == 4, "with all there was meanwhile"
    assert later.name == first.name, "on the same Event"


def test_events_per_object_are_limited() -> None:
    log = EventCorrelator()
    written = [log.take(replace(SAID, message=f"attempt {n}"), AT, 0) for n in range(100)]
    assert sum(entry is not None for entry in written) == 25, "at once"
    assert log.take(replace(SAID, message="one more"), AT, 301) is not None, "and one every five minutes"
    other = replace(SAID, subject=replace(SAID.subject, uid="v"))
    assert log.take(other, AT, 0) is not None, "which takes nothing from the others"


def test_an_event_is_what_kubectl_shows_under_a_name_that_every_process_derives() -> None:
    entry = EventCorrelator().take(replace(SAID, message="x" * 5000, is_warning=True), AT, 0)
    assert entry is not None, "it is new"
    event = event_object(entry, instance="pod_1")
    assert event["type"] == "Warning", "as it was recorded"
    assert len(str(event["message"])) == 1024, "as long as the API server takes"
    assert obj(event["involvedObject"])["uid"] == "u", "about this very job"
    long = replace(SAID, subject=replace(SAID.subject, name="n" * 253))
    names = {
        entry.name
        for entry in (EventCorrelator().take(long, AT, 0), EventCorrelator().take(long, AT, 5))
        if entry
    }
    assert len(names) == 1, "so that a new process counts on"
    assert all(len(name) <= 253 for name in names), "as long as the API server takes"


@virtually
async def test_events_are_counted_on_by_the_next_process() -> None:
    api = FakeApi()
    for process in ("first", "second"):
        recorder = EventRecorder(Client(api), instance=process)
        task = asyncio.create_task(recorder.run())
        recorder.record(SAID)
        recorder.record(SAID)
        await asyncio.sleep(1)
        task.cancel()
    (event,) = api.of(EVENT)
    assert event["count"] == 2, "each process has written it once"


@virtually
@pytest.mark.parametrize("fault", [ApiError(403, "Forbidden", "no"), TypeError("a fault of the recorder")])
async def test_a_failed_event_does_not_block_others(fault: Exception) -> None:
    api = FakeApi()
    written: list[bool] = []

    def refuse_first(sent: Sent) -> None:
        if not written:
            raise fault

    api.fail = refuse_first
    recorder = EventRecorder(Client(api), instance="me", written=written.append)
    task = asyncio.create_task(recorder.run())
    recorder.record(SAID)
    recorder.record(replace(SAID, message="another"))
    await asyncio.sleep(1)
    task.cancel()
    assert written == [False, True], "the first was dropped"


def test_a_replica_that_loses_leadership_drops_its_events_with_one_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")

    async def run() -> None:
        api = FakeApi()
        written: list[bool] = []

        def depose(_: Sent) -> None:
            if not written:
                raise LeadershipLost

        api.fail = depose
        recorder = EventRecorder(Client(api), instance="me", written=written.append)
        for number in range(3):
            recorder.record(replace(SAID, message=f"{number}"))
        task = asyncio.create_task(recorder.run())
        await asyncio.sleep(1)
        assert written == [False] * 3, "all of them are counted as dropped"
        recorder.record(replace(SAID, message="it leads again"))
        await asyncio.sleep(1)
        task.cancel()
        assert written[3:] == [True], "what it has to say later is written"

    run_virtually(run())
    assert [each.getMessage() for each in caplog.records] == [
        "Events dropped: 3: this replica no longer leads: it writes nothing"
    ], "a thousand lines would hide what matters"


@virtually
async def test_a_repeated_event_that_was_deleted_is_created_again() -> None:
    api = FakeApi()
    recorder = EventRecorder(Client(api), instance="me")
    task = asyncio.create_task(recorder.run())
    recorder.record(SAID)
    await asyncio.sleep(REPEAT_SECONDS + 1)
    (event,) = api.of(EVENT)
    await api.drop(EVENT, "vision", event["metadata"]["name"])
    recorder.record(SAID)
    await asyncio.sleep(1)
    task.cancel()
    (again,) = api.of(EVENT)
    assert again["count"] == 2, "the API server had removed it after an hour"
