"""The caches of all watched objects: one for each kind, and their indexes."""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from pulumi_holdfast.controller.jobs.cached_objects import (
    CachedJob,
    CachedPolicy,
    cached_job,
    cached_policy,
    too_large,
    trim_child,
)
from pulumi_holdfast.controller.jobs.kinds import KINDS, job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, has_ended, node_of
from pulumi_holdfast.controller.jobs.reservations import reserved_for
from pulumi_holdfast.controller.jobs.trimmed_objects import (
    trim_claim,
    trim_node,
    trim_node_pool,
    trim_placeholder,
    trim_pod,
    trim_workload,
)
from pulumi_holdfast.controller.kube.cache import Cache, Change, Name, name_of
from pulumi_holdfast.controller.kube.client import JOB, RAYCLUSTER
from pulumi_holdfast.controller.kube.objects import labels_of, metadata_of, namespace_of, text
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import POOL, RESERVED_FOR

T = TypeVar("T")

# Names of the indexes.
OF_JOB: Final = "of job"
ON_NODE: Final = "on node"
IN_POOL: Final = "in pool"
RESERVED_FOR_UID: Final = "reserved for"
IN_NAMESPACE: Final = "in namespace"
BY_UID: Final = "uid"
WITH_MAX_COST: Final = "with max-cost"


JOBSET_PODS: Final = "jobset.sigs.k8s.io/jobset-name"

# Label selectors of the watched pods: a JobSet's, a Ray cluster's, and those that submit to one. Each selector has its own
# cache, so that a list of one does not remove the others' pods.
POD_LABELS: Final = (
    JOBSET_PODS,
    "ray.io/cluster,!jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name,!jobset.sigs.k8s.io/jobset-name",
)


#: What the jobs of one kind in one namespace may take of the memory: as much as 2,048 jobs of the usual size.
_BYTES_OF_JOBS: Final = 32 * 1024 * 1024
_LEAST_BYTES: Final = 16 * 1024
#: What other objects of one kind in one namespace may have as text, as more than 10,000 pods have; in memory it is six times that.
_BYTES_OF_OTHERS: Final = 8 * 1024 * 1024

#: How many pods, and how many Jobs or RayClusters, a job has: all of them are read in each reconciliation.
MOST_PODS: Final = 5000

_log = logging.getLogger(__name__)


class _Budget(Generic[T]):
    """Bounds what the objects of one kind in one namespace take of the memory and of the controller's time.

    `keep` trims an object, `cost` returns its bytes. `beyond` returns what is cached of one beyond the `most` bytes.
    """

    def __init__(
        self,
        keep: Callable[[Json], T | None],
        cost: Callable[[T], int],
        most: int,
        beyond: Callable[[Json], T | None],
    ) -> None:
        self._keep = keep
        self._cost = cost
        self._most = most
        self._beyond = beyond
        self._taken = Counter[str]()
        self._objects: dict[Name, int] = {}

    def keep(self, obj: Json) -> T | None:
        """Return the cached form of an object."""
        kept, name = self._keep(obj), name_of(obj)
        if kept is None:
            return None
        taken = self._taken[name[0]] - self._objects.get(name, 0) + self._cost(kept)
        return kept if taken <= self._most else self._beyond(obj)

    def count(self, change: Change[T]) -> None:
        """Count an object that has been cached or removed."""
        cost = 0 if change.after is None else self._cost(change.after)
        self._taken[change.name[0]] += cost - self._objects.pop(change.name, 0)
        if cost:
            self._objects[change.name] = cost
        elif not self._taken[change.name[0]]:
            del self._taken[change.name[0]]


def _too_many_jobs(job: Json) -> CachedJob:
    return too_large(
        job, "The namespace has too many jobs: delete those that have ended, and create the job again."
    )


def _cost(job: CachedJob) -> int:
    return 0 if job.excess else max(_LEAST_BYTES, len(job.content) + len(job.unread))


