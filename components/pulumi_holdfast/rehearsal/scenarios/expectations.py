"""What each scenario must show. Pure: each function returns the problems, an empty list if there are none."""

from collections.abc import Sequence

from pulumi_holdfast.ladder.labels import ON_DEMAND, SPOT
from pulumi_holdfast.rehearsal.scenarios.placement import PodPlacement
from pulumi_holdfast.rehearsal.scenarios.pod_placement import DefaultPlacement, RayJobPlacement
from pulumi_holdfast.rehearsal.scenarios.spot_restart import SpotRestart


def unmet_by_restart(seen: SpotRestart) -> list[str]:
    """All pods are on spot before and after; those of the interrupted node are evicted and run on a new node."""
    hosts_before = {_host(each) for each in seen.before}
    taken = {_host(each) for each in seen.before if each.node == seen.interrupted}
    lost = {each.pod for each in seen.before if each.node == seen.interrupted}
    return [
        *_not_on_spot((*seen.before, *seen.after)),
        *_if(
            lost - set(seen.evicted),
            f"pods of the interrupted node have no DisruptionTarget condition: {sorted(lost - set(seen.evicted))}",
        ),
        *_if(
            len(seen.after) != len(seen.before),
            f"{len(seen.before)} pods ran before the interruption and {len(seen.after)} after it",
        ),
        *_if(
            taken & {_host(each) for each in seen.after},
            f"a pod came back to the interrupted node {seen.interrupted}",
        ),
        *_if(
            {_host(each) for each in seen.after} <= hosts_before,
            "there is no new node: the pods run on nodes that were there before",
        ),
        *_if(seen.restarts != 1, f"one interruption cost {seen.restarts} restarts"),
    ]


def unmet_by_default_placement(seen: DefaultPlacement, *, has_gpus: bool = True) -> list[str]:
    """The plain pod is on an on-demand node without GPUs, although a spot and a GPU node had free capacity.

    `has_gpus`: whether there is an on-demand pool with GPUs.
    """
    kinds = [each.placement for each in seen.candidates if each.free_cpus >= seen.asked_cpus]
    return [
        *_not_on_default(seen.plain),
        *_if(
            not any(each.capacity == SPOT for each in kinds),
            "no spot node had free capacity, so the scenario shows nothing",
        ),
        *_if(
            has_gpus and not any(each.gpus for each in kinds),
            "no GPU node had free capacity, so the scenario shows nothing",
        ),
    ]


def unmet_by_rayjob(seen: RayJobPlacement) -> list[str]:
    """The job runs, its workers are on spot, its head and submitter are on the default pool."""
    return [
        *_if(seen.state != "Running", f"RayJob {seen.rayjob} is {seen.state or 'without a state'}"),
        *_if(not seen.workers, f"RayJob {seen.rayjob} has no workers"),
        *_not_on_spot(seen.workers),
        *(problem for each in (seen.head, *seen.submitters) for problem in _not_on_default(each)),
    ]


def _host(placed: PodPlacement) -> tuple[str, str]:
    """A node's name and uid: a later node may have the same name."""
    return placed.node, placed.host


def _not_on_spot(placed: Sequence[PodPlacement]) -> list[str]:
    return [f"{each.pod} selects spot and is on {each.capacity}" for each in placed if each.capacity != SPOT]


def _not_on_default(placed: PodPlacement) -> list[str]:
    is_default = placed.capacity == ON_DEMAND and not placed.gpus
    where = f"{placed.capacity} {placed.machine} with {placed.gpus} GPUs"
    return _if(not is_default, f"{placed.pod} has no selection and is on {where}")


def _if(wrong: object, problem: str) -> list[str]:
    return [problem] if wrong else []
