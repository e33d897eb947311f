"""The rules as the engine calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy.deserialize import SPECIAL_ASSET_SIG, SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from holdfast.policies import run
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.pack import RulePolicy, policies
from holdfast.policies.rule import Level, Rule, Weight
from holdfast.policies.tables import RULES
from holdfast.policies.wire import known_props, stack_resources
from tests.support.gke_stack_resources import compute_class
from tests.support.policy_programs import program
from tests.support.policy_wire import NO_CONTEXT, Pack, Said, stack_request
from tests.support.stack_resources import A100_SPOT, compliant, ladder, namespace, pools, with_ladder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.protobuf.struct_pb2 import Struct
    from pulumi.runtime.proto.analyzer_pb2 import AnalyzerResource

    from holdfast.policies.findings import Finding, StackResource
    from holdfast.policies.rule import Settings

MANDATORY = "training-ladder-ends-on-demand"
ADVISORY = "training-ladder-end-not-known-yet"
CLASSES = "compute-class-of-one-capacity-type"
READING = "what-rules-go-by-can-be-read"


def said(resources: Sequence[StackResource]) -> list[Said]:
    """What a pack of its own says of a stack."""
    return Pack().judged(resources)


def by(rule: str, verdicts: Iterable[Said]) -> list[Said]:
    """What one rule says."""
    return [each for each in verdicts if each.rule == rule]


def test_a_compliant_stack_is_passed_over_in_silence() -> None:
    assert said(program("aws-dev")) == [], "there is nothing to say, not even as advice"


def test_a_violation_is_reported_on_its_resource_by_the_mandatory_policy_alone() -> None:
    verdicts = said(with_ladder(A100_SPOT))
    (verdict,) = by(MANDATORY, verdicts)
    assert "pool 'a100-spot'" in verdict.message, "the verdict names the pool"
    assert verdict.urn == ladder().urn, "the verdict points at the ladder"
    assert verdict.level == analyzer_pb2.MANDATORY, "it stops the run"
    assert by(ADVISORY, verdicts) == [], "what is proven is no advice"


def test_an_unknown_is_advice_and_the_violation_beside_it_still_stops() -> None:
    tabular = [namespace("tabular"), ladder([A100_SPOT], namespace="tabular")]
    verdicts = said([namespace(), ladder(UNKNOWN), *tabular, *pools()])
    assert [each.message.split(":")[0] for each in by(MANDATORY, verdicts)] == ["namespace 'tabular'"], (
        "the SDK itself would have turned the whole policy into advice"
    )
    assert [each.message.split(":")[0] for each in by(ADVISORY, verdicts)] == ["namespace 'vision'"], (
        "vision's is unknown"
    )


def test_pools_of_another_program_are_a_setting() -> None:
    resources = with_ladder(A100_SPOT, {"pool": "shared"})
    assert by(MANDATORY, said(resources)), "unless told, the policy knows of no such pool"
    told = Pack()
    told.configure({}, {"onDemandPools": ["shared"]}, of=MANDATORY)
    assert by(MANDATORY, told.judged(resources)) == [], "the setting vouches for it"


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (analyzer_pb2.ADVISORY, [analyzer_pb2.ADVISORY]),
        (analyzer_pb2.MANDATORY, [analyzer_pb2.MANDATORY]),
        (analyzer_pb2.DISABLED, []),
        # Rules of a whole stack fix nothing.
        (analyzer_pb2.REMEDIATE, [analyzer_pb2.MANDATORY]),
    ],
)
def test_a_team_chooses_the_level_of_each_rule(
    level: analyzer_pb2.EnforcementLevel.ValueType, shown: list[int]
) -> None:
    pack = Pack()
    pack.configure({MANDATORY: level})
    verdicts = pack.judged(with_ladder(A100_SPOT))
    assert [each.level for each in by(MANDATORY, verdicts)] == shown, "as it was configured"


def test_what_a_configuration_misspells_is_told() -> None:
    pack = Pack()
    pack.configure({}, {"onDemandPool": ["shared"]}, of=MANDATORY, also=["all", "spot-pools-are-taintd"])
    told = [each.message for each in by(READING, pack.judged(compliant()))]
    assert len(told) == 2, f"the name of a setting and that of a rule, and not `all`: {told}"
    assert "'onDemandPool'" in told[1], f"the fix is to spell it as it is: {told}"
    assert "onDemandPools" in told[1], f"which is said: {told}"


def test_what_is_turned_off_tells_nothing_at_all() -> None:
    pack = Pack()
    pack.configure(dict.fromkeys((rule.name for rule in RULES), analyzer_pb2.DISABLED))
    assert pack.judged(with_ladder(A100_SPOT)) == [], "not even of itself"


def test_only_the_proven_stops_a_run() -> None:
    levels = {policy.name: policy.enforcement_level for policy in policies()}
    assert levels[MANDATORY] is EnforcementLevel.MANDATORY, "what is proven wrong stops the run"
    assert levels[ADVISORY] is EnforcementLevel.ADVISORY, "what cannot be told yet is advice"


def test_before_a_cluster_exists_objects_are_known_by_what_they_are_asked_to_be() -> None:
    pack, asked = Pack(), with_ladder(A100_SPOT)
    pack.asked(asked)
    # The engine does not call a provider whose configuration is unknown: at the end of the run nothing is shown of them.
    found = by(MANDATORY, pack.judged([replace(each, props={}) for each in asked]))
    assert len(found) == 1, "the ladder that ends on spot is found without a cluster"


def test_what_is_shown_at_the_end_stands_above_what_was_asked_for() -> None:
    pack = Pack()
    pack.asked(with_ladder(A100_SPOT))
    assert by(MANDATORY, pack.judged(compliant())) == [], "the last word is the engine's"


def test_resources_are_read_once_for_all_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def counted(shown: Iterable[AnalyzerResource], asked: Mapping[str, Struct]) -> Iterable[StackResource]:
        reads.append(1)
        return stack_resources(shown, asked)

    monkeypatch.setattr(run, "stack_resources", counted)
    said(compliant())
    assert len(reads) == 1, "with 5,000 resources, reading takes as long as all rules together"


def test_a_class_of_both_capacity_types_is_reported_on_it() -> None:
    mixed = compute_class({"spot": True}, {"spot": False})
    (verdict,) = by(CLASSES, said([*compliant(), mixed]))
    assert "on-demand and spot nodes" in verdict.message, "the verdict names what was mixed"
    assert verdict.urn == mixed.urn, "the verdict points at the class"


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy.name)
def test_every_policy_says_how_grave_it_is_and_what_to_do(policy: RulePolicy) -> None:
    assert policy.severity is not None, "a report is sorted by it"
    assert policy.remediation_steps, "a verdict without a fix is half a verdict"


def test_the_engine_is_told_of_every_rule_by_its_own_name_level_and_settings() -> None:
    info = Pack().servicer.GetAnalyzerInfo(None, NO_CONTEXT)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    told = {each.name: each for each in info.policies}
    for rule in RULES:
        level = analyzer_pb2.EnforcementLevel.Name(told[rule.name].enforcementLevel)
        assert level.lower() == rule.level.value, f"{rule.name}: its level can be seen and set"
        assert {*told[rule.name].configSchema.properties} == {*rule.settings}, (
            f"{rule.name}: so can its settings"
        )


def failing(_: Sequence[StackResource], __: Settings) -> Sequence[Finding]:
    raise KeyError("spec")


def test_a_rule_that_fails_stops_nothing_and_is_told() -> None:
    broken = Rule(
        name="broken", title="t", description="d", fix="m", level=Level.MANDATORY, weight=Weight.LOW, find=failing
    )  # fmt: skip
    pack = Pack()
    pack.servicer._policies.insert(0, RulePolicy(broken))  # pyright: ignore[reportPrivateUsage] - a rule that fails
    verdicts = pack.judged(with_ladder(A100_SPOT))
    (told,) = by(READING, verdicts)
    assert "rule 'broken' failed" in told.message, told.message
    assert told.level == analyzer_pb2.ADVISORY, "nobody's preview is stopped by a fault of the pack"
    assert len(by(MANDATORY, verdicts)) == 1, "the other rules judge all the same"


def wire(props: Mapping[str, object]) -> Struct:
    """Properties as the engine sends them."""
    resource = analyzer_pb2.AnalyzerResource()
    return json_format.ParseDict(dict(props), resource.properties)


def test_unknown_properties_become_explicit_at_every_depth() -> None:
    raw = {"spec": {"tiers": [{"pool": UNKNOWN_STRING_VALUE}, "x"]}, "status": UNKNOWN_OBJECT_VALUE}
    assert known_props(wire(raw)) == {"spec": {"tiers": [{"pool": UNKNOWN}, "x"]}, "status": UNKNOWN}, (
        "what is known beside an unknown must stay readable"
    )


def test_secrets_are_read_and_assets_are_no_obstacle() -> None:
    secret = {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": {"pool": "a100"}}
    asset = {SPECIAL_SIG_KEY: SPECIAL_ASSET_SIG, "text": "x"}
    found = known_props(wire({"secret": secret, "source": asset}))
    assert found["secret"] == {"pool": "a100"}, "a rule is about what it holds, and shows none of it"
    assert isinstance(found["source"], str), "a rule reads past what it does not know"


def test_numbers_that_are_none_are_no_obstacle() -> None:
    props = wire({})
    props.update({"count": float("nan")})
    assert known_props(props).keys() == {"count"}, "the SDK itself would have stopped the preview"


def test_an_object_without_end_is_cut_off() -> None:
    deep: dict[str, object] = {}
    for _ in range(90):
        deep = {"inside": deep}
    request = stack_request(compliant())
    sent = request.resources.add(type="t", urn="urn:pulumi:s::p::t::deep", name="deep")
    json_format.ParseDict(deep, sent.properties)
    assert Pack().servicer.AnalyzeStack(request, NO_CONTEXT) is not None, "rules follow values down"
