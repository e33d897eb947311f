"""What whoever leads does beside moving jobs: reports in FallbackPolicies, and what nobody holds any more."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from holdfast.fallback.api.backoff import Backoff
from holdfast.fallback.api.cache import Change
from holdfast.fallback.api.client import FALLBACK_POLICY, ApiError, Client, Deposed, Unreachable
from holdfast.fallback.reconciler.caches import Caches
from holdfast.fallback.reconciler.kept import KeptPolicy
from holdfast.fallback.reconciler.roster import Roster
from holdfast.fallback.reconciler.summary import policy_status
from holdfast.scheduling.labels import LADDER

# Changes come in waves: a summary is for people, who do not read it more often.
SUMMARY_SECONDS: Final = 3.0
# A job that was just created may be shown after what was made for it; and nothing held costs much in this time.
ORPHAN_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class Chore:
    """Does something a while after it was asked for, once for all who asked meanwhile; what fails is done again."""

    def __init__(self, name: str, do: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        self._name = name
        self._do = do
        self._seconds = seconds
        self._wanted = asyncio.Event()
        self._backoff = Backoff(first=seconds)

    def want(self) -> None:
        """Have it done."""
        self._wanted.set()

    async def run(self) -> None:
        """Do it whenever it is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(self._seconds)
            self._wanted.clear()
            try:
                await self._do()
            except (ApiError, Unreachable, Deposed) as error:
                _log.warning("%s, again later: %s", self._name, error)
                self._wanted.set()
                await asyncio.sleep(self._backoff.seconds())
            else:
                self._backoff.succeed()


class Summaries:
    """Keeps the status of each FallbackPolicy that has changed up to date."""

    def __init__(self, client: Client, caches: Caches, roster: Roster) -> None:
        self._client = client
        self._caches = caches
        self._roster = roster
        self._dirty: set[str] = set()

    def changed(self, namespace: str) -> None:
        """Take in that a namespace's jobs or policy have changed."""
        self._dirty.add(namespace)

    def policy_changed(self, change: Change[KeptPolicy]) -> None:
        """Take in that a policy has changed."""
        self._dirty.add(change.name[0])

    async def write(self) -> None:
        """Write what has changed."""
        for namespace in sorted(self._dirty):
            await self._write(namespace)
            self._dirty.discard(namespace)

    async def _write(self, namespace: str) -> None:
        kept = self._caches.policies.get(namespace, LADDER)
        if kept is None:
            return
        status = policy_status(kept.policy, kept.generation, self._roster.in_namespace(namespace))
        if status == kept.status:
            return
        try:
            await self._client.patch(
                FALLBACK_POLICY, namespace, LADDER, {"status": status}, subresource="status"
            )
        except ApiError as error:
            if not error.is_missing:  # the policy has gone since
                raise
