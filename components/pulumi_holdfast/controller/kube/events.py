"""Kubernetes Events, and notifications of people through a webhook that accepts Slack's JSON.

Events are aggregated, limited in their rate, and written in the background. Notifications must not delay jobs either: they
wait in a short queue of their own, are retried for some minutes and then dropped. The webhook's URL is a secret. It is read
from a file for each delivery, and is never logged.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp

from pulumi_holdfast.controller.kube.access import ADDRESSES, address_fault
from pulumi_holdfast.controller.kube.client import (
    EVENT,
    ApiError,
    Backoff,
    Client,
    Kind,
    LeadershipLost,
    Unreachable,
)
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import EVENT_COMPONENT

# The cache size of Kubernetes' own recorders.
_REMEMBERED: Final = 4096
# A repeated Event is written this often: often enough to outlive the hour that Events are stored.
REPEAT_SECONDS: Final = 600.0
# How many different Events one object may have at once, and after how many seconds one more: as Kubernetes' own recorders.
_PER_OBJECT: Final = (25, 300.0)
# How many writes of Events, and how many notifications, one namespace may cause: its users choose how many jobs it has.
_EVENTS_PER_NAMESPACE: Final = (500, 1.0)
_NOTIFICATIONS_PER_NAMESPACE: Final = (50, 60.0)

_MOST_CHARACTERS: Final = 1024


@dataclass(frozen=True, kw_only=True)
class InvolvedObject:
    """The object of an Event."""

    kind: Kind
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, kw_only=True)
class ObjectEvent:
    """One occurrence of an Event."""

    subject: InvolvedObject
    reason: str
    message: str
    is_warning: bool


@dataclass(frozen=True, kw_only=True)
class AggregatedEvent:
    """An Event, its count, and its first and last time; `written` is when it was last sent, in seconds of our clock."""

    event: ObjectEvent
    first: datetime
    last: datetime
    count: int = 1
    written: float | None = None

    @property
    def name(self) -> str:
        """The Event's name, the same in every process: an Event from before a restart is counted on."""
        said = self.event
        text = f"{said.subject.uid}\n{said.reason}\n{said.message}"
        # A name has at most 253 characters.
        return f"{said.subject.name[:236]}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class TokenBuckets:
    """For each key a number of tokens: `burst` at first and at most, and one more every `seconds`."""

    def __init__(self, burst: int, seconds: float) -> None:
        self._burst, self._seconds = float(burst), seconds
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> bool:
        """Take a token, and return whether there was one. `now`: seconds of the clock."""
        left, since = self._left.get(key, (self._burst, now))
        left = min(self._burst, left + (now - since) / self._seconds)
        allowed = left >= 1
        self._left[key] = (left - allowed, now)
        self._left.move_to_end(key)
        while len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)
        return allowed


class EventCorrelator:
    """Recent Events: repetitions are counted, and the number of Events per object and per namespace is limited.

    `dropped` is called for each Event beyond that.
    """

    def __init__(self, *, dropped: Callable[[], None] = lambda: None) -> None:
        self._entries: OrderedDict[str, AggregatedEvent] = OrderedDict()
        self._of_objects = TokenBuckets(*_PER_OBJECT)
        self._of_namespaces = TokenBuckets(*_EVENTS_PER_NAMESPACE)
        self._dropped = dropped

    def take(self, said: ObjectEvent, at: datetime, now: float) -> AggregatedEvent | None:
        """Return the Event to write for an occurrence; None for nothing now. `now`: seconds of the clock."""
        fresh = AggregatedEvent(event=said, first=at, last=at)
        known = self._entries.get(fresh.name)
        entry = fresh if known is None else replace(known, last=at, count=known.count + 1)
        is_due = entry.written is None or now - entry.written >= REPEAT_SECONDS
        if is_due and not self._may_write(said.subject, now, is_new=known is None):
            self._dropped()
            return None
        self._keep(replace(entry, written=now) if is_due else entry)
        return entry if is_due else None

    def count_on(self, entry: AggregatedEvent, before: int) -> AggregatedEvent:
        """Return an Event that continues the count of another process, `before`."""
        counted = replace(entry, count=entry.count + before)
        self._keep(
            replace(counted, written=self._entries[entry.name].written)
            if entry.name in self._entries
            else counted
        )
        return counted

    def _keep(self, entry: AggregatedEvent) -> None:
        self._entries[entry.name] = entry
        self._entries.move_to_end(entry.name)
        while len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)

    def _may_write(self, subject: InvolvedObject, now: float, *, is_new: bool) -> bool:
        if is_new and not self._of_objects.take(subject.uid, now):
            return False
        return self._of_namespaces.take(subject.namespace, now)