class Caches:
    """Every cache; of namespaced objects only those in training namespaces are cached."""

    def __init__(self) -> None:
        self.namespaces = Cache[str](lambda namespace: name_of(namespace)[1])
        self.policies = Cache[CachedPolicy](self._in_training(cached_policy))
        self._crowded: set[str] = set()
        self.jobs = {
            kind: self._bounded(
                _Budget(cached_job, _cost, _BYTES_OF_JOBS, _too_many_jobs),
                indexes={
                    IN_NAMESPACE: lambda name, _: (name[0],),
                    BY_UID: lambda _, job: () if job.excess else (job.uid,),  # else its reservation stays
                    WITH_MAX_COST: lambda _, job: ("",) if job.has_max_cost else (),
                },
            )
            for kind in KINDS
        }
        self.children = {
            kind: self._bounded(self._others(trim_child(kind)), indexes={OF_JOB: _of_parent})
            for kind in (JOB, RAYCLUSTER)
        }
        self.pods = {labels: self._bounded(self._others(trim_pod), indexes=_POD) for labels in POD_LABELS}
        self.workloads = self._bounded(self._others(trim_workload), indexes={BY_UID: _owner_uids})
        self.placeholders = Cache[Json](
            trim_placeholder, indexes={RESERVED_FOR_UID: reserved_for_uids, ON_NODE: _on_node}
        )
        self.nodes = Cache[Json](trim_node, indexes={IN_POOL: _in_pool, RESERVED_FOR_UID: _node_reserved_for})
        self.claims = Cache[Json](trim_claim, indexes={ON_NODE: _on_claimed_node})
        self.node_pools = Cache[Json](
            trim_node_pool, indexes={IN_POOL: lambda _, node_pool: filter(None, [pool_made_by(node_pool)])}
        )

    def job(self, key: JobKey) -> CachedJob | None:
        """Return a cached job."""
        return self.jobs[key.kind].get(key.namespace, key.name)

    def all_keys(self) -> Iterable[JobKey]:
        """Return the keys of all jobs."""
        for kind, cache in self.jobs.items():
            for namespace, name in cache.known():
                yield JobKey(kind, namespace, name)

    def keys_in(self, namespace: str) -> Iterable[JobKey]:
        """Return the keys of a namespace's jobs."""
        for kind, cache in self.jobs.items():
            for _, name in cache.names(IN_NAMESPACE, namespace):
                yield JobKey(kind, namespace, name)

    def keys_with_uid(self, uid: str) -> Iterable[JobKey]:
        """Return the key of the job with this uid, if it exists."""
        for kind, cache in self.jobs.items():
            for namespace, name in cache.names(BY_UID, uid):
                yield JobKey(kind, namespace, name)

    def has_uid(self, uid: str) -> bool:
        """Whether a job with this uid exists."""
        return any(cache.has(BY_UID, uid) for cache in self.jobs.values())

    def has_too_many_pods(self, key: JobKey) -> bool:
        """Whether a job has more pods or children than are followed."""
        of_job = text_of(key)
        return any(
            sum(cache.count(OF_JOB, of_job) for cache in caches.values()) > MOST_PODS
            for caches in (self.pods, self.children)
        )

    def pods_of(self, key: JobKey) -> list[Json]:
        """Return the pods whose labels name a job."""
        of_job = text_of(key)
        return [pod for cache in self.pods.values() for pod in cache.find(OF_JOB, of_job)]

    def children_of(self, key: JobKey) -> list[Json]:
        """Return the Jobs and RayClusters of a job."""
        of_job = text_of(key)
        return [child for cache in self.children.values() for child in cache.find(OF_JOB, of_job)]

    def limited_keys_on(self, node: str) -> Iterable[JobKey]:
        """Return every job with a pod or a placeholder on a node that has a `max-cost`."""
        if not any(cache.has(WITH_MAX_COST, "") for cache in self.jobs.values()):
            return  # hundreds of small jobs may share a node
        for key in self.keys_on(node):
            job = self.job(key)
            if job is not None and job.has_max_cost:
                yield key

    def keys_on(self, node: str) -> Iterable[JobKey]:
        """Return every job with a pod or a placeholder on a node."""
        return self.pods_on(node).keys()

    def pods_on(self, node: str) -> Mapping[JobKey, Sequence[Json]]:
        """Return the pods and placeholders on a node, by the job that they are of or for."""
        found = defaultdict[JobKey, list[Json]](list)
        for pod in (pod for cache in self.pods.values() for pod in cache.find(ON_NODE, node)):
            key = job_of_pod(pod)
            if key is not None:
                found[key].append(pod)
        for pod in self.placeholders.find(ON_NODE, node):
            for key in (
                key for uid in reserved_for_uids(name_of(pod), pod) for key in self.keys_with_uid(uid)
            ):
                found[key].append(pod)
        return found

    def pods_of_on(self, key: JobKey, node: str) -> list[Json]:
        """Return the pods of a job on a node, and the placeholders for it there, that have not ended."""
        job = self.job(key)
        held = [] if job is None else self.placeholders.find(RESERVED_FOR_UID, job.uid)
        return [pod for pod in (*self.pods_of(key), *held) if node_of(pod) == node and not has_ended(pod)]

    def is_used(self, node: str) -> bool:
        """Whether a node has a training pod or a placeholder."""
        return any(cache.has(ON_NODE, node) for cache in (*self.pods.values(), self.placeholders))

    def _bounded(
        self, budget: _Budget[T], indexes: Mapping[str, Callable[[Name, T], Iterable[str]]]
    ) -> Cache[T]:
        cache = Cache[T](self._in_training(budget.keep), indexes=indexes)
        cache.add_handler(budget.count)
        return cache

    def _others(self, keep: Callable[[Json], Json | None]) -> _Budget[Json]:
        return _Budget(keep, lambda obj: len(json.dumps(obj)), _BYTES_OF_OTHERS, self._ignored)

    def _ignored(self, obj: Json) -> None:
        """Log once that a namespace has more objects than are observed: its users' jobs suffer, and no others."""
        namespace = namespace_of(obj)
        if namespace not in self._crowded:
            self._crowded.add(namespace)
            _log.warning(
                "the namespace has too many pods or Jobs: some are ignored", extra={"namespace": namespace}
            )

    def _in_training(self, keep: Callable[[Json], T | None]) -> Callable[[Json], T | None]:
        def cached(obj: Json) -> T | None:
            return keep(obj) if self.namespaces.get("", namespace_of(obj)) is not None else None

        return cached


