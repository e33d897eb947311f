"""The judgements of jobs: each job is judged once for what it and its ladder say, one job at a time, and namespaces take turns.

A judgement takes a few requests. No reconciliation waits for one: the job is reconciled again when it is there. An error of the
API server leaves the job unjudged, and it is judged again later.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pulumi_holdfast.controller.jobs.cached_objects import CachedPolicy
from pulumi_holdfast.controller.jobs.judgement import NotAnswered, Verdict, digest_of, judge, left_on_spot
from pulumi_holdfast.controller.jobs.observation import Judgement
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.kube.client import (
    ApiError,
    Backoff,
    Client,
    Kind,
    LeadershipLost,
    Unreachable,
)
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, metadata_of
from pulumi_holdfast.controller.kube.work_queue import WorkQueue
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import EXCLUSIVE_TOPOLOGY, FOLLOWS, FOLLOWS_VALUE
from pulumi_holdfast.ladder.ladder import Policy

_log = logging.getLogger(__name__)

#: The longest time that the dry runs of one job may take.
_MOST_SECONDS: Final = 60.0
#: After an error, and while the API server refuses a pod of a job, the job is judged again, in at most this time.
_MOST_RETRY_SECONDS: Final = 300.0


@dataclass(kw_only=True)
class _Entry:
    """What is known of one job: what was judged, the result, and what the next judgement needs.

    `version` is that of the job and the ladder when they were compared last: most reconciliations find the same one.
    """

    digest: str
    job: Json
    policy: CachedPolicy
    asks: bool
    version: tuple[object, ...] | None = None
    judgement: Judgement | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(first=2.0, most=_MOST_RETRY_SECONDS))


class Judgements:
    """Judges jobs. Used from one event loop; `changed` is called with a job that has a new judgement.

    Only the leader runs it.
    """

    def __init__(self, client: Client, changed: Callable[[JobKey], None]) -> None:
        self._client = client
        self._changed = changed
        self._entries: dict[JobKey, _Entry] = {}
        self._waiting = WorkQueue[JobKey](group=lambda key: key.namespace)

    def of(self, key: JobKey, job: Json, policy: CachedPolicy | None, *, is_new: bool) -> Judgement | None:
        """Return the judgement of a job, None if it is not judged yet: it is queued then.

        Of a job that is not `is_new` the pods were created before, so the API server is not asked.
        """
        if policy is None or not isinstance(policy.policy, Policy):
            self.forget(key)
            return None
        if labels_of(job).get(FOLLOWS) != FOLLOWS_VALUE:
            self.forget(key)
            return Judgement(on_spot=left_on_spot(job, policy.tiers))
        entry = self._entries.get(key)
        version = _version(job, policy)
        if entry is not None and entry.version == version is not None:
            return entry.judgement
        digest = digest_of(job, policy.tiers_text)
        if entry is None or entry.digest != digest:
            self._entries[key] = entry = _Entry(digest=digest, job=job, policy=policy, asks=is_new)
            self._waiting.add(key)
        entry.version = version
        return entry.judgement

    def forget(self, key: JobKey) -> None:
        """Remove a job that is deleted, or that follows no ladder."""
        self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)

    async def run(self) -> None:
        """Judge the jobs that wait, one after the other, until canceled."""
        while True:
            key = await self._waiting.get()
            try:
                await self._judge(key)
            finally:
                self._waiting.done(key)

    async def _judge(self, key: JobKey) -> None:
        entry = self._entries.get(key)
        if entry is None:
            return
        found = await self._verdict(key, entry)
        if self._entries.get(key) is not entry:
            return  # the job has changed meanwhile, and is queued again
        if found is None or found.is_refused:
            seconds = entry.backoff.seconds()
            asyncio.get_running_loop().call_later(seconds, self._again, key, entry)
        if found is not None and found.judgement != entry.judgement:
            entry.judgement = found.judgement
            self._changed(key)

    async def _verdict(self, key: JobKey, entry: _Entry) -> Verdict | None:
        """Return what is found, None if the API server does not answer."""

        async def dry_run(kind: Kind, obj: Json) -> Json:
            return await self._client.dry_run(kind, key.namespace, obj)

        try:
            async with asyncio.timeout(_MOST_SECONDS):
                return await judge(entry.job, entry.policy.tiers, dry_run if entry.asks else None)
        except (NotAnswered, Unreachable, LeadershipLost, TimeoutError, ApiError) as error:
            _log.info("not judged yet: %s", error, extra={"job": "/".join(key)})
        except Exception:  # noqa: BLE001  # a job that cannot be judged must not stop the others
            _log.exception("judging a job failed", extra={"job": "/".join(key)})
        return None

    def _again(self, key: JobKey, entry: _Entry) -> None:
        if self._entries.get(key) is entry:
            self._waiting.add(key)


def _version(job: Json, policy: CachedPolicy) -> tuple[object, ...] | None:
    """Return what changes with each change of a job's spec or its ladder; None if the job has no generation."""
    metadata = metadata_of(job)
    generation = metadata.get("generation")
    exclusive = annotations_of(job).get(EXCLUSIVE_TOPOLOGY)
    return (
        None
        if generation is None
        else (metadata.get("uid"), generation, exclusive, policy.uid, policy.generation)
    )
