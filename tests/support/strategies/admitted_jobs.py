"""Draws pods, jobs and ladders, and states without CEL what admission must decide about them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from hypothesis import strategies as st

from holdfast.components.admission.job_validation import LONGEST_MESSAGE, MOST_SENTENCES, job_validations
from holdfast.components.admission.rules import DO_NOT_DISRUPT, NodeSelection
from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.policies.inputs.jobs.jobs import declared_jobs
from holdfast.scheduling.json import UNKNOWN, Json, JsonValue
from holdfast.scheduling.labels import (
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
from holdfast.scheduling.ladder import UNLIMITED, Ladder, Tier
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool, PoolSummary, summarize_pool
from holdfast.scheduling.quantities import parse_quantity
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.affinity import Requirement
from holdfast.scheduling.reachability.checks import Failed
from holdfast.scheduling.reachability.facts import AddedToleration, Limits, TierFacts
from holdfast.scheduling.reachability.facts import PoolFacts as DeclaredFacts
from holdfast.scheduling.reachability.label_values import LabelValues
from holdfast.scheduling.reachability.machine_capacity import Provisioner, listed_label_values, non_dominated
from holdfast.scheduling.reachability.shape import (
    EPHEMERAL_STORAGE,
    MOST_REQUESTED,
    Resources,
    Shape,
    is_in_bytes,
)
from holdfast.scheduling.reachability.together import check_together
from holdfast.scheduling.reachability.walk import Outcome, check_tier, walk_together
from holdfast.scheduling.taints import GPU, SPOT, Taint, Toleration
from tests.support.builders.program_jobs import JOB_SET, declared
from tests.support.builders.training_jobs import (
    POOLS,
    RULES,
    container,
    expression,
    jobset,
    ladder,
    pod,
    replicated_job,
    required_affinity,
)
from tests.support.json_objects import obj, objects
from tests.support.strategies.placed_pods import exclusive_topologies, placed

_API_VERSION: Final = "admissionregistration.k8s.io/v1"


def validation_objects(capacity: Sequence[NodeSelection], claims: Sequence[str] = ()) -> list[Json]:
    """The policies that judge jobs and their bindings, on a cluster whose pods are under the usual rules."""
    return [
        {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": each.name}, "spec": spec}
        for each in job_validations(RULES, capacity, claims)
        for kind, spec in (
            ("ValidatingAdmissionPolicy", each.policy),
            ("ValidatingAdmissionPolicyBinding", each.binding),
        )
    ]


def facts_of(pool: Pool, *machines: Machine, labels: Mapping[str, str] | None = None) -> PoolSummary:
    """What is known of a pool of these machines."""
    return summarize_pool(pool, machines, pool.taints, labels, provisioner=Provisioner.LOCAL)


def ladder_with(known: Mapping[str, PoolSummary], written: Ladder, namespace: str) -> Json:
    """The ladder of a namespace with the facts of its pools."""
    return {**ladder(namespace=namespace), "spec": ladder_spec(written, known)}


def shapes_of(jobset: Json) -> tuple[Shape, ...]:
    """The shapes of a JobSet all of whose jobs follow, with those that end before they begin."""
    ended: dict[str, frozenset[str]] = {}
    items = objects(obj(jobset["spec"])["replicatedJobs"])
    for item in items:
        waits = {str(each["name"]): each["status"] for each in objects(item.get("dependsOn"))}
        direct = {name for name, status in waits.items() if status == "Complete"}
        ended[str(item["name"])] = frozenset(direct).union(*(ended[name] for name in waits))
    return tuple(
        replace(_shape(str(item["name"]), item), after=ended[str(item["name"])], one_per_node=apart)
        for item, apart in zip(items, _one_per_node(jobset), strict=True)
    )


def _one_per_node(jobset: Json) -> Iterator[bool]:
    """Whether no two pods of a template share a node, as the policy pack reads it."""
    (job,) = declared_jobs([declared(JOB_SET, jobset)])
    for each in job.all_templates:
        shape = each.shape
        yield shape is not UNKNOWN and shape.one_per_node


def _shape(name: str, item: Json) -> Shape:
    job = obj(obj(item["template"])["spec"])
    pod = obj(obj(job["template"])["spec"])
    # Admission replaces the capacity type by the pool of the tier.
    selector = {
        key: str(value)
        for key, value in obj(pod.get("nodeSelector")).items()
        if key not in {POOL, CAPACITY_TYPE}
    }
    required = obj(
        obj(obj(pod.get("affinity")).get("nodeAffinity")).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
    )
    return Shape(
        name=name,
        pods=int(str(item.get("replicas", 1))) * int(str(job.get("parallelism", 1))),
        requests=_requests(pod),
        selector=selector,
        affinity=tuple(
            tuple(_requirement(each) for each in objects(term.get("matchExpressions")))
            for term in objects(required.get("nodeSelectorTerms"))
        ),
        tolerations=tuple(_toleration(each) for each in objects(pod.get("tolerations"))),
    )


def _requirement(expression: Json) -> Requirement:
    values = expression.get("values", ())
    return Requirement(
        key=str(expression["key"]),
        operator=str(expression["operator"]),
        values=tuple(str(value) for value in values) if isinstance(values, list | tuple) else (),
    )


def _toleration(written: Json) -> Toleration:
    exists = written.get("operator") == "Exists"
    return Toleration(
        key=str(written.get("key", "")),
        value=None if exists else str(written.get("value", "")),
        effect=str(written.get("effect", "")),
    )


def _requests(pod: Json) -> Resources:
    asked = [obj(obj(each.get("resources")).get("requests")) for each in objects(pod["containers"])]

    def sum_of(resource: str, unit: int) -> int:
        return math.ceil(sum(parse_quantity(each.get(resource, "0")) for each in asked) * unit)

    devices = {
        name: math.ceil(sum_of(name, 1) / (2**20 if is_in_bytes(name) else 1))
        for name in {*_DEVICES} - {EFA_RESOURCE}
    }
    return Resources(
        cpu_millis=min(sum_of("cpu", 1000), MOST_REQUESTED),
        memory_mib=min(math.ceil(sum_of("memory", 1) / 2**20), MOST_REQUESTED),
        gpus=sum_of(GPU_RESOURCE, 1),
        efa=sum_of(EFA_RESOURCE, 1),
        devices={name: min(amount, MOST_REQUESTED) for name, amount in devices.items() if amount},
    )


def tiers_of(written: Ladder, known: Mapping[str, PoolSummary]) -> tuple[TierFacts, ...]:
    """The tiers of a ladder as the API server sees them; of a pool without facts nothing is known."""
    return tuple(
        TierFacts(
            number=number,
            pool=tier.pool,
            max_failures=tier.max_failures,
            has_timeout=tier.procurement_timeout is not None,
            node_pools=(_declared(tier.pool, known[tier.pool]),)
            if tier.pool in known and not tier.cluster
            else (),
            may_be_external=tier.pool not in known,
            cluster=tier.cluster,
        )
        for number, tier in enumerate(written.tiers, start=1)
    )


def _declared(name: str, facts: PoolSummary) -> DeclaredFacts:
    names = {pool.name: pool for pool in POOLS}
    by_name = names[name].taints if name in names else ()
    return DeclaredFacts(
        name=name,
        title=f"pool {name}",
        capacity_types=frozenset({facts.capacity.value}),
        labels={
            **facts.labels,
            **{
                key: LabelValues(values=frozenset(values))
                for key, values in listed_label_values(facts.machine_capacities, facts.zones).items()
            },
        },
        taints=facts.taints,
        # A FallbackPolicy does not list which labels follow from which machine type.
        machines=tuple(replace(each, labels={}) for each in non_dominated(facts.machine_capacities)),
        limits=Limits(nodes=facts.max_nodes),
        added_tolerations=(
            *(AddedToleration(toleration=Toleration.of(taint)) for taint in by_name),
            AddedToleration(toleration=Toleration.of(GPU), for_gpu_pods=True),
        ),
    )


def refusal_of(jobset: Json, tiers: Sequence[TierFacts]) -> str | None:
    """In which words a JobSet that follows from the first tier is refused; None where it is let in."""
    shapes = shapes_of(jobset)
    found = walk_together(shapes, tiers)
    if found.outcome not in {Outcome.STUCK, Outcome.FALLS_OFF}:
        return None
    message = " ".join([*_sentences(shapes, found.steps[-1].tier, tiers)][:MOST_SENTENCES])
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"


def _sentences(shapes: Sequence[Shape], tier: TierFacts, tiers: Sequence[TierFacts]) -> Iterator[str]:
    is_last = tier is tiers[-1]
    where = messages.TIER.format(number=tier.number, pool=tier.pool)
    found = [(shape.title, [*check_tier(shape, tier, is_last=is_last)]) for shape in shapes]
    found.append((messages.THE_JOB, [*check_together(shapes, tier.node_pools[0])]))
    for who, results in found:
        broken = [f"{each.reason}. {each.fix}" for each in results if isinstance(each, Failed)]
        if broken:
            why = " ".join(broken if is_last else [*broken, messages.NO_WAY_PAST])
            yield messages.CANNOT_FALL_BACK.format(who=who, where=where, why=why)


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
_DEVICES = {
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
    named = draw(st.sampled_from((*_DEVICES, "", "", "", "", "", "")))
    devices = {named: draw(st.sampled_from(_DEVICES[named]))} if named else {}
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