def pool_made_by(node_pool: Json) -> str:
    """Return the pool of the nodes that Karpenter provisions from a NodePool, empty if it is not one of ours."""
    template = mapping(mapping(node_pool.get("spec")).get("template"))
    return text(labels_of(template).get(POOL))


def text_of(key: JobKey) -> str:
    """Return a job's key as the indexes have it."""
    return "/".join(key)


def _of_job(_: Name, pod: Json) -> Iterable[str]:
    key = job_of_pod(pod)
    return () if key is None else (text_of(key),)


def _of_parent(_: Name, child: Json) -> Iterable[str]:
    key = job_of_child(child)
    return () if key is None else (text_of(key),)


def _on_node(_: Name, pod: Json) -> Iterable[str]:
    node = node_of(pod)
    return (node,) if node else ()


def _on_claimed_node(_: Name, claim: Json) -> Iterable[str]:
    node = text(mapping(claim.get("status")).get("nodeName"))
    return (node,) if node else ()


def _owner_uids(_: Name, obj: Json) -> Iterable[str]:
    owners = map(mapping, sequence(metadata_of(obj).get("ownerReferences")))
    return {uid for owner in owners if (uid := text(owner.get("uid")))}


def _label(name: str) -> Callable[[Name, Json], Iterable[str]]:
    def found(_: Name, obj: Json) -> Iterable[str]:
        value = text(labels_of(obj).get(name))
        return (value,) if value else ()

    return found


def _node_reserved_for(_: Name, node: Json) -> Iterable[str]:
    holder = reserved_for(node)
    return () if holder is None else (holder,)


_in_pool = _label(POOL)
reserved_for_uids = _label(RESERVED_FOR)
_POD: Final = {OF_JOB: _of_job, ON_NODE: _on_node}
