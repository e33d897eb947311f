"""Objects drawn from the published schemas of every watched kind, up to the API server's limits of size, thrown at a live controller."""

import os
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from statistics import median
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CHECKPOINTED, FINISH_BY, MAX_COST, PROGRESS, WORK
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.clusters.hostile import HOSTILE, admit_hostile, event, judged, pod_of_victim
from tests.support.clusters.reconciler import (
    POOLS,
    LoopCluster,
    Replica,
    jobset,
    loop_cluster,
    policy,
    rayjob,
    replica,
    simulated_node,
)
from tests.support.json_objects import obj
from tests.support.strategies.extreme_objects import damaged
from tests.support.strategies.schema_objects import admitted, pod_schema, schema_of

pytestmark = [pytest.mark.soak, pytest.mark.cluster, pytest.mark.timeout(3600)]

_DRAWN: Final = int(os.environ.get("HOLDFAST_HOSTILE_OBJECTS", "400"))
_MOVES: Final = 6
_TOLD: Final = (FINISH_BY, WORK, PROGRESS, MAX_COST)
_RAYJOB: Final[Json] = {
    **rayjob("drawn"),
    "metadata": {**obj(rayjob("drawn")["metadata"]), "namespace": HOSTILE},
}
_OBJECTS: Final = (
    admitted(jobset("drawn", within=HOSTILE), schema_of("JobSet"), annotations=_TOLD),
    damaged(jobset("drawn", within=HOSTILE)),
    admitted(_RAYJOB, schema_of("RayJob"), annotations=_TOLD),
    admitted(pod_of_victim(0), pod_schema(), annotations=(CHECKPOINTED, PROGRESS)),
    damaged(pod_of_victim(0)),
    admitted(policy(within=HOSTILE), schema_of("FallbackPolicy")),
    damaged(simulated_node("drawn", "drawn")),
    damaged(event(0)),
)
#: What a value is repeated to, so that the object has up to 1.3 MB.
_LARGE: Final = 1_300_000


@st.composite
def hostile_objects(draw: st.DrawFn) -> Json:
    """An object of any kind, one in three with a list or a text as long as the API server takes."""
    found = draw(st.one_of(_OBJECTS))
    return _swollen(found, _LARGE) if draw(st.integers(0, 2)) == 0 else found


def _swollen(found: Json, size: int) -> Json:
    """The object with its first list of objects repeated, under names of their own, until it has so many characters."""

    def grow(value: JsonValue) -> tuple[JsonValue, bool]:
        match value:
            case [{"name": str(), **first}, *_]:
                length = max(1, size // (len(str(first)) + 20))
                return [{**first, "name": f"n{each}"} for each in range(min(length, 6000))], True
            case dict():
                for name, each in value.items():
                    grown, is_done = grow(each)
                    if is_done:
                        return {**value, name: grown}, True
            case _:
                pass
        return value, False

    return obj(grow(dict(found))[0])


def drawn(number: int, of: int) -> list[Json]:
    """That many objects, drawn with a seed."""
    found: list[Json] = []

    @seed(of)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    @given(hostile_objects())
    def collect(each: Json) -> None:
        found.append(each)

    collect()
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[LoopCluster]:
    """A cluster with a well-behaved tenant and a hostile one."""
    with loop_cluster(tmp_path_factory.mktemp("drawn"), has_ray=True) as found:
        pools = [{"pool": pool, "maxFailures": 1} for pool in POOLS[:-1]]
        found.apply(policy(*pools, {"pool": POOLS[-1]}))
        admit_hostile(found)
        yield found


def test_drawn_objects_stop_no_move_of_another_tenant(cluster: LoopCluster, tmp_path: Path) -> None:
    chosen = seed_of(None, os.environ.get(SEED_VARIABLE))
    objects, sent, ended = drawn(_DRAWN, chosen), count(), threading.Event()
    admitted_kinds = list[str]()

    def attack() -> None:
        client = KubeClient.from_kubeconfig(cluster.workspace.kubeconfig("aws-test"))
        for manifest in cycle(objects):
            if ended.is_set():
                return client.close()
            metadata: Json = {
                **obj(manifest["metadata"]),
                "name": f"drawn-{next(sent)}",
                "generateName": None,
            }
            try:
                if manifest["kind"] == "FallbackPolicy":
                    client.apply(manifest, field_manager="hostile", force=True)
                else:
                    client.create({**manifest, "metadata": metadata})
                admitted_kinds.append(str(manifest["kind"]))
            except (ApiError, ValueError):
                continue
        return None

    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait(Replica.leads, "it leads")
        alone = [seconds_of_move(cluster, f"alone-{each}") for each in range(_MOVES)]
        attackers = [threading.Thread(target=attack, daemon=True) for _ in range(2)]
        with judged(controller) as found:
            for each in attackers:
                each.start()
            beside = [seconds_of_move(cluster, f"beside-{each}") for each in range(_MOVES)]
            ended.set()
            for each in attackers:
                each.join(60)
        assert controller.number("holdfast_fallback_reconcile_errors_total") == 0
        assert controller.terminate() == 0
    counts = {kind: admitted_kinds.count(kind) for kind in sorted(set(admitted_kinds))}
    print(f"seed {chosen}: {next(sent)} objects sent, admitted {counts}; {found}")
    print(f"a move takes {median(alone):.1f} s alone, {median(beside):.1f} s beside them")


def seconds_of_move(cluster: LoopCluster, name: str) -> float:
    """Create a job, evict one of its pods, and return the seconds until the job runs in the next pool; delete it."""
    cluster.apply(jobset(name))
    cluster.wait_on(name, POOLS[0], seconds=600)
    began = datetime.now(UTC)
    cluster.evict_one(name)
    cluster.wait_on(name, POOLS[1], seconds=600)
    took = (datetime.now(UTC) - began).total_seconds()
    cluster.delete(name)
    return took
