"""Draws the pods, jobs and ladders that admission judges."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import strategies as st

from pulumi_holdfast.kubernetes.admission.rules import DO_NOT_DISRUPT
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import (
    ARCH,
    CAPACITY_TYPE,
    EFA_RESOURCE,
    FOLLOWS,
    GPU_NODE,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    POOL,
    ZONE,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import UNLIMITED, Ladder, Tier
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE
from pulumi_holdfast.ladder.taints import GPU, SPOT, Taint
from tests.support.builders.training_jobs import (
    container,
    expression,
    jobset,
    pod,
    replicated_job,
    required_affinity,
)
from tests.support.json_objects import obj
from tests.support.strategies.placed_pods import exclusive_topologies, placed

#: The keys admission knows with values it knows and others, and a key it does not know with a value it does.
VALUES = {
    CAPACITY_TYPE: ("spot", "on-demand", "reserved"),
    POOL: ("cpu", "cpu-spot", "a100", "a100-spot", "unheard-of"),
    "topology.kubernetes.io/zone": ("spot", "zone-a"),
}
KEYS = tuple(VALUES)


@st.composite
def expressions(draw: st.DrawFn) -> Json:
    """An expression of a node affinity term."""
    key = draw(st.sampled_from(KEYS))
    operator = draw(st.sampled_from(("In", "In", "NotIn", "Exists", "DoesNotExist")))
    if operator in {"Exists", "DoesNotExist"}:
        return expression(key, operator)
    return expression(key, operator, *draw(st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=3)))


@st.composite
def terms(draw: st.DrawFn) -> Json:
    """A node affinity term, over labels or over fields."""
    if draw(st.integers(0, 5)) == 0:
        return {"matchFields": [expression("metadata.name", "In", "spot")]}
    return {"matchExpressions": draw(st.lists(expressions(), min_size=1, max_size=3))}


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    """No affinity, one that is not about nodes, a preference, or a requirement."""
    match draw(st.sampled_from(("none", "pods", "preferred", "required", "required"))):
        case "pods":
            return {"podAntiAffinity": {}}
        case "preferred":
            preference: Json = {"weight": 1, "preference": draw(terms())}
            return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
        case "required":
            selector: Json = {"nodeSelectorTerms": draw(st.lists(terms(), min_size=1, max_size=3))}
            return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
        case _:
            return {}


@st.composite
def node_selectors(draw: st.DrawFn) -> Json:
    """A node selector over some of the keys."""
    chosen = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    return {key: draw(st.sampled_from(VALUES[key])) for key in chosen}


@st.composite
def tolerations(draw: st.DrawFn) -> Json:
    """A toleration that the API accepts, near to those admission adds."""
    key = draw(st.sampled_from(("", CAPACITY_TYPE, GPU_RESOURCE, "example.com/other")))
    operator = draw(st.sampled_from(("", "Equal", "Exists"))) if key else "Exists"
    value = "" if operator == "Exists" else draw(st.sampled_from(("", "spot", "present", "other")))
    effect = draw(st.sampled_from(("", "NoSchedule", "NoExecute", "PreferNoSchedule")))
    fields = {"key": key, "operator": operator, "value": value, "effect": effect}
    return {field: given for field, given in fields.items() if given}


@st.composite
def containers(draw: st.DrawFn, name: str) -> Json:
    """A container with some GPUs, with none, or with 0 of them in so many words."""
    return container(draw(st.sampled_from((None, None, "0", "1", "8"))), name=name)


@st.composite
def annotation_sets(draw: st.DrawFn) -> dict[str, str]:
    """Annotations, among them the one that spot pods must not carry."""
    names = draw(st.lists(st.sampled_from((DO_NOT_DISRUPT, "example.com/note")), unique=True))
    return {name: draw(st.sampled_from(("true", ""))) for name in names}


@st.composite
def pods(draw: st.DrawFn, namespace: str) -> Json:
    """A pod that the API accepts."""
    fields: dict[str, JsonValue] = {
        "nodeSelector": draw(node_selectors()),
        "affinity": draw(affinities()),
        "tolerations": draw(st.lists(tolerations(), max_size=3)),
        "initContainers": draw(st.lists(containers("fetch"), max_size=1)),
    }
    beside = draw(st.lists(containers("beside"), max_size=1))
    written = {field: given for field, given in fields.items() if given or draw(st.booleans())}
    return pod(
        namespace=namespace,
        annotations=draw(annotation_sets()),
        containers=[draw(containers("train")), *beside],
        spec=written,
    )


#: Another cluster.
CLUSTER = "elsewhere"
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
    Machine(name="small", vcpus=8, memory_mib=16 * 1024, gpus=0, hourly_price=1.0, arch="arm64"),
    Machine(name="wide", vcpus=32, memory_mib=32 * 1024, gpus=0, hourly_price=2.0),
    Machine(name="deep", vcpus=16, memory_mib=128 * 1024, gpus=1, hourly_price=4.0, accelerator="a10g"),
    Machine(name="eight", vcpus=96, memory_mib=1_153_000, gpus=8, hourly_price=32.0, accelerator="a100"),
)
#: The labels that a pool may declare, one of them in a vendor's domain.
_DECLARED = {
    "disk": ("fast", "slow"),
    "generation": ("4", "5", "new"),
    GPU_NODE: ("true", "false"),
    "example.com/rack": ("7",),
}
_ZONES = ("east-a", "east-b", "east-c")
#: The labels that a job may select. No pool declares the last three: its machine types and zones decide them.
_VALUES = {**_DECLARED, INSTANCE_TYPE: ("deep", "small", "p5"), ARCH: ("amd64", "arm64"), ZONE: _ZONES}
#: What else containers may request: of bytes, of pieces, of accelerators that no table has, and of resources without a known meaning.
DEVICES = {
    EPHEMERAL_STORAGE: ("10Gi", "101Gi", "100Gi"),
    "hugepages-2Mi": ("512Mi",),
    "google.com/tpu": ("4",),
    "amd.com/gpu": ("1", "0"),
    "example.com/fpga": ("1", "9000000000000000000"),
    "vpc.amazonaws.com/pod-eni": ("1",),
    EFA_RESOURCE: ("1",),
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
    labels = {key: draw(st.sampled_from(values)) for key, values in _DECLARED.items() if draw(st.booleans())}
    machines = draw(
        st.lists(st.sampled_from(MACHINES), min_size=1, max_size=3, unique_by=lambda each: each.name)
    )
    provisioner = draw(st.sampled_from((*Provisioner, None)))
    taints = draw(st.lists(st.sampled_from(TAINTS), max_size=3, unique=True))
    zones = draw(st.lists(st.sampled_from(_ZONES), max_size=2, unique=True))
    return summarize_pool(pool, machines, taints, labels, provisioner=provisioner, zones=zones)


@st.composite
def known_ladders(draw: st.DrawFn) -> KnownLadder:
    """A ladder that the API server takes, most of its pools known, with tiers elsewhere that have names of pools here."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    known = {name: draw(facts(name)) for name in names if draw(st.integers(0, 4))}
    on_demand = {name for name, pool in known.items() if pool.capacity is CapacityType.ON_DEMAND}
    tiers = [
        draw(_tiers(name, is_last=name == names[-1], may_be_spot=name not in on_demand)) for name in names
    ]
    if len(names) > 1:
        there = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
        place = draw(st.integers(1, len(names) - 1))
        tiers[place:place] = [
            Tier(pool=name, cluster=CLUSTER, procurement_timeout=timedelta(minutes=5)) for name in there
        ]
    return KnownLadder(ladder=Ladder(tiers=tuple(tiers)), pools=known)


