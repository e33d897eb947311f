"""Runs the measurement of moves on a stack that is up, and prints its tables."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final

import psutil

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.output import render_table
from pulumi_holdfast.rehearsal.scenarios.namespace_clone import clone_namespace
from pulumi_holdfast.rehearsal.scenarios.platform import FIELD_MANAGER
from pulumi_holdfast.rehearsal.stacks import Stack
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET
from tests.soak.bench.moves import Cost, Measured, Meter, MoveBenchmark, Spread, Steps, Wave, spread
from tests.soak.bench.moves_manifests import NAMESPACE, POOLS, ladder, nodes
from tests.support.background import repeating
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.clusters.hostile import HOSTILE, VICTIM, large_jobset, pod_of_victim, throw

_MIB: Final = 1024 * 1024
TIMES: Final = ("jobs", "what", "decided", "pods gone", "resumed", "nodes for all", "19 of 20", "ratio")
COSTS: Final = ("jobs", "what", "controller CPU", "JobSet CPU", "ratio", "controller", "JobSet", "ratio")
AIMS: Final = ("jobs", "aim", "measured", "allowed", "reached")

#: A move is no slower than a restart by JobSet, within what two runs of the same work differ by, for the median job and 19 of 20.
MOST_TIME: Final = 1.05
#: The CPU of the controller to that of JobSet for the same moves: at most what it was when the aim was set, and toward 1.
MOST_CPU: Final = 1.5


def time_rows(measured: Measured) -> list[Sequence[str]]:
    """Return a row for the move and one for the restart: medians in seconds since the eviction."""
    moved, restarted = _bound(measured.move), _bound(measured.restart)
    return [
        (
            str(measured.jobs),
            what,
            _median(steps.decided for steps in wave.steps),
            _median(steps.gone for steps in wave.steps),
            _median(steps.resumed for steps in wave.steps),
            f"{bound.median:.2f} s",
            f"{bound.most:.2f} s",
            f"{bound.median / restarted.median:.2f}",
        )
        for what, wave, bound in (("move", measured.move, moved), ("restart", measured.restart, restarted))
    ]


def cost_rows(measured: Measured) -> list[Sequence[str]]:
    """Return a row for the move and one for the restart: the cost of both controllers for all jobs."""
    return [
        (
            str(measured.jobs),
            what,
            f"{wave.fallback.cpu_seconds:.2f} s",
            f"{wave.jobset.cpu_seconds:.2f} s",
            _ratio(wave.fallback.cpu_seconds, wave.jobset.cpu_seconds),
            _mib(wave.fallback),
            _mib(wave.jobset),
            _ratio(wave.fallback.bytes, wave.jobset.bytes),
        )
        for what, wave in (("move", measured.move), ("restart", measured.restart))
    ]


def aim_rows(measured: Measured) -> list[Sequence[str]]:
    """Return a row for each aim: what was measured, what is allowed, and whether it is reached."""
    moved, restarted = _bound(measured.move), _bound(measured.restart)
    costs = measured.move
    aims = (
        ("move / restart, median", moved.median, restarted.median, MOST_TIME),
        ("move / restart, 19 of 20", moved.most, restarted.most, MOST_TIME),
        ("CPU of a move / JobSet's", costs.fallback.cpu_seconds, costs.jobset.cpu_seconds, MOST_CPU),
    )
    return [
        (
            str(measured.jobs),
            aim,
            _ratio(one, other),
            f"{most:.2f}",
            "–" if not other else "yes" if one / other <= most else "no",
        )
        for aim, one, other, most in aims
    ]


def _bound(wave: Wave) -> Spread:
    return spread(steps.bound for steps in wave.steps)


def _median(figures: Iterable[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return f"{spread(known).median:.2f} s" if known else "–"


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other else "–"


def _mib(cost: Cost) -> str:
    return f"{cost.bytes / _MIB:.0f} MiB"


SIZES: Final = (1, 100, 1000)
BESIDE: Final = ("step of a move", "alone", "beside a hostile tenant", "ratio", "reached")
#: The moves of other tenants' jobs are not slower by more than 20 % beside a hostile tenant.
MOST_BESIDE: Final = 1.2
_LARGE_JOBS: Final = 30
_HOSTILE_PODS: Final = 1000


# Of the API server, etcd and both controllers together; measured at 1,000 jobs, with room.
_BYTES_PER_JOB: Final = 4 * 1024 * 1024


_GIB: Final = 1024**3


def measure_moves(stack: Stack, sizes: Sequence[int], *, say: Callable[[str], None]) -> None:
    """Measure moves and restarts on a stack that is up, for each number of jobs, and print the tables; the last one has the aims.

    The measurement stops, with a message, at a number that needs too much memory or whose jobs are not placed in time.
    """
    client = KubeClient.from_kubeconfig(stack.workspace.kubeconfig(stack.place))
    meter = Meter.of(RunnerLayout.of(stack.place, stack.workspace))
    found: list[Measured] = []
    # Nothing is removed: the control plane of the benchmark is removed as a whole.
    for node in nodes():
        client.apply(node, field_manager=FIELD_MANAGER, force=True)
    clone_namespace(client, NAMESPACE, ladder(1, -1))
    for size in sizes:
        say(f"moves and restarts of {size} jobs")
        if psutil.virtual_memory().available < size * _BYTES_PER_JOB:
            say(
                f"  skipped, with all larger numbers: {size * _BYTES_PER_JOB / _GIB:.0f} GiB of free memory are needed"
            )
            break
        try:
            found.append(MoveBenchmark(client=client, meter=meter).measure(size))
        except FAILURES as error:
            say(f"  stopped, with all larger numbers: {error}")
            break
        for row in time_rows(found[-1]):
            say(f"  {row[1]}: {row[5]}")
    _print_tables(found, say)
    if found:
        beside = measure_beside_hostile(client, meter, found[0].jobs, say)
        say("")
        say(render_table(BESIDE, beside_rows(found[0], beside)))


def measure_beside_hostile(
    client: KubeClient, meter: Meter, jobs: int, say: Callable[[str], None]
) -> Measured:
    """Measure the same moves while the objects of a hostile tenant are there, and one of them changes each second."""
    clone_namespace(client, HOSTILE, {**ladder(1, -1), "metadata": {"name": LADDER, "namespace": HOSTILE}})
    victim = gang_jobset(VICTIM, HOSTILE, pods=1, pool=POOLS[0], cpu="1", failure_policy={"maxRestarts": 20})
    throw(client, [victim])
    admitted = throw(client, [large_jobset(each, pool=POOLS[0]) for each in range(_LARGE_JOBS)])
    pods = throw(client, [pod_of_victim(each) for each in range(_HOSTILE_PODS)])
    say(
        f"moves of {jobs} jobs beside {admitted} of {_LARGE_JOBS} large JobSets and {pods} pods of another tenant"
    )
    numbers = count()

    def change() -> None:
        noted: Json = {"metadata": {"annotations": {"example.com/number": str(next(numbers))}}}
        client.merge_patch(*JOBSET, VICTIM, noted, namespace=HOSTILE)

    with repeating(change, 1.0):
        return MoveBenchmark(client=client, meter=meter).measure(jobs)


def beside_rows(alone: Measured, beside: Measured) -> list[Sequence[str]]:
    """Return a row for each step of a move: the medians alone and beside a hostile tenant, their ratio, and the aim."""
    steps: dict[str, Callable[[Steps], float | None]] = {
        "decided": lambda each: each.decided,
        "resumed": lambda each: each.resumed,
        "nodes for all": lambda each: each.bound,
    }
    rows: list[Sequence[str]] = []
    for name, step in steps.items():
        one, other = (
            spread(taken for each in found.move.steps if (taken := step(each)) is not None).median
            for found in (beside, alone)
        )
        rows.append(
            (
                name,
                f"{other:.2f} s",
                f"{one:.2f} s",
                _ratio(one, other),
                "yes" if one / other <= MOST_BESIDE else "no",
            )
        )
    return rows


def _print_tables(found: Sequence[Measured], say: Callable[[str], None]) -> None:
    say("")
    say(render_table(TIMES, [row for each in found for row in time_rows(each)]))
    say("")
    say(render_table(COSTS, [row for each in found for row in cost_rows(each)]))
    say(
        "Medians, from the eviction of one pod of each job at the same time until both of its pods have nodes, which exist "
        "already. A move leads to the next tier, a restart by JobSet stays on the tier. Pods stop at once on SIGTERM: a "
        "grace period adds to `pods gone` of both. CPU is the total of all jobs."
    )
    say("")
    say(render_table(AIMS, [row for each in found for row in aim_rows(each)]))
