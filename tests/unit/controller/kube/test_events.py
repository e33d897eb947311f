"""Repeated Events are counted, their number is limited, and failures do not block the controller."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, cast

import pytest
from aiohttp import web

from pulumi_holdfast.controller.jobs.actions import NOTIFIED, EventReason
from pulumi_holdfast.controller.kube import events
from pulumi_holdfast.controller.kube.client import EVENT, JOBSET, ApiError, Backoff, Client, LeadershipLost
from pulumi_holdfast.controller.kube.events import (
    REPEAT_SECONDS,
    EventCorrelator,
    EventRecorder,
    InvolvedObject,
    ObjectEvent,
    WebhookNotifier,
    event_object,
    slack_message,
)
from pulumi_holdfast.ladder.json import Json
from tests.support.coroutines import in_event_loop, virtually
from tests.support.fakes.api_server import FakeApi, Sent, run_virtually
from tests.support.fakes.http_server import http_server
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
    assert first is not None
    assert first.count == 1
    assert log.take(SAID, AT, 1) is None
    assert log.take(SAID, AT, 2) is None
    later = log.take(SAID, AT, REPEAT_SECONDS + 1)
    assert later is not None
    assert later.count == 4
    assert later.name == first.name


def test_events_per_object_are_limited() -> None:
    log = EventCorrelator()
    written = [log.take(replace(SAID, message=f"attempt {n}"), AT, 0) for n in range(100)]
    assert sum(entry is not None for entry in written) == 25
    assert log.take(replace(SAID, message="one more"), AT, 301) is not None
    other = replace(SAID, subject=replace(SAID.subject, uid="v"))
    assert log.take(other, AT, 0) is not None


def of(namespace: str, job: int) -> ObjectEvent:
    """An Event about one of many jobs of a namespace."""
    return replace(SAID, subject=replace(SAID.subject, namespace=namespace, uid=f"{namespace}-{job}"))


def test_events_per_namespace_are_limited_and_those_beyond_are_counted() -> None:
    dropped: list[None] = []
    log = EventCorrelator(dropped=lambda: dropped.append(None))
    written = [log.take(of("hostile", job), AT, 0) for job in range(3000)]
    assert sum(entry is not None for entry in written) == 500
    assert len(dropped) == 2500
    assert log.take(of("vision", 1), AT, 0) is not None
    later = [log.take(of("hostile", job), AT, 60) for job in range(3000, 6000)]
    assert sum(entry is not None for entry in later) == 60


def test_an_event_is_what_kubectl_shows_under_a_name_that_every_process_derives() -> None:
    entry = EventCorrelator().take(replace(SAID, message="x" * 5000, is_warning=True), AT, 0)
    assert entry is not None
    event = event_object(entry, instance="pod_1")
    assert event["type"] == "Warning"
    assert len(str(event["message"])) == 1024
    assert obj(event["involvedObject"])["uid"] == "u"
    long = replace(SAID, subject=replace(SAID.subject, name="n" * 253))
    names = {
        entry.name
        for entry in (EventCorrelator().take(long, AT, 0), EventCorrelator().take(long, AT, 5))
        if entry
    }
    assert len(names) == 1, "so that a new process counts on"
    assert all(len(name) <= 253 for name in names)


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
    assert event["count"] == 2


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
    assert written == [False, True]


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
        assert written == [False] * 3
        recorder.record(replace(SAID, message="it leads again"))
        await asyncio.sleep(1)
        task.cancel()
        assert written[3:] == [True]

    run_virtually(run())
    assert [each.getMessage() for each in caplog.records] == [
        "Events dropped: 3: this replica no longer leads: it writes nothing"
    ]


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
    assert again["count"] == 2


SECRET: Final = "T000-B000-XXXX"
SUBJECT: Final = InvolvedObject(kind=JOBSET, namespace="vision", name="train", uid="u")
#: Generous: nothing here takes that long.
LIMIT: Final = 60


def event(reason: str = EventReason.MOVED, message: str = "it moved") -> ObjectEvent:
    return ObjectEvent(subject=SUBJECT, reason=reason, message=message, is_warning=False)


class Server:
    """Answers with these statuses in order, the last one from then on; 0 closes the connection."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)
        self.received: list[Json] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, request: web.Request) -> web.Response:
        await self.gate.wait()
        self.received.append(cast("Json", await request.json()))
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        if not status and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 500, headers={"Retry-After": "0"})


class Results:
    """The results of notifications; `wait` returns when there are so many."""

    def __init__(self) -> None:
        self.results: list[bool] = []

    def __call__(self, well: bool) -> None:
        self.results.append(well)

    async def wait(self, number: int) -> list[bool]:
        async with asyncio.timeout(LIMIT):
            while len(self.results) < number:
                await asyncio.sleep(0)
        return self.results


