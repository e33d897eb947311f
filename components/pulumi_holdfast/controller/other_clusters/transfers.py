"""Carries out transfers: reads a job's copy in another cluster, and writes the next step there or at home.

Reads go to the API servers, never to a cache, because a step may depend on the absence of an object. While a cluster does
not answer, the steps that depend on it wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.cached_objects import cached_job
from pulumi_holdfast.controller.jobs.kinds import (
    KIND_OF,
    KINDS,
    current_children,
    current_job,
    current_parts_of_copies,
    current_pods,
)
from pulumi_holdfast.controller.jobs.observation import CopyStatus
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Snapshot, has_ended
from pulumi_holdfast.controller.kube.client import (
    NAMESPACE,
    TOO_LARGE,
    ApiError,
    Client,
    LeadershipLost,
    Unreachable,
)
from pulumi_holdfast.controller.kube.objects import metadata_of, name_of, uid_of
from pulumi_holdfast.controller.other_clusters import copies
from pulumi_holdfast.controller.other_clusters.protocol import (
    CreateCopy,
    DeleteCopy,
    LiveRead,
    RecordOutcome,
    RemoteView,
    SetPermit,
    SuspendAtHome,
    TransferAction,
    TransferRecord,
    WriteRecord,
    decide_leftover,
    decide_transfer,
)
from pulumi_holdfast.controller.state_machine.ledger import includes_copy
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import COPY_OF

_log = logging.getLogger(__name__)

# The controller there writes the last of a copy's ledger when the pods are gone.
_LAST_WRITE: Final = timedelta(seconds=2)
_LONGEST_ACCOUNT: Final = timedelta(seconds=15)
_MISSING: Final = 404


class SomethingRemains(Exception):  # noqa: N818 - says what is wrong
    """An object that must be gone before the step still exists: nothing was written."""


async def cluster_id(client: Client) -> str:
    """Return the identity of a cluster: the uid of its first namespace, which exists as long as the cluster."""
    # Not by its name: the controller may list namespaces, and read none of them.
    async for found in client.each(NAMESPACE, namespace="", labels="kubernetes.io/metadata.name=kube-system"):
        return uid_of(found)
    raise ApiError(_MISSING, "NotFound", "the cluster has no namespace kube-system")


async def _job_there(client: Client, key: JobKey) -> Json | None:
    """Return the object with a job's name in another cluster; its users there may make it too large to be read."""
    found = await current_job(client, key)
    if found is not None and (excess := cached_job(found).excess):
        raise ApiError(TOO_LARGE, "RequestEntityTooLarge", f"the job there is not read. {excess}")
    return found


@dataclass(frozen=True, kw_only=True)
class SeenThere:
    """The objects of a job in another cluster; `status` None without a copy."""

    view: RemoteView
    status: CopyStatus | None


