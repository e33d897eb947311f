"""Notifications through a webhook: retried, dropped in the end, never in the way, and their URL in no log."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, cast

import pytest
from aiohttp import web

from pulumi_holdfast.controller.api import webhook
from pulumi_holdfast.controller.api.backoff import Backoff
from pulumi_holdfast.controller.api.client import JOBSET
from pulumi_holdfast.controller.api.event_recorder import InvolvedObject, ObjectEvent
from pulumi_holdfast.controller.api.webhook import NOTIFIED, WebhookNotifier, slack_message
from pulumi_holdfast.controller.state_machine.events import EventReason
from pulumi_holdfast.ladder.json import Json
from tests.support.coroutines import in_event_loop
from tests.support.fakes.http_server import http_server

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


class Sent:
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
async def running(server: Server, folder: Path) -> AsyncGenerator[tuple[WebhookNotifier, Sent]]:
    """A notifier whose waits between attempts are short, and a server that it notifies."""
    async with http_server(server.answer) as address:
        (folder / "url").write_text(f"{address}/{SECRET}\n")
        sent = Sent()
        backoff = partial(Backoff, first=0.001, most=0.001)
        notifier = WebhookNotifier(folder / "url", sent=sent, backoff=backoff)
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
        assert await sent.wait(1) == [True], "the second attempt succeeds"
    assert server.received == [slack_message(event())] * 2, "both say the same"


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
            assert await sent.wait(2) == [False, True], "one that fails does not stop the others"
    assert len(server.received) == attempts + 1, "a refusal is final, an outage of some minutes is not"
    assert "dropped" in caplog.text, "the log says that one is missing"
    assert SECRET not in caplog.text, "the URL is a secret"


@in_event_loop
async def test_a_server_that_does_not_answer_blocks_nothing(tmp_path: Path) -> None:
    server = Server(200)
    server.gate.clear()
    async with running(server, tmp_path) as (notifier, sent):
        for number in range(500):
            notifier.notify(event(message=str(number)))
        assert set(sent.results) <= {False}, "notify returns at once, whatever the server does"
        server.gate.set()
        await sent.wait(500)
        assert sent.results.count(True) >= 200, "the latest ones are kept"
    assert server.received[-1] == slack_message(event(message="499")), "in order"


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
    sent = Sent()
    notifier = WebhookNotifier(file, sent=sent)
    task = asyncio.create_task(notifier.run())
    notifier.notify(event())
    assert await sent.wait(1) == [False], "nothing is sent"
    assert not task.done(), "the controller goes on"
    task.cancel()
    await asyncio.wait([task])
    assert "--webhook-url-file: got " in caplog.text, "the log says why"
    assert "allowed: the address of a webhook" in caplog.text, "and what helps"
    assert SECRET not in caplog.text, "the URL is a secret"


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
    WebhookNotifier(file).check()
    WebhookNotifier(None).check()
    assert len(caplog.records) == said, "before the first job moves; a Secret may come later"
    assert SECRET not in caplog.text, "the URL is a secret"


def test_a_file_of_the_url_that_cannot_be_looked_up_is_named_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    WebhookNotifier(tmp_path / ("x" * 300)).check()
    assert "people will not be notified" in caplog.text, (
        "a folder that cannot be read does not end the controller"
    )


@in_event_loop
async def test_a_notification_that_raises_anything_is_dropped_and_the_next_one_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def message(said: ObjectEvent) -> dict[str, str]:
        if said.message == "lost":
            raise RuntimeError(SECRET)
        return slack_message(said)

    monkeypatch.setattr(webhook, "slack_message", message)
    server = Server(200)
    async with running(server, tmp_path) as (notifier, sent):
        notifier.notify(event(message="lost"))
        notifier.notify(event(message="sent"))
        assert await sent.wait(2) == [False, True], "no message ends the controller's work"
    assert "RuntimeError" in caplog.text, "the log says what it was"
    assert SECRET not in caplog.text, "the text of an error may contain the URL"


@in_event_loop
async def test_only_moves_lateness_and_giving_up_are_notified(tmp_path: Path) -> None:
    server = Server(200)
    async with running(server, tmp_path) as (notifier, sent):
        for reason in EventReason:
            notifier.notify(event(reason))
        await sent.wait(len(NOTIFIED))
    assert len(server.received) == len(NOTIFIED) == 4, "people stop reading a channel that says everything"


def test_a_message_names_the_job_and_escapes_what_slack_would_read_as_a_link() -> None:
    text = slack_message(event(message="<!channel> & more"))["text"]
    assert text == "JobSet vision/train: Moved\n&lt;!channel&gt; &amp; more", (
        "a job's name or message must not notify a whole channel"
    )
