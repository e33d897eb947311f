"""Properties of the rules on pools: each agrees with a one-line model on any pool."""

from hypothesis import given
from hypothesis import strategies as st

from pack import RULES
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import reported
from tests.support.builders.stack_resources import (
    NODE_POOL_TYPE,
    aks_cluster,
    aks_node_pool,
    aks_pool,
    ladder,
    namespace,
    resource,
)

NAMES = {rule.name for rule in RULES}
KINDS = st.sets(st.sampled_from(("spot", "on-demand")), min_size=1)
EFFECTS = st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule"))
CPU, GPU = "c7i.4xlarge", "p4d.24xlarge"
TYPES = st.sets(st.sampled_from(("m7i.xlarge", CPU, "c7a.4xlarge", "c6i.4xlarge")), min_size=1)


def reports(rule: str, *resources: StackResource, **settings: object) -> bool:
    """Whether a rule has a finding about these resources."""
    assert rule in NAMES
    return rule in reported(resources, **settings)


def one_of(key: str, *values: str) -> Value:
    """A requirement of a NodePool."""
    return {"key": key, "operator": "In", "values": sorted(values)}


def karpenter(
    name: str,
    kinds: set[str],
    *,
    types: set[str] | None = None,
    taints: list[Value] | None = None,
    group: str = "karpenter.kwok.sh",
    zones: set[str] | None = None,
    disruption: Value = None,
    expires: Value = "Never",
) -> StackResource:
    """A NodePool."""
    required = [one_of("karpenter.sh/capacity-type", *kinds)]
    required.append(one_of("node.kubernetes.io/instance-type", *(types or {CPU})))
    if zones is not None:
        required.append(one_of("topology.kubernetes.io/zone", *zones))
    spec: Value = {
        "requirements": required,
        "taints": taints or [],
        "nodeClassRef": {"group": group, "name": "default"},
        "expireAfter": expires,
    }
    template: Value = {"metadata": {"labels": {POOL: name}}, "spec": spec}
    return resource(
        NODE_POOL_TYPE,
        name,
        {"metadata": {"name": name}, "spec": {"template": template, "disruption": disruption}},
    )


def taint(value: str, effect: str) -> Value:
    """A taint with that value."""
    return {"key": "team", "value": value, "effect": effect}


@given(kinds=KINDS, effects=st.lists(EFFECTS, max_size=2), says_spot=st.booleans())
def test_spot_pool_has_a_taint_and_on_demand_pool_has_no_spot_taint(
    kinds: set[str], effects: list[str], says_spot: bool
) -> None:
    taints = [taint("spot" if says_spot else "nlp", effect) for effect in effects]
    keeps_away = any(effect != "PreferNoSchedule" for effect in effects)
    wrong = {frozenset({"spot"}): not keeps_away, frozenset({"on-demand"}): says_spot and bool(taints)}.get(
        frozenset(kinds), True
    )
    assert reports("spot-pools-tainted", karpenter("a", kinds, taints=taints)) is wrong


@given(kinds=KINDS, types=TYPES, zones=st.none() | st.sets(st.sampled_from("abc"), min_size=1))
def test_a_market_is_a_machine_type_in_a_zone(
    kinds: set[str], types: set[str], zones: set[str] | None
) -> None:
    # Karpenter's simulated cloud has zones of its own; those of an AWS network are not known.
    pool = karpenter("a", kinds, types=types, zones=zones, group="karpenter.k8s.aws")
    alone = len(types) == 1 and zones is not None and len(zones) == 1
    assert reports("spot-pools-diversified", pool) is ("spot" in kinds and alone)


@given(pools=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=3))
def test_default_pool_is_on_demand_cpu_without_taints(pools: list[tuple[bool, bool, bool]]) -> None:
    made = [
        karpenter(
            f"p{index}",
            {"spot" if spot else "on-demand"},
            types={GPU if gpus else CPU},
            taints=[taint("nlp", "NoSchedule")] if tainted else [],
        )
        for index, (spot, gpus, tainted) in enumerate(pools)
    ]
    wanted = not any(not spot and not gpus and not tainted for spot, gpus, tainted in pools)
    assert reports("default-pool-exists", namespace(), *made) is wanted, f"{pools}"


