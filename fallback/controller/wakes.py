"""Which change of which object has which jobs looked at."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from fallback.controller.caches import Caches, held_for
from fallback.controller.kept import KeptPolicy
from fallback.jobs.kinds import job_of_child, job_of_pod
from fallback.jobs.snapshot import JobKey
from fallback.kubernetes.cache import Cache, Change
from fallback.kubernetes.reading import mapping, metadata_of, sequence, text
from scheduling.json import Json

T = TypeVar("T")


def wake_on_changes(caches: Caches, wake: Callable[[JobKey], None]) -> None:
    """Have `wake` called with each job that a change may mean something to, after each change."""

    def on(cache: Cache[T], concerned: Callable[[Change[T]], Iterable[JobKey]]) -> None:
        def wake_all(change: Change[T]) -> None:
            for key in concerned(change):
                wake(key)

        cache.listen(wake_all)

    for kind, cache in caches.jobs.items():
        on(cache, lambda change, kind=kind: (JobKey(kind, *change.name),))
    for cache in caches.children.values():
        # A Job writes down again and again how many of its pods are ready, which nobody here reads.
        on(cache, lambda change: () if _is_version_alone(change) else _known(job_of_child, change))
    for cache in caches.pods.values():
        on(cache, lambda change: _known(job_of_pod, change))
    on(caches.nodes, lambda change: caches.keys_on(change.name[1]))
    on(caches.claims, lambda change: _on_claimed_node(caches, change))
    on(caches.node_pools, lambda _: caches.all_keys())
    # What is written in its status every few seconds is our own summary, and would have all jobs looked at each time.
    on(caches.policies, lambda change: () if _says_the_same(change) else caches.keys_in(change.name[0]))
    on(caches.workloads, lambda change: _with_workload(caches, change))
    on(caches.placeholders, lambda change: _held_for(caches, change))


def _known(parent: Callable[[Json], JobKey | None], change: Change[Json]) -> set[JobKey]:
    return {key for each in _states(change) if (key := parent(each)) is not None}


def _is_version_alone(change: Change[Json]) -> bool:
    """Whether nothing that is kept of a child is another, but which version of it that is."""
    if change.before is None or change.after is None:
        return False
    before, after = metadata_of(change.before), metadata_of(change.after)
    version = {"resourceVersion": after.get("resourceVersion")}
    return {**change.before, "metadata": {**before, **version}} == change.after


def _says_the_same(change: Change[KeptPolicy]) -> bool:
    return (
        change.before is not None and change.after is not None and change.before.policy == change.after.policy
    )


def _on_claimed_node(caches: Caches, change: Change[Json]) -> set[JobKey]:
    nodes = {text(mapping(each.get("status")).get("nodeName")) for each in _states(change)}
    return {key for node in nodes if node for key in caches.keys_on(node)}


def _with_workload(caches: Caches, change: Change[Json]) -> set[JobKey]:
    owners = [
        mapping(owner)
        for each in _states(change)
        for owner in sequence(metadata_of(each).get("ownerReferences"))
    ]
    return {key for owner in owners for key in caches.keys_with_uid(text(owner.get("uid")))}


def _held_for(caches: Caches, change: Change[Json]) -> set[JobKey]:
    return {
        key
        for each in _states(change)
        for uid in held_for(change.name, each)
        for key in caches.keys_with_uid(uid)
    }


def _states(change: Change[Json]) -> Iterable[Json]:
    return [each for each in (change.before, change.after) if each is not None]