def event_object(entry: AggregatedEvent, *, instance: str) -> Json:
    """Return the Event to create; `instance` is the replica that reports it."""
    said = entry.event
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"name": entry.name, "namespace": said.subject.namespace},
        "involvedObject": {
            "apiVersion": said.subject.kind.api_version,
            "kind": said.subject.kind.name,
            "namespace": said.subject.namespace,
            "name": said.subject.name,
            "uid": said.subject.uid,
        },
        "reason": said.reason,
        "message": said.message[:_MOST_CHARACTERS],
        "type": "Warning" if said.is_warning else "Normal",
        "source": {"component": EVENT_COMPONENT},
        "reportingComponent": EVENT_COMPONENT,
        "reportingInstance": instance[:128],
        "firstTimestamp": _written(entry.first),
        "lastTimestamp": _written(entry.last),
        "count": entry.count,
    }


def repeat_patch(entry: AggregatedEvent) -> Json:
    """Return the patch of an Event that exists already."""
    return {"count": entry.count, "lastTimestamp": _written(entry.last)}


def _written(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# More Events wait only while the API server accepts none, and then the oldest ones matter least. One namespace cannot fill it.
_WAITING: Final = 2000

_log = logging.getLogger(__name__)


class EventRecorder:
    """Queues Events, and writes them while `run` runs. Events that cannot be written are dropped.

    `written` is called with the result of each write.
    """

    def __init__(
        self, client: Client, *, instance: str, written: Callable[[bool], None] = lambda _: None
    ) -> None:
        self._client = client
        self._instance = instance
        self._written = written
        self._log = EventCorrelator(dropped=lambda: written(False))
        self._waiting: deque[AggregatedEvent] = deque(maxlen=_WAITING)
        self._filled = asyncio.Event()

    def record(self, said: ObjectEvent) -> None:
        """Queue an Event, unless it was written recently."""
        entry = self._log.take(said, datetime.now(UTC), asyncio.get_running_loop().time())
        if entry is not None:
            if len(self._waiting) == _WAITING:
                self._written(False)
            self._waiting.append(entry)
            self._filled.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while self._waiting:
                entry = self._waiting.popleft()
                try:
                    await self._write(entry)
                except LeadershipLost as error:
                    self._drop_all(entry, error)
                except (ApiError, Unreachable) as error:
                    _log.warning("an Event was not written: %s", error, extra={"reason": entry.event.reason})
                    self._written(False)
                except Exception:  # noqa: BLE001  # an Event that cannot be rendered must not stop the moves of jobs
                    _log.exception("writing an Event failed", extra={"reason": entry.event.reason})
                    self._written(False)
                else:
                    self._written(True)
            self._filled.clear()
            await self._filled.wait()

    def _drop_all(self, entry: AggregatedEvent, error: LeadershipLost) -> None:
        """Drop the queued Events too: the new leader reports the current conditions, and one log line is enough."""
        dropped = [entry, *self._waiting]
        self._waiting.clear()
        _log.info("Events dropped: %d: %s", len(dropped), error)
        for _ in dropped:
            self._written(False)

    async def _write(self, entry: AggregatedEvent) -> None:
        namespace = entry.event.subject.namespace
        if entry.count > 1:
            try:
                await self._client.patch(EVENT, namespace, entry.name, repeat_patch(entry))
            except ApiError as error:
                if not error.is_missing:
                    raise
            else:
                return
        try:
            await self._client.create(EVENT, namespace, event_object(entry, instance=self._instance))
        except ApiError as error:
            if not error.is_conflict:
                raise
            known = mapping(await self._client.get(EVENT, namespace, entry.name))
            count = known.get("count")
            counted = self._log.count_on(entry, count if isinstance(count, int) else 1)
            await self._client.patch(EVENT, namespace, entry.name, repeat_patch(counted))


# An outage that moves more jobs than this is known by then.
_MOST_NOTIFICATIONS: Final = 200
_ATTEMPTS: Final = 6
_FIRST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 60.0
_TIMEOUT_SECONDS: Final = 10.0
_LONGEST_NOTIFICATION: Final = 2000

_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_SUCCESS: Final = range(200, 300)

_ALLOWED: Final = (
    "the address of a webhook, such as https://hooks.slack.com/services/..., or http:// to this machine"
)


def slack_message(said: ObjectEvent) -> dict[str, str]:
    """Return the JSON of a notification."""
    subject = said.subject
    text = f"{subject.kind.name} {subject.namespace}/{subject.name}: {said.reason}\n{said.message}"
    for character, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, escaped)
    return {"text": text[:_LONGEST_NOTIFICATION]}


class _Refused(Exception):  # noqa: N818 - says what is wrong
    """The notification cannot be delivered, however often it is sent."""


