"""Carries out a decision's actions: writes to the job and its pods, and its reservation."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import ClassVar

from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.controller.jobs.actions import (
    Action,
    CreatePlaceholders,
    DeleteChildren,
    DeletePlaceholders,
    ForceDelete,
    Recreate,
    ReleaseReservation,
    RequestCheckpoint,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from pulumi_holdfast.controller.jobs.caches import RESERVED_FOR_UID, Caches
from pulumi_holdfast.controller.jobs.kinds import KIND_OF, current_children, current_pods
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, has_ended, node_of
from pulumi_holdfast.controller.jobs.reservations import (
    PlaceholderRequest,
    orphans,
    placeholder_changes,
    release_patch,
    reserve_patch,
    reserved_for,
)
from pulumi_holdfast.controller.jobs.state import JobState
from pulumi_holdfast.controller.kube.client import (
    JOB,
    NODE,
    POD,
    ApiError,
    Client,
    LeadershipLost,
    Unreachable,
)
from pulumi_holdfast.controller.kube.objects import metadata_of, name_of, text, uid_of
from pulumi_holdfast.controller.loop.observer import JobContext
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import RESERVATION_NAMESPACE
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from pulumi_holdfast.ladder.taints import Taint


class ReservationManager:
    """Creates and deletes placeholders, and taints nodes.

    `image` is the placeholders' image, which does nothing. Nodes are read from the API server: a list of taints is
    replaced as a whole, so a cached one does not suffice.
    """

    def __init__(self, client: Client, caches: Caches, *, image: str) -> None:
        self._client = client
        self._caches = caches
        self._image = image

    async def do(
        self,
        context: JobContext,
        action: CreatePlaceholders | TaintReservedNodes | DeletePlaceholders | ReleaseReservation,
    ) -> None:
        """Carry out one action for one job."""
        uid = context.seen.uid
        match action:
            case CreatePlaceholders():
                await self._hold(context, action)
            case TaintReservedNodes():
                nodes = {name for pod in self._placeholders(uid) if (name := node_of(pod))}
                nodes = {name for name in nodes if not self._is_shared(name, context.key)}
                await self._taint(nodes, uid)
            case DeletePlaceholders():
                await self._drop(uid)
            case ReleaseReservation():
                await self.release(uid)

    def _is_shared(self, node: str, key: JobKey) -> bool:
        """Whether a node has pods of other jobs, whose restarted pods a taint would keep from it."""
        return any(
            other != key and not all(map(has_ended, pods))
            for other, pods in self._caches.pods_on(node).items()
        )

    async def release(self, uid: str) -> None:
        """Delete the placeholders of the job with this uid, then release its nodes."""
        await self._drop(uid)
        for _, name in self._caches.nodes.names(RESERVED_FOR_UID, uid):
            await self._untaint(name, lambda holder: holder == uid)

    async def release_orphans(self) -> None:
        """Release the reservations of jobs that do not exist any more.

        A failure does not prevent the release of the others; the first error is raised at the end.
        """
        caches = self._caches
        found = orphans(caches.placeholders, caches.nodes.all(RESERVED_FOR_UID), caches.has_uid)
        pods = [pod for pod in caches.placeholders if name_of(pod) in found.placeholders]
        errors: list[Exception] = []
        for release in (
            *(partial(self._delete, [pod]) for pod in pods),
            *(
                partial(self._untaint, name, lambda holder: not caches.has_uid(holder))
                for name in found.nodes
            ),
        ):
            try:
                await release()
            except (LeadershipLost, Unreachable):
                raise
            except Exception as error:  # noqa: BLE001  # as the text above says
                errors.append(error)
        if errors:
            raise errors[0]

    async def _hold(self, context: JobContext, action: CreatePlaceholders) -> None:
        request = PlaceholderRequest(
            uid=context.seen.uid,
            job=f"{context.key.kind} {context.key.namespace}/{context.key.name}",
            pool=action.pool,
            shapes=action.shapes,
            taints=_taints_of(action.pool, context.policy),
            image=self._image,
        )
        existing = self._placeholders(context.seen.uid)
        changes = placeholder_changes(request, existing)
        ended = [pod for pod in existing if name_of(pod) in changes.delete]
        await self._delete(ended)
        for pod in changes.create:
            # It may exist already, and not be cached yet.
            await self._client.create_if_absent(POD, RESERVATION_NAMESPACE, pod)

    async def _drop(self, uid: str) -> None:
        await self._delete(self._placeholders(uid))

    async def _delete(self, pods: Iterable[Json]) -> None:
        for pod in list(pods):
            await self._client.delete(
                POD, RESERVATION_NAMESPACE, name_of(pod), uid=uid_of(pod), grace_seconds=0
            )

    async def _taint(self, nodes: Iterable[str], uid: str) -> None:
        for name in sorted(nodes):
            node = await self._client.find(NODE, None, name)
            patch = None if node is None else reserve_patch(node, uid)
            if patch is not None:
                await self._client.patch(NODE, None, name, patch)

    async def _untaint(self, name: str, may_release: Callable[[str], bool]) -> None:
        node = await self._client.find(NODE, None, name)
        holder = None if node is None else reserved_for(node)
        if node is None or (holder is not None and not may_release(holder)):
            return
        patch = release_patch(node)
        if patch is not None:
            await self._client.patch(NODE, None, name, patch)

    def _placeholders(self, uid: str) -> list[Json]:
        return self._caches.placeholders.find(RESERVED_FOR_UID, uid)


def _taints_of(pool: str, policy: Policy | NoPolicy) -> tuple[Taint, ...]:
    tiers = policy.tiers if isinstance(policy, Policy) else ()
    return next((tier.facts.taints for tier in tiers if tier.name == pool), ())


class OutdatedObservation(Exception):  # noqa: N818 - says what is wrong
    """The API server's objects differ from the caches, so the action was not carried out. `reason`: its label in metrics."""

    reason: ClassVar[str]


