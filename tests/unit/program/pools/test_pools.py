"""The pools that each cloud's reader finds in a stack."""

import re
from collections.abc import Mapping

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL, SPOT
from pulumi_holdfast.ladder.reachability.affinity import LabelFact, LabelValues
from pulumi_holdfast.ladder.reachability.checks import CheckResult, Failed, Undetermined, check_pool
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.program.pools.aks import aks_pools
from pulumi_holdfast.program.pools.all_pools import all_pools, declared_pools
from pulumi_holdfast.program.pools.eks import NODE_GROUP
from pulumi_holdfast.program.pools.gke import NODE_POOL, gke_pools
from pulumi_holdfast.program.resources import Value, at
from tests.support.builders.policy_programs import put
from tests.support.builders.stack_resources import (
    AGENT_POOL_TYPE,
    aks_cluster,
    aks_pool,
    gke_pool,
    node_pool,
    resource,
)
from tests.support.sources import ROOT

TEAM = "example.com/team"


def facts(*requirements: Value, labels: Value = None) -> PoolFacts:
    (read,) = declared_pools([node_pool("a100", *requirements, labels=labels)])
    return read.facts


def obj_of(labels: Mapping[str, LabelFact] | Unknown) -> Mapping[str, LabelFact]:
    assert labels is not UNKNOWN
    return labels


def team(operator: Value, *values: Value) -> Value:
    return {"key": TEAM, "operator": operator, "values": list(values)}


def selects(requirement_of_team: Value) -> list[type]:
    """What the selector check yields for pods that select the team `vision`."""
    job = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024), selector={TEAM: "vision"})
    return [type(each) for each in check_pool(job, facts(requirement_of_team)) if each.check == "selector"]


@pytest.mark.parametrize(
    ("requirement_of_team", "found"),
    [
        (team("In", "vision", "audio"), []),
        (team("NotIn", "audio"), []),
        (team("Exists"), []),
        (team("In", "text", "audio"), [Failed]),
        (team("NotIn", "vision"), [Failed]),
        (team("DoesNotExist"), [Failed]),
        (team("In", UNKNOWN), [Undetermined]),
        (team(UNKNOWN, "vision"), [Undetermined]),
        ({"key": UNKNOWN, "operator": "In", "values": ["vision"]}, [Undetermined]),
        (UNKNOWN, [Undetermined]),
    ],
)
def test_karpenter_sets_the_value_that_pods_select_if_its_requirement_allows_it(
    requirement_of_team: Value, found: list[type]
) -> None:
    assert selects(requirement_of_team) == found


@pytest.mark.parametrize(
    ("group", "expected"), [("karpenter.k8s.aws", Failed), ("karpenter.example.com", Undetermined)]
)
def test_label_that_karpenter_does_not_know_is_on_none_of_its_nodes(
    group: str, expected: type[CheckResult]
) -> None:
    pool = node_pool("a100")
    put(
        pool,
        {"group": group, "kind": "NodeClass", "name": "default"},
        "spec",
        "template",
        "spec",
        "nodeClassRef",
    )
    (read,) = declared_pools([pool])
    job = Shape(
        requests=Resources(cpu_millis=1000, memory_mib=1024), selector={"nvidia.com/gpu.product": "A100"}
    )
    found = [each for each in check_pool(job, read.facts) if each.check == "selector"]
    assert [type(each) for each in found] == [expected]


def test_label_that_contradicts_a_requirement_is_not_known() -> None:
    read = facts(team("In", "audio"), labels={TEAM: "vision"})
    assert obj_of(read.labels)[TEAM] is UNKNOWN
    assert obj_of(facts(team("DoesNotExist")).labels)[TEAM] is not UNKNOWN


@pytest.mark.parametrize(
    ("operator", "kinds", "found"),
    [
        ("In", ["reserved"], [Undetermined]),
        ("NotIn", ["on-demand", "spot"], [Undetermined]),
        ("NotIn", ["spot"], []),
    ],
)
def test_reserved_capacity_alone_is_not_judged_without_its_node_class(
    operator: str, kinds: list[Value], found: list[type]
) -> None:
    read = facts({"key": CAPACITY_TYPE, "operator": operator, "values": kinds})
    job = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024))
    assert [type(each) for each in check_pool(job, read) if each.check == "capacity"] == found


@pytest.mark.parametrize(
    ("requirements", "declared", "value", "reason"),
    [
        ([team("In", "vision")], None, "vision", "every node has the one value"),
        ([team("In", "vision", "audio")], {TEAM: "vision"}, "vision", "a label is a requirement, too"),
        ([team("In", "vision"), team("NotIn", "vision")], None, LabelValues(), "they contradict each other"),
        ([team("DoesNotExist")], None, LabelValues(), "no node has it"),
    ],
)
def test_label_of_a_pool_is_what_all_its_requirements_leave(
    requirements: list[Value], declared: Value, value: object, reason: str
) -> None:
    labels = facts(*requirements, labels=declared).labels
    assert isinstance(labels, dict)
    assert labels[TEAM] == value, reason