@st.composite
def _tiers(draw: st.DrawFn, name: str, *, is_last: bool, may_be_spot: bool) -> Tier:
    if is_last:
        return Tier(pool=name, max_failures=draw(st.sampled_from((None, UNLIMITED))))
    wait = timedelta(minutes=5)
    timeout = wait if may_be_spot else draw(st.sampled_from((None, wait)))
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
        "cpu": draw(st.sampled_from(("100m", "0.57", "1", "7900m", "16", "40", "8E"))),
        "memory": draw(st.sampled_from(("100Mi", "1500M", "1.5Gi", "20Gi", "123456789", "500Gi", "7Ei"))),
    }
    named = draw(st.sampled_from((*DEVICES, "", "", "", "", "", "")))
    devices = {named: draw(st.sampled_from(DEVICES[named]))} if named else {}
    gpus = draw(st.sampled_from(("", "", "1", "8")))
    requests = {**asked, **devices, **({GPU_RESOURCE: gpus} if gpus else {})}
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
    return draw(placed({CAPACITY_TYPE: "spot", **selector}, written))


def _small_templates() -> st.SearchStrategy[Json]:
    """Templates whose pods any machine has room for several of: only their placement beside each other keeps one away."""
    small: Json = {
        "name": "train",
        "image": "train:1",
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
    }
    return placed({CAPACITY_TYPE: "spot"}, {"containers": [small], "tolerations": [{"operator": "Exists"}]})


@st.composite
def walking_jobs(draw: st.DrawFn, namespace: str) -> Json:
    """A JobSet of one to three jobs, all of which follow from the first tier; some wait for earlier ones."""
    jobs: list[Json] = []
    templates = draw(st.sampled_from((_templates(), _templates(), _small_templates())))
    for place in range(draw(st.sampled_from((1, 1, 2, 2, 3)))):
        pods = draw(st.sampled_from((1, 2, 3, 5, 9)))
        alone = draw(st.booleans())
        sizes: Json = {"parallelism": 1 if alone else pods, "completions": 1 if alone else pods}
        job = replicated_job(draw(templates), f"worker-{place}", job=sizes)
        metadata: Json = {"annotations": draw(exclusive_topologies())}
        job = {
            **job,
            "replicas": pods if alone else 1,
            "template": {**obj(job["template"]), "metadata": metadata},
        }
        earlier = [f"worker-{each}" for each in range(place)]
        waits = draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if earlier else []
        status = st.sampled_from(("Ready", "Complete"))
        depends: list[JsonValue] = [{"name": name, "status": draw(status)} for name in waits]
        jobs.append({**job, "dependsOn": depends} if depends else job)
    return jobset(
        *jobs, namespace=namespace, labels={FOLLOWS: "true"}, annotations=draw(exclusive_topologies())
    )