@given(
    policy=st.sampled_from((None, "WhenEmpty", "WhenEmptyOrUnderutilized")),
    expires=st.sampled_from((None, "Never", "720h")),
    budget=st.sampled_from((None, "0", "1", "10%")),
    schedule=st.none() | st.just("0 9 * * *"),
    is_tier=st.booleans(),
)
def test_pool_of_a_ladder_has_no_voluntary_disruption(
    policy: str | None, expires: str | None, budget: str | None, schedule: str | None, is_tier: bool
) -> None:
    budgets: list[Value] = (
        [] if budget is None else [{"nodes": budget, "reasons": ["Drifted"], "schedule": schedule}]
    )
    pool = karpenter(
        "a100" if is_tier else "other",
        {"on-demand"},
        disruption={"consolidationPolicy": policy, "budgets": budgets},
        expires=expires,
    )
    safe = policy == "WhenEmpty" and expires == "Never" and budget == "0" and schedule is None
    assert reports("no-voluntary-disruption", ladder(), pool) is (is_tier and not safe)


@given(
    queue=st.sampled_from(("", "notices", None)),
    noticed=st.booleans(),
    targeted=st.booleans(),
    kinds=KINDS,
    on_aws=st.booleans(),
)
def test_karpenter_with_spot_on_aws_has_an_interruption_queue(
    queue: str | None, noticed: bool, targeted: bool, kinds: set[str], on_aws: bool
) -> None:
    pool = karpenter("a", kinds, group="karpenter.k8s.aws" if on_aws else "karpenter.kwok.sh")
    release = resource(
        "kubernetes:helm.sh/v3:Release",
        "karpenter",
        {"chart": "karpenter", "version": "1.14.1", "values": {"settings": {"interruptionQueue": queue}}},
    )
    pattern = '{"detail-type": ["EC2 Spot Instance Interruption Warning"]}' if noticed else "{}"
    rule = resource("aws:cloudwatch/eventRule:EventRule", "r", {"name": "r", "eventPattern": pattern})
    target = resource(
        "aws:cloudwatch/eventTarget:EventTarget", "t", {"rule": "r" if targeted else "other", "arn": "q"}
    )
    missing = not queue or not noticed or not targeted
    found = reports("interruption-queue-configured", pool, release, rule, target)
    assert found is (on_aws and "spot" in kinds and missing)


@given(kinds=KINDS, on_aws=st.booleans(), made=st.booleans(), declared=st.booleans())
def test_spot_on_aws_requires_the_service_linked_role(
    kinds: set[str], on_aws: bool, made: bool, declared: bool
) -> None:
    pool = karpenter("a", kinds, group="karpenter.k8s.aws" if on_aws else "karpenter.kwok.sh")
    role = resource(
        "aws:iam/serviceLinkedRole:ServiceLinkedRole", "r", {"awsServiceName": "spot.amazonaws.com"}
    )
    elsewhere = ["role"] if declared else []
    found = reports(
        "spot-service-linked-role-exists", pool, *([role] if made else []), madeElsewhere=elsewhere
    )
    assert found is (on_aws and "spot" in kinds and not made and not declared)


@given(auto=st.booleans(), scaling=st.booleans(), node_pool=st.booleans())
def test_aks_cluster_has_only_pools_of_its_autoscaling_mode(
    auto: bool, scaling: bool, node_pool: bool
) -> None:
    cluster = aks_cluster({"mode": "Auto", "defaultNodePools": "None"} if auto else None)
    pools = [aks_pool("a100", enableAutoScaling=scaling), *([aks_node_pool()] if node_pool else [])]
    wrong = (auto and scaling) or (not auto and node_pool)
    assert reports("aks-single-autoscaling-mode", cluster, *pools) is wrong
