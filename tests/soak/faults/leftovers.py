"""Reservations that no job needs any more: placeholders and taints of no failback under way. Pure but for `read_leftovers`."""

from collections.abc import Iterable, Sequence

from pulumi_holdfast.controller.jobs.patches import read_state
from pulumi_holdfast.controller.jobs.reservations import reserved_for
from pulumi_holdfast.controller.jobs.state import JobState
from pulumi_holdfast.controller.kube.objects import metadata_of, name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import RESERVATION_NAMESPACE, RESERVED_FOR, STATE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, RAYJOB
from tests.soak.faults.manifests import NAMESPACE


def leftovers(jobs: Iterable[Json], placeholders: Iterable[Json], nodes: Iterable[Json]) -> list[str]:
    """Return a sentence for each placeholder and each reserved node whose job does not fail back now."""
    returning = {str(metadata_of(job).get("uid")) for job in jobs if _is_returning(job)}
    pods = [
        f"the placeholder {name_of(pod)} is left"
        for pod in placeholders
        if mapping(metadata_of(pod).get("labels")).get(RESERVED_FOR) not in returning
    ]
    tainted = [
        f"the node {name_of(node)} is still reserved for {holder}"
        for node in nodes
        if (holder := _holder(node)) is not None and holder not in returning
    ]
    return [*pods, *tainted]


def _is_returning(job: Json) -> bool:
    text = mapping(metadata_of(job).get("annotations")).get(STATE)
    state = read_state(text) if isinstance(text, str) else None
    return isinstance(state, JobState) and state.failback is not None


def _holder(node: Json) -> str | None:
    """Return the job that a node's taint or label names."""
    label = mapping(metadata_of(node).get("labels")).get(RESERVED_FOR)
    return reserved_for(node) or (label if isinstance(label, str) else None)


def read_leftovers(client: KubeClient) -> Sequence[str]:
    """Return the leftovers on a cluster now. The reservations are read before the jobs that may need them."""
    placeholders = client.list("v1", "Pod", namespace=RESERVATION_NAMESPACE)
    nodes = client.list("v1", "Node")
    jobs = [job for kind in (JOBSET, RAYJOB) for job in client.list(*kind, namespace=NAMESPACE)]
    return leftovers(jobs, placeholders, nodes)