def test_pool_has_the_name_that_the_cloud_shows() -> None:
    (gke,) = gke_pools([gke_pool("a100")])
    assert (gke.label, gke.node_pool) == ("a100", "a100")
    (aks,) = aks_pools([aks_pool("a100-spot")])
    assert (aks.label, aks.node_pool) == ("a100-spot", "a100spot")


def test_pool_without_a_declared_name_has_the_name_of_its_resource() -> None:
    (gke,) = gke_pools([resource(NODE_POOL, "pool-a100", {"nodeConfig": {"labels": {POOL: "a100"}}})])
    (aks,) = aks_pools([resource(AGENT_POOL_TYPE, "pool-a100", {"nodeLabels": {POOL: "a100"}})])
    assert gke.node_pool == aks.node_pool == "pool-a100"


def test_unknown_profiles_of_an_aks_cluster_make_no_pools() -> None:
    assert aks_pools([aks_cluster(agentPoolProfiles=UNKNOWN)]) == ()


EKS_GROUP: Value = {
    "nodeGroupName": "gpus",
    "capacityType": "SPOT",
    "instanceTypes": ["p4d.24xlarge"],
    "labels": {POOL: "a100-spot"},
    "taints": [{"key": "spot", "value": "true", "effect": "NO_SCHEDULE"}],
    "scalingConfig": {"maxSize": 4.0},
}
AUTO: Value = {"computeConfig": {"enabled": True, "nodePools": ["general-purpose", "system"]}}
GKE_CLUSTER = "gcp:container/cluster:Cluster"


def test_node_group_of_eks_is_read_as_a_pool() -> None:
    assert isinstance(EKS_GROUP, dict)
    (read,) = declared_pools([resource(NODE_GROUP, "gpus", EKS_GROUP)])
    assert (read.label, read.facts.capacity_types) == ("a100-spot", frozenset({SPOT}))
    assert read.facts.taints == (Taint(key="spot", value="true", effect="NoSchedule"),)
    assert read.facts.limits.nodes == 4
    assert isinstance(read.facts.machines, tuple)


def test_pools_inside_a_cluster_are_read() -> None:
    assert isinstance(AUTO, dict)
    (general, system) = all_pools([resource("aws:eks/cluster:Cluster", "auto", AUTO)])
    assert general.facts.taints == ()
    assert system.facts.taints
    spot: Value = {"name": "gpus", "nodeConfig": {"spot": True, "labels": {POOL: "a100-spot"}}}
    (inline,) = all_pools([resource(GKE_CLUSTER, "gke", {"nodePools": [spot]})])
    assert inline.labels_path == "nodePools[0].nodeConfig.labels"
    assert inline.facts.capacity_types == frozenset({SPOT})
    (default,) = all_pools(
        [resource(GKE_CLUSTER, "gke", {"initialNodeCount": 3.0, "location": "us-central1-a"})]
    )
    assert (default.node_pool, default.facts.limits.nodes) == ("default-pool", 3)
    for gone in ({"removeDefaultNodePool": True}, {"enableAutopilot": True}):
        assert all_pools([resource(GKE_CLUSTER, "gke", gone)]) == (), f"{gone}: it has none"
    user: Value = {"name": "gpus", "mode": "User", "nodeLabels": {POOL: "a100"}}
    assert [pool.label for pool in declared_pools([aks_cluster(agentPoolProfiles=[user])])] == ["a100"]


def test_system_pools_of_aks_are_not_for_jobs() -> None:
    stack = [aks_pool("system", mode="System"), aks_cluster(), aks_pool("a100")]
    assert [pool.label for pool in declared_pools(stack)] == ["a100"]
    assert len(all_pools(stack)) == 3


def pool_of(group: str, *requirements: Value, **spec: Value) -> PoolFacts:
    """What is read of a NodePool with these requirements, whose node class is of that API group."""
    pool = node_pool("a100", *requirements)
    template = at(pool.props, "spec", "template", "spec")
    assert isinstance(template, dict)
    template.update(nodeClassRef={"group": group}, **spec)
    (read,) = declared_pools([pool])
    return read.facts


def unmodeled(group: str, *keys: str, **spec: Value) -> tuple[str, ...]:
    """What is not judged of a NodePool with requirements on these labels, whose node class is of that API group."""
    return pool_of(group, *({"key": key, "operator": "Exists"} for key in keys), **spec).unmodeled