class _Unavailable(Exception):  # noqa: N818 - says what is wrong
    """The notification was not delivered; `retry_after` is the server's wish in seconds, if it has one."""

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class WebhookNotifier:
    """Queues notifications, and sends them while `run` runs. `url_file` has the URL; None turns notifications off.

    People are notified about Events with the reasons `notified`. `sent` is called with the result of each notification. `backoff` makes the waits between the attempts of one.
    """

    def __init__(
        self,
        url_file: Path | None,
        notified: Collection[str],
        *,
        sent: Callable[[bool], None] = lambda _: None,
        backoff: Callable[[], Backoff] = lambda: Backoff(first=_FIRST_SECONDS, most=_MOST_SECONDS),
    ) -> None:
        self._url_file = url_file
        self._notified = notified
        self._sent = sent
        self._backoff = backoff
        self._waiting: deque[ObjectEvent] = deque(maxlen=_MOST_NOTIFICATIONS)
        self._of_namespaces = TokenBuckets(*_NOTIFICATIONS_PER_NAMESPACE)
        self._filled = asyncio.Event()

    def notify(self, said: ObjectEvent) -> None:
        """Queue a notification if people are notified about such Events.

        One beyond the limit of its namespace is dropped, and the oldest one if the queue is full.
        """
        if self._url_file is None or said.reason not in self._notified:
            return
        if not self._of_namespaces.take(said.subject.namespace, asyncio.get_running_loop().time()):
            self._sent(False)
            return
        if len(self._waiting) == _MOST_NOTIFICATIONS:
            self._sent(False)
        self._waiting.append(said)
        self._filled.set()

    def check(self) -> None:
        """Log a problem of the URL at the start, before the first notification."""
        if self._url_file is None:
            return
        with suppress(OSError):  # as for a folder that cannot be read: the error is logged below
            if not self._url_file.exists():
                return
        try:
            self._url()
        except _Refused as error:
            _log.error("people will not be notified: %s", error)

    async def run(self) -> None:
        """Send until cancelled; a failed notification affects neither others nor the controller."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                while self._waiting:
                    said = self._waiting.popleft()
                    try:
                        await self._deliver(session, said)
                    except Exception as error:  # noqa: BLE001 - a message is worth less than any job
                        # Not its text, which may contain the URL.
                        self._drop(said, f"it cannot be sent ({type(error).__name__})")
                self._filled.clear()
                await self._filled.wait()

    async def _deliver(self, session: aiohttp.ClientSession, said: ObjectEvent) -> None:
        backoff, why = self._backoff(), ""
        for attempt in range(_ATTEMPTS):
            try:
                await self._post(session, said)
            except _Unavailable as error:
                why = str(error)
                if attempt + 1 < _ATTEMPTS:
                    wanted = None if error.retry_after is None else min(error.retry_after, _MOST_SECONDS)
                    await asyncio.sleep(backoff.seconds(wanted))
            except _Refused as error:
                why = str(error)
                break
            else:
                self._sent(True)
                return
        self._drop(said, why)

    def _drop(self, said: ObjectEvent, why: str) -> None:
        _log.warning("a notification was dropped: %s", why, extra={"reason": said.reason})
        self._sent(False)

    async def _post(self, session: aiohttp.ClientSession, said: ObjectEvent) -> None:
        # Not `from error`: the messages of these errors may contain the URL.
        try:
            async with session.post(self._url(), json=slack_message(said), allow_redirects=False) as answer:
                status, wish = answer.status, answer.headers.get("Retry-After", "")
        except (aiohttp.InvalidURL, UnicodeError):
            # A host with an empty or too long label cannot be encoded.
            raise _Refused("the URL of the webhook is invalid") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Unavailable(f"the webhook does not answer ({type(error).__name__})") from None
        if status in _SUCCESS:
            return
        if status == _TOO_MANY or status >= _SERVER_ERROR:
            raise _Unavailable(
                f"the webhook answers with status {status}", float(wish) if wish.isdecimal() else None
            )
        raise _Refused(f"the webhook answers with status {status}")

    def _url(self) -> str:
        if self._url_file is None:
            raise _Refused("there is no webhook")
        try:
            url = self._url_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _Refused(
                _url_problem(self._url_file, f"no readable text ({type(error).__name__})")
            ) from None
        fault = address_fault(url) if url.startswith(ADDRESSES) else "no address that begins with https://"
        if fault is not None:
            raise _Refused(_url_problem(self._url_file, fault))
        return url


def _url_problem(file: Path, value: str) -> str:
    """Return the text of an error. The URL is a secret: `value` says what it is instead."""
    fix = f"Correct the key url of the Secret that is mounted there: {file} is read again for each notification."
    return str(Problem(field="--webhook-url-file", value=value, allowed=_ALLOWED, fix=fix))
