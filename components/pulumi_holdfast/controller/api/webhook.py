"""Notifies people through a webhook that accepts Slack's JSON: about moves, deadlines that will be missed, and jobs given up.

Notifications must not delay jobs: they wait in a short queue of their own, are retried for some minutes and then
dropped. The URL is a secret. It is read from a file for each delivery, and is never logged.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp

from pulumi_holdfast.controller.api.addresses import ADDRESSES, address_fault
from pulumi_holdfast.controller.api.backoff import Backoff
from pulumi_holdfast.controller.api.event_recorder import ObjectEvent
from pulumi_holdfast.controller.state_machine.events import EventReason
from pulumi_holdfast.ladder.errors import Problem

#: The reasons of Events that people are notified about.
NOTIFIED: Final = frozenset(
    {EventReason.MOVED, EventReason.MOVED_AWAY, EventReason.DEADLINE_MISSED, EventReason.GIVEN_UP}
)

# An outage that moves more jobs than this is known by then.
_WAITING: Final = 200
_ATTEMPTS: Final = 6
_FIRST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 60.0
_TIMEOUT_SECONDS: Final = 10.0
_MOST_CHARACTERS: Final = 2000

_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_SUCCESS: Final = range(200, 300)

_ALLOWED: Final = (
    "the address of a webhook, such as https://hooks.slack.com/services/..., or http:// to this machine"
)

_log = logging.getLogger(__name__)


def slack_message(said: ObjectEvent) -> dict[str, str]:
    """Return the JSON of a notification."""
    subject = said.subject
    text = f"{subject.kind.name} {subject.namespace}/{subject.name}: {said.reason}\n{said.message}"
    for character, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, escaped)
    return {"text": text[:_MOST_CHARACTERS]}


class _Refused(Exception):  # noqa: N818 - says what is wrong
    """The notification cannot be delivered, however often it is sent."""


class _Unavailable(Exception):  # noqa: N818 - says what is wrong
    """The notification was not delivered; `retry_after` is the server's wish in seconds, if it has one."""

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class WebhookNotifier:
    """Queues notifications, and sends them while `run` runs. `url_file` has the URL; None turns notifications off.

    `sent` is called with the result of each notification. `backoff` makes the waits between the attempts of one.
    """

    def __init__(
        self,
        url_file: Path | None,
        *,
        sent: Callable[[bool], None] = lambda _: None,
        backoff: Callable[[], Backoff] = lambda: Backoff(first=_FIRST_SECONDS, most=_MOST_SECONDS),
    ) -> None:
        self._url_file = url_file
        self._sent = sent
        self._backoff = backoff
        self._waiting: deque[ObjectEvent] = deque(maxlen=_WAITING)
        self._filled = asyncio.Event()

    def notify(self, said: ObjectEvent) -> None:
        """Queue a notification if people are notified about such Events; the oldest is dropped if the queue is full."""
        if self._url_file is None or said.reason not in NOTIFIED:
            return
        if len(self._waiting) == _WAITING:
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
