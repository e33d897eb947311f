"""The rule on the end of training ladders, for pools of every cloud and values that a preview does not know."""

from collections.abc import Sequence

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL, TRAINING
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rule import MADE_ELSEWHERE, MADE_HERE, ON_DEMAND_POOLS, PACK_DEFAULTS
from rules.ladder_end import find_ladder_ends
from rules.reachability import find_notes
from tests.support.builders.stack_resources import (
    A100,
    A100_SPOT,
    FALLBACK_POLICY_TYPE,
    NAMESPACE_TYPE,
    NODE_POOL_TYPE,
    aks_cluster,
    aks_pool,
    capacity_requirement,
    compliant,
    gke_pool,
    ladder,
    namespace,
    node_pool,
    pools,
    resource,
    with_ladder,
    with_pools,
)

STAYS_ON_SPOT = {"pool": "a100-spot", "maxFailures": -1.0}
ON_DEMAND = capacity_requirement("on-demand")
IN_A_REQUIREMENT = [ON_DEMAND, {"key": POOL, "operator": "In", "values": ["a100"]}]


def labelled(operator: str, *values: Value) -> Value:
    """A requirement on the pool label."""
    return {"key": POOL, "operator": operator, "values": list(values)}


#: The settings of a program that makes all its pools, as in the profile `strict`.
ALL_HERE = {**PACK_DEFAULTS, MADE_HERE: ["pools"]}
AS_A_LABEL = {POOL: "a100", CAPACITY_TYPE: "on-demand"}


@pytest.mark.parametrize(
    ("case", "resources"),
    [
        ("a ladder that ends on on-demand", compliant()),
        ("a ladder of one on-demand tier", with_ladder(A100)),
        ("a last tier that says it stays on spot", with_ladder(STAYS_ON_SPOT)),
        ("a pool of on-demand or reserved nodes", with_pools(node_pool("a100", capacity_requirement("on-demand", "reserved")))),
        ("a pool that excludes spot", with_pools(node_pool("a100", capacity_requirement("spot", operator="NotIn")))),
        ("a pool labelled by a requirement", with_pools(node_pool("a100", *IN_A_REQUIREMENT, labels={}))),
        ("a pool with any label", with_pools(node_pool("any", ON_DEMAND, labelled("Exists"), labels={}))),
        ("a pool with any label but another", with_pools(node_pool("any", ON_DEMAND, labelled("NotIn", "h100"), labels={}))),
        ("a capacity type given as a label", with_pools(node_pool("a100", labels=AS_A_LABEL))),
        ("a pool made by two NodePools", with_pools(*(node_pool(name, ON_DEMAND, labels={POOL: "a100"}) for name in ("zone-a", "zone-b")))),
        ("a namespace that is not for training", [namespace(labels={}), *pools()]),
        ("a namespace that says it is not for training", [namespace(labels={"holdfast.dev/training": "false"})]),
        ("a namespace without labels", [resource("kubernetes:core/v1:Namespace", "web", {"metadata": {"name": "web"}})]),
        ("nothing at all", []),
    ],
)  # fmt: skip
def test_ladder_with_a_valid_end_passes(case: str, resources: Sequence[StackResource]) -> None:
    assert find_ladder_ends(resources) == (), f"{case}: no finding"


@pytest.mark.parametrize(
    ("given", "is_short"), [("30s", True), ("14m59s", True), ("15m", False), ("24h", False), ("soon", False)]
)
def test_ladder_that_gives_jobs_up_before_nodes_can_start_has_a_bad_end(given: str, is_short: bool) -> None:
    made = ladder()
    spec: Value = {"tiers": [A100_SPOT, A100], "giveUpAfter": given}
    found = find_ladder_ends(
        [namespace(), resource(made.type, "vision-ladder", {**made.props, "spec": spec}), *pools()]
    )
    assert [each.proven for each in found] == [True] * is_short
    assert all("Set giveUpAfter to 15m or more" in each.message for each in found)


def test_jobs_given_up_too_soon_are_found_although_the_end_is_not_known() -> None:
    made = ladder()
    spec: Value = {"tiers": [A100_SPOT, {"pool": UNKNOWN}], "giveUpAfter": "5m"}
    (found,) = find_ladder_ends(
        [namespace(), resource(made.type, "vision-ladder", {**made.props, "spec": spec}), *pools()]
    )
    assert found.proven
    assert "giveUpAfter: 5m" in found.message