@asynccontextmanager
async def running(server: Server, folder: Path) -> AsyncGenerator[tuple[WebhookNotifier, Results]]:
    """A notifier whose waits between attempts are short, and a server that it notifies."""
    async with http_server(server.answer) as address:
        (folder / "url").write_text(f"{address}/{SECRET}\n")
        sent = Results()
        backoff = partial(Backoff, first=0.001, most=0.001)
        notifier = WebhookNotifier(folder / "url", NOTIFIED, sent=sent, backoff=backoff)
        task = asyncio.create_task(notifier.run())
        try:
            yield notifier, sent
        finally:
            server.gate.set()
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.parametrize("first", [500, 429, 503, 0])
@in_event_loop
async def test_a_failed_notification_is_sent_again(first: int, tmp_path: Path) -> None:
    server = Server(first, 200)
    async with running(server, tmp_path) as (notifier, sent):
        notifier.notify(event())
        assert await sent.wait(1) == [True]
    assert server.received == [slack_message(event())] * 2


@pytest.mark.parametrize(("status", "attempts"), [(500, 6), (404, 1), (302, 1)])
@in_event_loop
async def test_a_notification_that_cannot_be_delivered_is_dropped_and_the_next_one_sent(
    status: int, attempts: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(*[status] * attempts, 200)
    async with running(server, tmp_path) as (notifier, sent):
        with caplog.at_level(logging.DEBUG):
            notifier.notify(event(message="lost"))
            notifier.notify(event(message="sent"))
            assert await sent.wait(2) == [False, True]
    assert len(server.received) == attempts + 1
    assert "dropped" in caplog.text
    assert SECRET not in caplog.text


@in_event_loop
async def test_a_server_that_does_not_answer_blocks_nothing(tmp_path: Path) -> None:
    server = Server(200)
    server.gate.clear()
    async with running(server, tmp_path) as (notifier, sent):
        for number in range(500):
            notifier.notify(replace(of(f"team-{number % 10}", number), reason=EventReason.GIVEN_UP))
        assert set(sent.results) <= {False}
        server.gate.set()
        await sent.wait(500)
        assert sent.results.count(True) >= 200
    assert "team-9/" in str(server.received[-1])


@in_event_loop
async def test_notifications_per_namespace_are_limited(tmp_path: Path) -> None:
    server = Server(200)
    async with running(server, tmp_path) as (notifier, sent):
        for number in range(300):
            notifier.notify(replace(of("hostile", number), reason=EventReason.GIVEN_UP))
        notifier.notify(event())
        await sent.wait(301)
        assert sent.results.count(False) == 250
    assert server.received[-1] == slack_message(event())


@pytest.mark.parametrize(
    "content",
    [
        "",
        "http://hooks.example.com/T000-B000-XXXX",
        "nonsense",
        None,
        "https://hooks..slack.com/T000-B000-XXXX",
        f"https://{'a' * 64}.com/T000-B000-XXXX",
        "https://.com/T000-B000-XXXX",
        "https://hooks.slack.com:99999/T000-B000-XXXX",
    ],
)
@in_event_loop
async def test_a_missing_or_insecure_url_is_reported_without_it(
    content: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_text(content)
    sent = Results()
    notifier = WebhookNotifier(file, NOTIFIED, sent=sent)
    task = asyncio.create_task(notifier.run())
    notifier.notify(event())
    assert await sent.wait(1) == [False]
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert "--webhook-url-file: got " in caplog.text
    assert "allowed: the address of a webhook" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("https://hooks..slack.com/T000-B000-XXXX", 1),
        ("https://hooks.slack.com/T000-B000-XXXX", 0),
        (None, 0),
    ],
)
def test_a_wrong_url_is_named_at_the_start(
    content: str | None, said: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_text(content)
    WebhookNotifier(file, NOTIFIED).check()
    WebhookNotifier(None, NOTIFIED).check()
    assert len(caplog.records) == said
    assert SECRET not in caplog.text


def test_a_file_of_the_url_that_cannot_be_looked_up_is_named_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    WebhookNotifier(tmp_path / ("x" * 300), NOTIFIED).check()
    assert "people will not be notified" in caplog.text


@in_event_loop
async def test_a_notification_that_raises_anything_is_dropped_and_the_next_one_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def message(said: ObjectEvent) -> dict[str, str]:
        if said.message == "lost":
            raise RuntimeError(SECRET)
        return slack_message(said)

    monkeypatch.setattr(events, "slack_message", message)
    server = Server(200)
    async with running(server, tmp_path) as (notifier, sent):
        notifier.notify(event(message="lost"))
        notifier.notify(event(message="sent"))
        assert await sent.wait(2) == [False, True]
    assert "RuntimeError" in caplog.text
    assert SECRET not in caplog.text


@in_event_loop
async def test_only_moves_lateness_and_giving_up_are_notified(tmp_path: Path) -> None:
    server = Server(200)
    async with running(server, tmp_path) as (notifier, sent):
        for reason in EventReason:
            notifier.notify(event(reason))
        await sent.wait(len(NOTIFIED))
    assert len(server.received) == len(NOTIFIED) == 3


def test_a_message_names_the_job_and_escapes_what_slack_would_read_as_a_link() -> None:
    text = slack_message(event(message="<!channel> & more"))["text"]
    assert text == "JobSet vision/train: Moved\n&lt;!channel&gt; &amp; more"