class PodsRemain(OutdatedObservation):
    """A pod of the job still exists: nothing was resumed."""

    reason = "pods_remain"


class SuspensionIncomplete(OutdatedObservation):
    """A child may still create pods of the old template: nothing was resumed."""

    reason = "suspension_incomplete"


class PodsPlaced(OutdatedObservation):
    """Every pod of the job has a node by now: the job is not suspended for lack of capacity."""

    reason = "pods_placed"


class JobChanged(ApiError):  # noqa: N818 - says what is wrong
    """The job has changed since it was observed: its watch is about to deliver the change."""


class ActionExecutor:
    """Writes decisions. Raises the client's errors; actions that were not carried out are decided again."""

    def __init__(self, client: Client, caches: Caches, holder: ReservationManager) -> None:
        self._client = client
        self._caches = caches
        self._holder = holder

    async def execute(self, context: JobContext, actions: tuple[Action, ...]) -> None:
        """Carry out a decision's actions in order; stops at the first that fails.

        Raises OutdatedObservation if the API server's objects differ from the caches, JobChanged if the job has changed.
        """
        for action in actions:
            context = replace(
                context, snapshot=replace(context.snapshot, job=await self._do(context, action))
            )

    async def _do(self, context: JobContext, action: Action) -> Json:
        """Carry out one action and return the updated job."""
        match action:
            case WriteState():
                patch = patches.state_patch(context.job, write_state(action.state))
                return await self._record(context, patch, action.state)
            case Suspend():
                if action.only_without_nodes:
                    await self._require_pods_without_nodes(context)
                patch = context.kind.suspension(context.job, action, write_state(action.state))
                return await self._record(context, patch, action.state)
            case Resume():
                await self._require_suspended(context, action)
                patch = context.kind.resumption(context.job, action, write_state(action.state))
                return await self._record(context, patch, action.state)
            case RequestCheckpoint():
                return await self._ask(context, action)
            case Recreate():
                return await self._recreate(context, action)
            case DeleteChildren():
                await self._delete_children(context)
            case ForceDelete():
                await self._end_lost(context, action)
            case CreatePlaceholders() | TaintReservedNodes() | DeletePlaceholders() | ReleaseReservation():
                await self._holder.do(context, action)
        return context.job

    async def _record(self, context: JobContext, patch: Json, state: JobState) -> Json:
        return await self._patch(context, patches.with_marks(patch, context.job, state))

    async def _patch(self, context: JobContext, patch: Json) -> Json:
        key = context.key
        try:
            answer = await self._client.patch(KIND_OF[key.kind], key.namespace, key.name, patch)
        except ApiError as error:
            if error.is_conflict:
                raise JobChanged(error.status, error.reason, error.message) from error
            raise
        # The watch delivers it soon; until then no decision may be based on the previous version.
        is_fenced = "resourceVersion" in mapping(patch.get("metadata"))
        self._caches.jobs[key.kind].refresh(answer, is_own=is_fenced)
        return answer

    async def _require_suspended(self, context: JobContext, action: Resume) -> None:
        """Observe the job's children, then its pods, as the API server has them now: suspended Jobs create no pods."""
        children = await current_children(self._client, context.key)
        pods = await current_pods(self._client, context.key)
        left = [name_of(pod) for pod in pods if not has_ended(pod)]
        if left:
            raise PodsRemain(f"{len(left)} pods of the job are left, for example {left[0]}")
        now = replace(context.snapshot, pods=tuple(pods), children=tuple(children))
        seen, _ = context.kind.observe(now, PodHistory())
        is_suspended = (
            seen.children_create_no_pods if action.recreates_children else seen.is_suspension_complete
        )
        if not is_suspended or seen.outdated_children:
            raise SuspensionIncomplete(
                f"of {len(children)} child Jobs, {seen.outdated_children} have another template"
                if seen.outdated_children
                else f"one of {len(children)} children may still create pods, or one is missing"
            )

    async def _require_pods_without_nodes(self, context: JobContext) -> None:
        """Observe the job's pods and their nodes as the API server has them now; the caches may lag behind it."""
        pods = tuple(await current_pods(self._client, context.key))
        nodes = dict(context.snapshot.nodes)
        for name in {node_of(pod) for pod in pods} - {"", *nodes}:
            with suppress(ApiError):
                nodes[name] = await self._client.get(NODE, None, name)
        now = replace(context.snapshot, pods=pods, nodes=nodes)
        seen, _ = context.kind.observe(now, PodHistory())
        if seen.is_placed:
            raise PodsPlaced(f"all {seen.pods_expected} pods of the job have nodes by now")

    async def _delete_children(self, context: JobContext) -> None:
        for child in context.kind.outdated_children(context.snapshot):
            await self._client.delete(
                JOB,
                context.key.namespace,
                name_of(child),
                uid=uid_of(child),
                version=text(metadata_of(child).get("resourceVersion")),
            )

    async def _end_lost(self, context: JobContext, action: ForceDelete) -> None:
        """End pods whose machines are gone, then delete them: a Job waits forever for a pod that only vanishes."""
        for pod in await current_pods(self._client, context.key):
            if name_of(pod) not in action.pods:
                continue
            if not has_ended(pod):
                patch = patches.terminated_pod_status(pod, context.seen.now)
                await self._client.patch(
                    POD, context.key.namespace, name_of(pod), patch, subresource="status"
                )
            await self._client.delete(
                POD, context.key.namespace, name_of(pod), uid=uid_of(pod), grace_seconds=0
            )

    async def _ask(self, context: JobContext, action: RequestCheckpoint) -> Json:
        """Ask each pod, then record the request in the job: in the other order a pod might never receive it."""
        for pod in await current_pods(self._client, context.key):
            if not has_ended(pod):
                patch = patches.checkpoint_request(pod, action.at)
                await self._client.patch(POD, context.key.namespace, name_of(pod), patch)
        return await self._patch(context, patches.checkpoint_request(context.job, action.at))

    async def _recreate(self, context: JobContext, action: Recreate) -> Json:
        succession = context.kind.recreation(context.job, action, write_state(action.state))
        if succession is None:
            return context.job
        key = context.key
        await self._client.create_if_absent(KIND_OF[key.kind], key.namespace, succession.manifest)
        return await self._patch(context, succession.patch)