def test_earlier_tier_whose_nodepool_lacks_the_label_is_named_with_its_fix() -> None:
    unlabelled = node_pool("a100-spot", capacity_requirement("spot"), labels={})
    stack = [namespace(), ladder([A100_SPOT, A100]), node_pool("a100", ON_DEMAND), unlabelled]
    said = [
        each.message for each in find_notes(stack, PACK_DEFAULTS) if "tier 1 of its ladder" in each.message
    ]
    assert len(said) == 1
    assert "lack the label holdfast.dev/pool: a100-spot" in said[0]


VIOLATIONS = [
    ("no ladder", [namespace(), *pools()], ["namespace 'vision'", "no FallbackPolicy named 'ladder'", "'a100'"]),
    ("a ladder elsewhere", [namespace(), ladder(namespace="tabular"), *pools()], ["namespace 'vision'", "no FallbackPolicy"]),
    ("a ladder in no namespace", [namespace(), ladder(namespace=None), *pools()], ["no FallbackPolicy"]),
    ("a ladder of another name", [namespace(), ladder(name="fast"), *pools()], ["named 'ladder' (it has 'fast', but"]),
    ("no tiers", with_ladder(), ["its ladder has no tiers", "`spec.tiers`"]),
    ("no list of tiers", [namespace(), ladder("a100"), *pools()], ["its ladder has no tiers"]),
    ("spot last", with_ladder(A100, A100_SPOT), ["(tier 2 of 2)", "pool 'a100-spot'", "makes spot nodes", "Append a tier", "'a100'", "maxFailures: -1"]),
    ("spot alone", with_ladder({"pool": "a100-spot"}), ["(tier 1 of 1)", "makes spot nodes"]),
    ("a pool that nothing makes", with_ladder(A100_SPOT, {"pool": "a1000"}), ["pool 'a1000'", "no NodePool of this program makes", "'a100'", "onDemandPools"]),
    ("a pool that nothing makes, with unlimited failures", with_ladder({"pool": "a1000", "maxFailures": -1}), ["pool 'a1000'", "no NodePool of this program makes"]),
    ("a ladder whose namespace another program makes", [ladder([A100_SPOT], namespace="web"), *compliant()], ["namespace 'web'", "makes spot nodes"]),
    ("a ladder whose namespace has another label", [namespace(labels={TRAINING: "True"}), ladder(), *pools()], ["namespace 'vision'", '"True", so its jobs do not follow its ladder']),
    ("a pool whose nodes lack the label", with_pools(node_pool("a100", ON_DEMAND, labels={})), ["lack the label holdfast.dev/pool: a100", "spec.template.metadata.labels"]),
    ("a malformed NodePool", with_pools(resource(NODE_POOL_TYPE, "a100", {"spec": "on-demand", "metadata": ["a100"]})), ["lack the label holdfast.dev/pool: a100"]),
    ("spot with an unknown requirement, which only excludes", with_pools(node_pool("a100", capacity_requirement("spot"), UNKNOWN)), ["makes spot nodes"]),
    ("no ladder for a namespace with an unknown name", [namespace(UNKNOWN), *pools()], ["'vision-namespace' (its resource's name)"]),
    ("a bad ladder of an unknown namespace", [namespace(), ladder([A100_SPOT], namespace=UNKNOWN), *pools()], list[str]()),
    ("a bad ladder with an unknown name", [namespace(), ladder([A100_SPOT], name=UNKNOWN), *pools()], list[str]()),
    ("a pool of both capacity types", with_pools(node_pool("a100", capacity_requirement("spot", "on-demand"))), ["makes on-demand or spot nodes"]),
    ("a pool of any capacity type", with_pools(node_pool("a100")), ["makes on-demand or reserved or spot nodes"]),
    ("a pool of no capacity type", with_pools(node_pool("a100", capacity_requirement("on-demand"), capacity_requirement("spot"))), ["makes no nodes"]),
    ("a pool made by two NodePools, one of them spot", with_pools(*pools(), node_pool("cheap", capacity_requirement("spot"), labels={POOL: "a100"})), ["NodePool 'cheap' makes spot nodes"]),
    ("a pool with any label but the one that jobs select", with_pools(node_pool("any", ON_DEMAND, labelled("NotIn", "a100"), labels={})), ["no NodePool of this program makes"]),
    ("a pool with a label that is a number", with_pools(node_pool("any", ON_DEMAND, labelled("Gt", "1"), labels={})), ["no NodePool of this program makes"]),
    ("a spot pool with any label", with_pools(*pools(), node_pool("any", capacity_requirement("spot"), labelled("Exists"), labels={})), ["NodePool 'any' makes spot nodes"]),
    ("a label that two requirements exclude", with_pools(pools()[0], node_pool("any", ON_DEMAND, labelled("In", "a100"), labelled("NotIn", "a100"), labels={})), ["no NodePool of this program makes"]),
    ("a tier without a pool", with_ladder(A100_SPOT, {}), ["(tier 2 of 2)", "`pool: None`"]),
    ("a tier with an empty pool", with_ladder({"pool": ""}), ["`pool: ''`"]),
    ("a tier that is no object", with_ladder(A100_SPOT, "a100"), ["is not an object"]),
    ("a patched namespace", [namespace(type_token="kubernetes:core/v1:NamespacePatch"), *pools()], ["no FallbackPolicy"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "resources", "parts"), VIOLATIONS, ids=[fault for fault, _, _ in VIOLATIONS]
)
def test_ladder_without_a_valid_end_is_a_violation_with_its_fix(
    fault: str, resources: Sequence[StackResource], parts: Sequence[str]
) -> None:
    findings = find_ladder_ends(resources, ALL_HERE)
    assert len(findings) == 1, f"{fault}: one fault is one finding, not {findings}"
    assert findings[0].proven, f"{fault}: nothing about it is unknown"
    for part in parts:
        assert part in findings[0].message, f"{fault}: the message must say {part}: {findings[0].message}"


def test_pool_that_this_program_does_not_make_is_not_judged_unless_it_makes_all_of_them() -> None:
    stack = with_ladder(A100_SPOT, {"pool": "a1000"})
    (finding,) = find_ladder_ends(stack)
    assert not finding.proven
    assert "(it makes: 'a100', 'a100-spot')" in finding.message
    assert "declare `madeHere: [pools]`" in finding.message
    (finding,) = find_ladder_ends(stack, ALL_HERE)
    assert finding.proven
    assert find_ladder_ends(stack, {**PACK_DEFAULTS, MADE_ELSEWHERE: ["pools"]}) == ()


def test_finding_is_about_the_resource_to_change() -> None:
    (missing,) = find_ladder_ends([namespace(), *pools()])
    assert missing.urn == namespace().urn
    (wrong,) = find_ladder_ends(with_ladder(A100_SPOT))
    assert wrong.urn == ladder().urn


def test_on_demand_pool_of_another_program_can_be_listed_in_the_setting() -> None:
    shared = [namespace(), ladder([A100_SPOT, {"pool": "shared"}]), *pools()]
    setting = {**ALL_HERE, ON_DEMAND_POOLS: ["shared"]}
    assert find_ladder_ends(shared, setting) == ()
    (finding,) = find_ladder_ends(with_ladder({"pool": "a1000"}), setting)
    assert "'a100', 'shared'" in finding.message


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1"])
def test_every_api_version_is_checked(version: str) -> None:
    spot_last = ladder([A100_SPOT])
    other = resource(f"kubernetes:holdfast.dev/{version}:FallbackPolicy", "vision-ladder", spot_last.props)
    assert find_ladder_ends([namespace(), other, *pools()])


@pytest.mark.parametrize(
    ("unknown", "resources"),
    [
        ("a tier that is not the last", with_ladder(UNKNOWN, A100)),
        ("the timeout of a tier", with_ladder({**A100_SPOT, "procurementTimeout": UNKNOWN}, A100)),
        ("the failures of an on-demand tier", with_ladder({**A100, "maxFailures": UNKNOWN})),
        ("a requirement on something else", with_pools(node_pool("a100", ON_DEMAND, {"key": "kubernetes.io/arch", "operator": "In", "values": UNKNOWN}))),
        ("another pool", [*compliant(), resource(NODE_POOL_TYPE, "late", {"metadata": UNKNOWN, "spec": UNKNOWN})]),
        ("the labels of a namespace whose ladder is valid", [namespace(labels=UNKNOWN), ladder(), *pools()]),
        ("a label of the namespace that is not ours", [namespace(labels={TRAINING: "true", "team": UNKNOWN}), ladder(), *pools()]),
    ],
)  # fmt: skip
def test_unknown_value_that_the_rule_does_not_need_is_ignored(
    unknown: str, resources: Sequence[StackResource]
) -> None:
    assert find_ladder_ends(resources) == (), f"{unknown}: the ladder's end is known"


@pytest.mark.parametrize(
    ("unknown", "resources"),
    [
        ("the ladder", [namespace(), resource(FALLBACK_POLICY_TYPE, "vision-ladder", {"metadata": {"name": "ladder", "namespace": "vision"}, "spec": UNKNOWN}), *pools()]),
        ("its tiers", [namespace(), ladder(UNKNOWN), *pools()]),
        ("its last tier", with_ladder(A100_SPOT, UNKNOWN)),
        ("the last tier's pool", with_ladder(A100_SPOT, {"pool": UNKNOWN})),
        ("whether jobs stay on a spot tier", with_ladder({"pool": "a100-spot", "maxFailures": UNKNOWN})),
        ("the pool's capacity type", with_pools(node_pool("a100", capacity_requirement(UNKNOWN)))),
        ("the pool's operator", with_pools(node_pool("a100", capacity_requirement("on-demand", operator=UNKNOWN)))),
        ("the pool's requirements", with_pools(node_pool("a100", UNKNOWN))),
        ("the pool's capacity label", with_pools(node_pool("a100", labels={POOL: "a100", CAPACITY_TYPE: UNKNOWN}))),
        ("the pool's labels", with_pools(node_pool("a100", ON_DEMAND, labels=UNKNOWN))),
        ("a pool label", with_pools(node_pool("a100", ON_DEMAND, labels={POOL: UNKNOWN}))),
        ("the whole NodePool", with_pools(resource(NODE_POOL_TYPE, "a100", {"metadata": UNKNOWN, "spec": UNKNOWN}))),
        ("the ladder's namespace", [namespace(), ladder(namespace=UNKNOWN), *pools()]),
        ("the ladder's name", [namespace(), ladder(name=UNKNOWN), *pools()]),
        ("the namespace's name", [namespace(UNKNOWN), ladder(), *pools()]),
        ("whether a namespace without a ladder is for training", [namespace(labels=UNKNOWN), *pools()]),
        ("whether a namespace with a bad ladder is for training", [namespace(labels={TRAINING: UNKNOWN}), ladder([A100_SPOT]), *pools()]),
        ("all of a namespace", [resource(NAMESPACE_TYPE, "vision", {"metadata": UNKNOWN}), *pools()]),
    ],
)  # fmt: skip
def test_finding_that_depends_on_an_unknown_value_is_not_proven(
    unknown: str, resources: Sequence[StackResource]
) -> None:
    findings = find_ladder_ends(resources)
    assert len(findings) == 1, f"{unknown}: one finding, not {findings}"
    assert not findings[0].proven, f"{unknown}: {findings[0].message} cannot be known yet"
    assert "known only after the update" in findings[0].message, f"{unknown}: {findings[0].message}"


@pytest.mark.parametrize("made", [[], [node_pool("default", labels={})]], ids=["none", "none with a label"])
def test_pool_is_not_judged_in_a_program_that_makes_no_pool_for_ladders(made: list[StackResource]) -> None:
    (finding,) = find_ladder_ends(with_pools(*made))
    assert not finding.proven
    assert "onDemandPools" in finding.message
    declared = {**PACK_DEFAULTS, MADE_ELSEWHERE: ["pools"]}
    assert find_ladder_ends(with_pools(*made), declared) == ()


def test_each_namespace_is_checked_with_its_own_ladder() -> None:
    tabular = [namespace("tabular"), ladder([A100_SPOT], namespace="tabular")]
    (finding,) = find_ladder_ends([*compliant(), *tabular])
    assert finding.message.startswith("namespace 'tabular'")
    findings = find_ladder_ends([namespace(), ladder(UNKNOWN), *tabular, *pools()])
    assert [finding.proven for finding in findings] == [False, True]
    assert findings[1].message.startswith("namespace 'tabular'")


@pytest.mark.parametrize("tiers", [[A100_SPOT, A100], [A100_SPOT, UNKNOWN]], ids=["valid", "perhaps valid"])
def test_bad_ladder_is_not_proven_while_another_may_be_the_right_one(tiers: list[Value]) -> None:
    resources = [
        namespace(),
        ladder([A100_SPOT], namespace=UNKNOWN),
        ladder(tiers, namespace=UNKNOWN),
        *pools(),
    ]
    (finding,) = find_ladder_ends(resources)
    assert not finding.proven


GKE_SPOT = gke_pool("a100-spot", spot=True)
AKS_SPOT = aks_pool("a100-spot", scaleSetPriority="Spot")
INLINE: Value = {"name": "a100", "mode": "User", "nodeLabels": {POOL: "a100"}}
INLINE_SPOT: Value = {"name": "a100", "scaleSetPriority": "Spot", "nodeLabels": {POOL: "a100"}}
OLD_API = resource("azure-native:containerservice/v20230401:AgentPool", "old", aks_pool("a100").props)


@pytest.mark.parametrize(
    ("case", "made"),
    [
        ("GKE: spot is false", [GKE_SPOT, gke_pool("a100", spot=False)]),
        ("GKE: spot is not set", [GKE_SPOT, gke_pool("a100")]),
        ("GKE: a Karpenter pool beside it", [GKE_SPOT, node_pool("a100", ON_DEMAND)]),
        ("GKE: another field is unknown", [GKE_SPOT, gke_pool("a100", serviceAccount=UNKNOWN)]),
        ("GKE: a system pool without a label", [gke_pool("a100"), gke_pool("system", labels={})]),
        ("AKS: priority is not set", [AKS_SPOT, aks_pool("a100")]),
        ("AKS: priority is Regular", [AKS_SPOT, aks_pool("a100", scaleSetPriority="Regular")]),
        ("AKS: inside the cluster", [AKS_SPOT, aks_cluster(agentPoolProfiles=[INLINE])]),
        ("AKS: node auto-provisioning beside it", [AKS_SPOT, node_pool("a100", ON_DEMAND)]),
        ("AKS: another field is unknown", [AKS_SPOT, aks_pool("a100", vnetSubnetID=UNKNOWN)]),
        ("AKS: an older API version", [AKS_SPOT, OLD_API]),
    ],
)
def test_ladder_that_ends_on_an_on_demand_pool_of_the_cloud_passes(
    case: str, made: list[StackResource]
) -> None:
    assert find_ladder_ends(with_pools(*made)) == (), f"{case}: jobs can fall back"


@pytest.mark.parametrize(
    ("case", "made", "parts"),
    [
        ("GKE: spot", gke_pool("a100", spot=True), ["NodePool 'a100' makes spot nodes"]),
        ("GKE: preemptible", gke_pool("a100", preemptible=True), ["NodePool 'a100' makes spot nodes"]),
        ("GKE: flex-start", gke_pool("a100", flexStart=True), ["NodePool 'a100' makes reserved nodes"]),
        ("GKE: no label", gke_pool("a100", labels={}), [f"lack the label {POOL}: a100", "`nodeConfig.labels`"]),
        ("GKE: another name", gke_pool("other"), ["'a100', which no NodePool of this program makes", "'other'"]),
        ("AKS: spot", aks_pool("a100", scaleSetPriority="Spot"), ["NodePool 'a100' makes spot nodes"]),
        ("AKS: spot in lower case", aks_pool("a100", scaleSetPriority="spot"), ["makes spot nodes"]),
        ("AKS: spot, inside the cluster", aks_cluster(agentPoolProfiles=[INLINE_SPOT]), ["NodePool 'a100' makes spot nodes"]),
        ("AKS: no label", aks_pool("a100", labels={}), [f"lack the label {POOL}: a100", "`nodeLabels`"]),
        ("AKS: another name", aks_pool("other"), ["'a100', which no NodePool of this program makes", "'other'"]),
    ],
)  # fmt: skip
def test_ladder_that_ends_on_no_on_demand_pool_of_the_cloud_is_a_violation(
    case: str, made: StackResource, parts: list[str]
) -> None:
    spot = GKE_SPOT if case.startswith("GKE") else AKS_SPOT
    (finding,) = find_ladder_ends(with_pools(spot, made), ALL_HERE)
    assert finding.proven, f"{case}: no value is unknown"
    for part in parts:
        assert part in finding.message, f"{case}: the message must contain {part}: {finding.message}"


@pytest.mark.parametrize(
    ("case", "made"),
    [
        ("GKE: whether it is spot", gke_pool("a100", spot=UNKNOWN)),
        ("GKE: all of its nodes", resource(NODE_POOL, "a100", {"name": "a100", "nodeConfig": UNKNOWN})),
        ("GKE: its labels", gke_pool("a100", labels=UNKNOWN)),
        ("AKS: whether it is spot", aks_pool("a100", scaleSetPriority=UNKNOWN)),
        ("AKS: its labels", aks_pool("a100", labels=UNKNOWN)),
    ],
)
def test_unknown_value_of_a_cloud_pool_is_not_a_violation(case: str, made: StackResource) -> None:
    spot = GKE_SPOT if case.startswith("GKE") else AKS_SPOT
    (finding,) = find_ladder_ends(with_pools(spot, made), ALL_HERE)
    assert not finding.proven, f"{case} is known only after the update: {finding.message}"