class Transfers:
    """Transfers of the jobs of this cluster. `home_id`: its identity; `remotes`: clients of the other clusters by name.

    `seen` is called with each read of another cluster: None for a cluster that does not answer or refuses the read. `failed`
    is called, in the handler of the error, with each copy that could not be processed.
    """

    def __init__(
        self,
        home: Client,
        remotes: Mapping[str, Client],
        *,
        home_id: str,
        now: Callable[[], datetime],
        seen: Callable[[JobKey, str, SeenThere | None], None] = lambda _key, _cluster, _seen: None,
        failed: Callable[[JobKey], None] = lambda _key: None,
    ) -> None:
        self._seen = seen
        self._failed = failed
        self._home = home
        self._remotes = remotes
        self._home_id = home_id
        self._now = now
        self._ended: dict[str, datetime] = {}

    async def step(self, key: JobKey, *, cluster: str, pool: str = "") -> TransferAction | None:
        """Take the next step of a job that its ladder wants in a pool of a cluster, or at home (empty); return the step.

        Raises ApiError and Unreachable if it fails, SomethingRemains if it must wait for pods. Call it again after each step.
        """
        snapshot = await self._snapshot(key)
        view = copies.home_view(KINDS[key.kind], snapshot, wanted=cluster)
        needed = set(self._remotes) if view.record is None and view.is_held else {cluster}
        needed |= {view.record.cluster} if view.record is not None else set[str]()
        seen = {name: await self._remote(name, key, view.uid) for name in sorted(needed - {""})}
        action = decide_transfer(view, {name: each and each.view for name, each in seen.items()})
        if isinstance(action, RecordOutcome | DeleteCopy) and view.record is not None:
            self._require_account(snapshot.job, seen.get(view.record.cluster))
        if action is not None:
            await self._do(key, snapshot.job, action, view.record, cluster, pool)
        return action

    async def remove_leftovers(self, cluster: str, namespace: str, kind: str) -> None:
        """Take the next step to remove each copy of a kind in a cluster's namespace that no transfer of this cluster's jobs needs.

        Raises ApiError if the copies cannot be listed. A failure affects only that copy, because users there may write any
        object.
        """
        found = self._remotes[cluster].each(KIND_OF[kind], namespace=namespace, labels=COPY_OF)
        async for each in found:
            key = JobKey(kind, namespace, name_of(each))
            try:
                await self._remove_leftover(cluster, key, each)
            except (LeadershipLost, Unreachable):
                raise
            except ApiError as error:
                _log.info("%s: %s", cluster, error, extra={"job": "/".join(key), "status": error.status})
            except Exception:  # noqa: BLE001  # as the text above says
                self._failed(key)

    async def _remove_leftover(self, cluster: str, key: JobKey, found: Json) -> None:
        if copies.home_of(found) != self._home_id:
            return
        uid = copies.origin_of(found)
        seen = await self._remote(cluster, key, uid)
        record = await self._record(key, uid)
        copy = seen.view.copy if seen is not None else None
        action = None if copy is None else decide_leftover(copy, cluster, record)
        if action is not None:
            await self._write_there(self._remotes[cluster], key, action)

    async def _record(self, key: JobKey, uid: str) -> TransferRecord | None:
        """Return the record of the job with this uid; None if there is no such job."""
        job = await current_job(self._home, key)
        return copies.record_of(job) if job is not None and uid_of(job) == uid else None

    async def _snapshot(self, key: JobKey) -> Snapshot:
        job = await self._home.get(KIND_OF[key.kind], key.namespace, key.name)
        children = await current_children(self._home, key)
        pods = await current_pods(self._home, key)
        return Snapshot(job=job, now=self._now(), pods=tuple(pods), children=tuple(children))

    async def _remote(self, cluster: str, key: JobKey, uid: str) -> SeenThere | None:
        """Return the objects of a job in a cluster; None while it does not answer.

        The copy is read before its children, and these before the pods: an object that is gone creates none of those read
        later.
        """
        client = self._remotes.get(cluster)
        if client is None:
            return None
        try:
            found = await _job_there(client, key)
            is_copy = found is not None and copies.origin_of(found) == uid
            children, pods = await current_parts_of_copies(client, key, uid, is_there=is_copy)
        except (ApiError, Unreachable) as error:
            _log.info("%s: %s", cluster, error, extra={"job": "/".join(key)})
            self._seen(key, cluster, None)
            return None
        kind, now = KINDS[key.kind], self._now()
        view = copies.remote_view(kind, found, children, pods, now)
        status = (
            copies.copy_status(kind, found, children, pods, now, cluster=cluster)
            if found and is_copy
            else None
        )
        seen = SeenThere(view=view, status=status)
        self._seen(key, cluster, seen)
        return seen

    async def _do(
        self,
        key: JobKey,
        job: Json,
        action: TransferAction,
        record: TransferRecord | None,
        cluster: str,
        pool: str,
    ) -> None:
        kind = KINDS[key.kind]
        there = record.cluster if record is not None else cluster
        match action:
            case WriteRecord():
                await self._require(action.live_read, key, uid_of(job), there)
                await self._patch(key, copies.record_patch(job, action.record, hold=action.is_held))
            case SuspendAtHome():
                await self._patch(key, copies.suspension_patch(job))
            case RecordOutcome():
                patch = copies.outcome_patch(kind, job, action.outcome, there, self._now())
                await self._patch(key, patch, subresource="status")
            case CreateCopy():
                copy = copies.copy_of(kind, job, home=self._home_id, epoch=action.epoch, pool=pool)
                # An earlier request, or another object, may be first: it is read next.
                await self._remotes[there].create_if_absent(KIND_OF[key.kind], key.namespace, copy)
            case SetPermit() | DeleteCopy():
                await self._write_there(self._remotes[there], key, action)

    def _require_account(self, job: Json, seen: SeenThere | None) -> None:
        """Wait until the job's ledger includes that of its ended copy, but not for a controller that does not run."""
        status = None if seen is None else seen.status
        if status is None or status.ledger is None or metadata_of(job).get("deletionTimestamp"):
            return
        waited = self._now() - self._ended.setdefault(status.uid, self._now())
        is_whole = status.is_closed and includes_copy(copies.ledger_of(job), status)
        if waited < (_LAST_WRITE if is_whole else _LONGEST_ACCOUNT):
            raise SomethingRemains("the job's ledger does not include all that its copy has used")
        self._ended.pop(status.uid)

    async def _require(self, live_read: LiveRead, key: JobKey, uid: str, cluster: str) -> None:
        if live_read is LiveRead.QUIET_AT_HOME:
            left = [name_of(pod) for pod in await current_pods(self._home, key) if not has_ended(pod)]
            if left:
                raise SomethingRemains(f"{len(left)} pods of the job are left, for example {left[0]}")
        if live_read is LiveRead.NOTHING_THERE:
            for name in [cluster] if cluster else sorted(self._remotes):
                seen = await self._remote(name, key, uid)
                copy = None if seen is None else seen.view.copy
                if seen is None or not seen.view.is_clear or (copy is not None and copy.origin == uid):
                    raise SomethingRemains(f"{name} does not answer, or still has a part of the job's copy")

    async def _patch(self, key: JobKey, patch: Json, *, subresource: str | None = None) -> None:
        await self._home.patch(KIND_OF[key.kind], key.namespace, key.name, patch, subresource=subresource)

    async def _write_there(self, client: Client, key: JobKey, action: SetPermit | DeleteCopy) -> None:
        if isinstance(action, SetPermit):
            await client.patch(KIND_OF[key.kind], key.namespace, key.name, copies.permit_patch(action))
        else:
            await client.delete(
                KIND_OF[key.kind], key.namespace, key.name, uid=action.copy, version=action.version
            )