@pytest.mark.parametrize(
    ("group", "key", "is_named"),
    [
        ("karpenter.k8s.aws", "karpenter.k8s.aws/instance-family", False),
        ("karpenter.k8s.aws", "karpenter.k8s.aws/instance-famly", True),
        ("karpenter.k8s.aws", "eks.amazonaws.com/instance-family", True),
        ("karpenter.k8s.aws", "karpenter.sh/capacitytype", True),
        ("karpenter.k8s.aws", "example.com/instance-famly", False),
        ("eks.amazonaws.com", "eks.amazonaws.com/instance-family", False),
        ("eks.amazonaws.com", "karpenter.k8s.aws/instance-family", True),
        ("karpenter.azure.com", "karpenter.azure.com/sku-gpu-count", False),
        ("karpenter.azure.com", "karpenter.azure.com/sku-gpu-cout", True),
    ],
)
def test_pool_with_a_requirement_on_a_kept_label_that_its_provider_lacks_is_not_judged(
    group: str, key: str, is_named: bool
) -> None:
    named = any(key in each for each in unmodeled(group, key))
    assert named is is_named


@pytest.mark.parametrize(
    ("group", "zone", "is_named"),
    [
        ("karpenter.k8s.aws", "us-east-1a", False),
        ("karpenter.k8s.aws", "us-est-1a", True),
        ("karpenter.k8s.aws", "us-east-1z", True),
        ("karpenter.k8s.aws", "us-west-2-lax-1a", True),
        ("karpenter.k8s.aws", "cn-north-1a", False),
        ("karpenter.azure.com", "eastus-1", False),
        ("karpenter.azure.com", "eastus-9", True),
        ("karpenter.kwok.sh", "test-zone-a", False),
    ],
)
def test_zone_that_no_table_has_is_named(group: str, zone: str, *, is_named: bool) -> None:
    only: Value = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    assert any(zone in each for each in pool_of(group, only).unmodeled) is is_named


@pytest.mark.parametrize(
    ("group", "key", "value", "is_certain"),
    [
        ("karpenter.k8s.aws", "karpenter.k8s.aws/instance-family", "trn1", False),
        ("karpenter.k8s.aws", "karpenter.k8s.aws/instance-accelerator-name", "trainium", False),
        ("karpenter.azure.com", "karpenter.azure.com/sku-gpu-manufacturer", "amd", False),
        ("karpenter.k8s.aws", "karpenter.k8s.aws/instance-gpu-count", "3", True),
        ("karpenter.k8s.aws", "kubernetes.io/arch", "s390x", True),
    ],
)
def test_requirement_on_machines_that_no_table_has_is_not_known_to_fail(
    group: str, key: str, value: str, *, is_certain: bool
) -> None:
    found = pool_of(group, {"key": key, "operator": "In", "values": [value]})
    assert bool(found.unsatisfiable) is is_certain
    assert bool(found.unknown_machine_types) is not is_certain


def test_family_that_contradicts_its_machine_type_has_no_machine() -> None:
    family: Value = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g5"]}
    named: Value = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.large"]}
    assert pool_of("karpenter.k8s.aws", family, named).unsatisfiable


def test_size_of_an_agent_pool_may_be_in_any_case() -> None:
    (pool,) = aks_pools([aks_pool("a100", vmSize="standard_nc24ads_a100_v4")])
    assert not pool.facts.unknown_machine_types
    (listed,) = aks_pools([aks_pool("a100", vmSize="Standard_NC24ads_A100_v4")])
    assert pool.facts.machines == listed.facts.machines


@pytest.mark.parametrize(
    ("chart", "group"),
    [("karpenter-crds", "karpenter.k8s.aws"), ("karpenter-kwok-crds", "karpenter.kwok.sh")],
)
def test_labels_that_karpenter_admits_in_requirements_are_known(chart: str, group: str) -> None:
    definition = (
        ROOT
        / "components/pulumi_holdfast/kubernetes/charts"
        / chart
        / "files"
        / "karpenter.sh_nodepools.yaml"
    )
    # A long rule stands on several lines.
    rules = " ".join(definition.read_text("utf-8").split())
    admitted = re.search(rf"self in \[([^]]*)\] \|\| [^|]*endsWith\(\"{re.escape(group)}\"\)", rules)
    assert admitted
    assert unmodeled(group, *re.findall(r'"([^"]+)"', admitted[1])) == ()


@pytest.mark.parametrize(
    ("expiry", "is_named"), [("15m", True), ("1h", False), ("720h", False), ("Never", False), (None, False)]
)
def test_pool_whose_nodes_live_less_than_an_hour_is_not_judged(expiry: str | None, is_named: bool) -> None:
    named = any("expireAfter" in each for each in unmodeled("karpenter.k8s.aws", expireAfter=expiry))
    assert named is is_named
