"""Carries out what was decided about capacity that is held for a job."""

from collections.abc import Callable, Iterable
from typing import Final

from holdfast.fallback.api.client import NODE, POD, ApiError, Client
from holdfast.fallback.api.objects import name_of, uid_of
from holdfast.fallback.jobs.pods_and_nodes import node_of
from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.fallback.reconciler.caches import HELD, Caches
from holdfast.fallback.reconciler.observing import Look
from holdfast.fallback.reservations.placeholders import HoldRequest, hold_changes
from holdfast.fallback.reservations.reserved_capacity import hold_patch, holder_of, orphans, release_patch
from holdfast.fallback.state_machine.actions import DropPlaceholders, Hold, Release, TaintHeld
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import RESERVATION_NAMESPACE
from holdfast.scheduling.taints import Taint

_CONFLICT: Final = 409


class Holder:
    """Makes and deletes placeholders, and taints nodes. `image` is what a placeholder runs: nothing."""

    def __init__(self, client: Client, caches: Caches, *, image: str) -> None:
        self._client = client
        self._caches = caches
        self._image = image

    async def do(self, look: Look, action: Hold | TaintHeld | DropPlaceholders | Release) -> None:
        """Carry out one action for one job."""
        uid = look.seen.uid
        match action:
            case Hold():
                await self._hold(look, action)
            case TaintHeld():
                nodes = {name for pod in self._placeholders(uid) if (name := node_of(pod))}
                await self._taint(nodes, uid)
            case DropPlaceholders():
                await self._drop(uid)
            case Release():
                await self.release(uid)

    async def release(self, uid: str) -> None:
        """Delete what holds capacity for a job of this uid, then let everybody onto the nodes."""
        await self._drop(uid)
        for _, name in self._caches.nodes.names(HELD, uid):
            await self._untaint(name, lambda holder: holder == uid)

    async def release_orphans(self) -> None:
        """Release what is held for jobs that are no more: nobody decides for them."""
        caches = self._caches
        found = orphans(caches.placeholders, caches.nodes.all(HELD), caches.has_uid)
        await self._delete(pod for pod in caches.placeholders if name_of(pod) in found.placeholders)
        for name in found.nodes:
            await self._untaint(name, lambda holder: not caches.has_uid(holder))

    async def _hold(self, look: Look, action: Hold) -> None:
        request = HoldRequest(
            uid=look.seen.uid,
            job=f"{look.key.kind} {look.key.namespace}/{look.key.name}",
            pool=action.pool,
            shapes=action.shapes,
            taints=_taints_of(action.pool, look.policy),
            image=self._image,
        )
        existing = self._placeholders(look.seen.uid)
        changes = hold_changes(request, existing)
        ended = [pod for pod in existing if name_of(pod) in changes.delete]
        await self._delete(ended)
        for pod in changes.create:
            try:
                await self._client.create(POD, RESERVATION_NAMESPACE, pod)
            except ApiError as error:
                if error.status != _CONFLICT:  # there already, and not seen yet
                    raise

    async def _drop(self, uid: str) -> None:
        await self._delete(self._placeholders(uid))

    async def _delete(self, pods: Iterable[Json]) -> None:
        for pod in list(pods):
            await self._client.delete(
                POD, RESERVATION_NAMESPACE, name_of(pod), uid=uid_of(pod), grace_seconds=0
            )

    async def _taint(self, nodes: Iterable[str], uid: str) -> None:
        for name in sorted(nodes):
            node = await self._node(name)
            patch = None if node is None else hold_patch(node, uid)
            if patch is not None:
                await self._client.patch(NODE, None, name, patch)

    async def _untaint(self, name: str, may_release: Callable[[str], bool]) -> None:
        node = await self._node(name)
        holder = None if node is None else holder_of(node)
        if node is None or (holder is not None and not may_release(holder)):
            return
        patch = release_patch(node)
        if patch is not None:
            await self._client.patch(NODE, None, name, patch)

    async def _node(self, name: str) -> "Json | None":
        """Return a node as it is now: its list of taints is replaced as a whole, so nothing older will do."""
        try:
            return await self._client.get(NODE, None, name)
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    def _placeholders(self, uid: str) -> list[Json]:
        return self._caches.placeholders.find(HELD, uid)


def _taints_of(pool: str, policy: Policy | NoPolicy) -> tuple[Taint, ...]:
    tiers = policy.tiers if isinstance(policy, Policy) else ()
    return next((tier.facts.taints for tier in tiers if tier.pool == pool), ())
