"""Hypothesis strategies for ladders whose pools are known or not, and for jobs that walk them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from holdfast.scheduling.labels import CAPACITY_TYPE, FOLLOWS, GPU_RESOURCE, INSTANCE_TYPE, CapacityType
from holdfast.scheduling.ladder import UNLIMITED, Ladder, Tier
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool, PoolSummary, summarize_pool
from holdfast.scheduling.reachability.machine_capacity import Provisioner
from holdfast.scheduling.taints import GPU, SPOT, Taint
from tests.support.job_objects import jobset, pod_template, replicated_job
from tests.support.pod_strategies import tolerations
from tests.support.training_pods import expression, required_affinity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.json import Json

#: Pools that admission knows, and one that it does not.
NAMES = ("cpu", "cpu-spot", "a100", "a100-spot", "elsewhere")
TAINTS = (
    SPOT,
    GPU,
    Taint(key="team", value="nlp"),
    Taint(key="team", value="", effect="NoExecute"),
    Taint(key="old", value="yes", effect="PreferNoSchedule"),
)
MACHINES = (
    Machine(name="small", vcpus=8, memory_mib=16 * 1024, gpus=0, hourly_price=1.0),
    Machine(name="wide", vcpus=32, memory_mib=32 * 1024, gpus=0, hourly_price=2.0),
    Machine(name="deep", vcpus=16, memory_mib=128 * 1024, gpus=1, hourly_price=4.0, accelerator="a10g"),
    Machine(name="eight", vcpus=96, memory_mib=1_153_000, gpus=8, hourly_price=32.0, accelerator="a100"),
)
_VALUES = {
    "disk": ("fast", "slow"),
    "generation": ("4", "5", "new"),
    INSTANCE_TYPE: ("p4d", "p5"),
    "example.com/rack": ("7",),
}
_OPERATORS = ("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


@dataclass(frozen=True, kw_only=True)
class KnownLadder:
    """A ladder, and what is known of its pools by their names."""

    ladder: Ladder
    pools: Mapping[str, PoolSummary]


@st.composite
def facts(draw: st.DrawFn, name: str) -> PoolSummary:
    """What is known of a pool, whatever its name says."""
    pool = Pool(
        name=name,
        capacity=draw(st.sampled_from(CapacityType)),
        has_gpus=True,
        max_nodes=draw(st.integers(1, 4)),
    )
    labels = {key: draw(st.sampled_from(values)) for key, values in _VALUES.items() if draw(st.booleans())}
    machines = draw(
        st.lists(st.sampled_from(MACHINES), min_size=1, max_size=3, unique_by=lambda each: each.name)
    )
    provisioner = draw(st.sampled_from((*Provisioner, None)))
    taints = draw(st.lists(st.sampled_from(TAINTS), max_size=3, unique=True))
    return summarize_pool(pool, machines, taints, labels, provisioner=provisioner)


@st.composite
def known_ladders(draw: st.DrawFn) -> KnownLadder:
    """A ladder that the API server takes, most of its pools known."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    tiers = [draw(_tiers(name, is_last=name == names[-1])) for name in names]
    known = {name: draw(facts(name)) for name in names if draw(st.integers(0, 4))}
    return KnownLadder(ladder=Ladder(tiers=tuple(tiers)), pools=known)


@st.composite
def _tiers(draw: st.DrawFn, name: str, *, is_last: bool) -> Tier:
    if is_last:
        return Tier(pool=name, max_failures=draw(st.sampled_from((None, UNLIMITED))))
    timeout = draw(st.sampled_from((None, timedelta(minutes=5))))
    allowed = (0, 5) if timeout is None else (None, UNLIMITED, 5)
    return Tier(pool=name, max_failures=draw(st.sampled_from(allowed)), procurement_timeout=timeout)


@st.composite
def _expressions(draw: st.DrawFn) -> Json:
    key, operator = draw(st.sampled_from([*_VALUES])), draw(st.sampled_from(_OPERATORS))
    if operator in {"Exists", "DoesNotExist"}:
        return expression(key, operator)
    if operator in {"Gt", "Lt"}:
        return expression(key, operator, draw(st.sampled_from(("3", "4", "5"))))
    return expression(key, operator, *draw(st.lists(st.sampled_from(_VALUES[key]), min_size=1, max_size=2)))


@st.composite
def _containers(draw: st.DrawFn, name: str) -> Json:
    asked = {
        "cpu": draw(st.sampled_from(("100m", "0.57", "1", "7900m", "16", "40"))),
        "memory": draw(st.sampled_from(("100Mi", "1500M", "1.5Gi", "20Gi", "123456789", "500Gi"))),
    }
    gpus = draw(st.sampled_from(("", "", "1", "8")))
    requests = {**asked, **({GPU_RESOURCE: gpus} if gpus else {})}
    limits = {"limits": {GPU_RESOURCE: gpus}} if gpus else {}
    kept = {key: value for key, value in requests.items() if draw(st.integers(0, 5)) or key == GPU_RESOURCE}
    return {"name": name, "image": "train:1", "resources": {"requests": kept, **limits}}


@st.composite
def _templates(draw: st.DrawFn) -> Json:
    selector = {
        key: draw(st.sampled_from(values)) for key, values in _VALUES.items() if not draw(st.integers(0, 6))
    }
    terms = (
        draw(st.lists(st.lists(_expressions(), max_size=2), max_size=2))
        if not draw(st.integers(0, 2))
        else []
    )
    written: Json = {
        "containers": [
            draw(_containers("train")),
            *([draw(_containers("beside"))] if draw(st.booleans()) else []),
        ],
        "tolerations": draw(st.lists(tolerations(), max_size=2)),
        **({"affinity": required_affinity(*terms)} if terms else {}),
    }
    return pod_template({CAPACITY_TYPE: "spot", **selector}, spec=written)


@st.composite
def walking_jobs(draw: st.DrawFn, namespace: str) -> Json:
    """A JobSet of one job or two, all of which follow from the first tier."""
    jobs: list[Json] = []
    for place in range(draw(st.integers(1, 2))):
        pods = draw(st.sampled_from((1, 2, 3, 5, 9)))
        sizes: Json = {"parallelism": pods, "completions": pods}
        jobs.append(replicated_job(draw(_templates()), f"worker-{place}", job=sizes))
    return jobset(*jobs, namespace=namespace, labels={FOLLOWS: "true"})
