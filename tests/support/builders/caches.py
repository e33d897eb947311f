"""Caches of a cluster with training namespaces, and the observer of its jobs."""

from collections.abc import Callable
from datetime import datetime

from pulumi_holdfast.controller.jobs.caches import Caches
from pulumi_holdfast.controller.loop.contention import GangContention
from pulumi_holdfast.controller.loop.observer import Observer, PodHistories
from pulumi_holdfast.ladder.labels import TRAINING
from tests.support.builders.fallback_objects import NAMESPACE, NOW, jobset, rayjob, with_metadata


def training_caches(*namespaces: str) -> Caches:
    """Caches with these training namespaces; with the namespace of the builders if none is named."""
    caches = Caches()
    for name in namespaces or (NAMESPACE,):
        caches.namespaces.put({"metadata": {"name": name, "labels": {TRAINING: "true"}}})
    return caches


def caches_with_jobs() -> Caches:
    """The same with a JobSet and a RayJob, both named `train`."""
    caches = training_caches()
    caches.jobs["JobSet"].put(jobset())
    caches.jobs["RayJob"].put(with_metadata(rayjob(), uid="ray"))
    return caches


def observer_of(caches: Caches, now: Callable[[], datetime] = lambda: NOW) -> Observer:
    """An observer whose clock never jumps, on a cluster with Karpenter."""
    return Observer(
        caches,
        PodHistories(caches, now=now),
        GangContention(lambda _: None),
        claims_are_served=lambda: True,
        now=now,
        monotonic=lambda: now().timestamp(),
    )
