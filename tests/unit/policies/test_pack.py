"""The pack as the engine calls it: levels, settings, unknown values and rules that fail."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import analyzer_pb2
from pulumi.runtime.proto.analyzer_pb2 import AnalyzerResource
from pulumi_policy import EnforcementLevel
from pulumi_policy.deserialize import SPECIAL_ASSET_SIG, SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

import server
from pack import RULES, RulePolicy, policies
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import Stack, StackResource, once
from rule import Finding, Level, Rule, RuleSeverity, Settings
from server import known_props, stack_resources
from tests.support.builders.policy_programs import findings, program, stopping, violations
from tests.support.builders.stack_resources import (
    A100_SPOT,
    capacity_requirement,
    compliant,
    ladder,
    namespace,
    node_pool,
    pools,
    with_ladder,
)
from tests.support.fakes.policy_engine import NO_CONTEXT, Pack, Violation, stack_request

MANDATORY = "training-ladder-ends-on-demand"
ADVISORY = "training-ladder-end-unknown"
VERDICTS = "training-verdicts"


def violations_of(resources: Sequence[StackResource]) -> list[Violation]:
    """The violations that a new pack reports."""
    return Pack().violations(resources)


def by(rule: str, found: Iterable[Violation]) -> list[Violation]:
    """The violations of one rule."""
    return [each for each in found if each.rule == rule]


def test_compliant_stack_has_no_violations() -> None:
    (summary,) = violations_of(program("aws-dev"))
    assert summary.level == analyzer_pb2.ADVISORY
    assert summary.message.startswith("namespace 'tabular': proved\n")


def test_violation_is_reported_on_its_resource_only_by_the_mandatory_policy() -> None:
    found = violations_of(with_ladder(A100_SPOT))
    (verdict,) = by(MANDATORY, found)
    assert "pool 'a100-spot'" in verdict.message
    assert verdict.urn == ladder().urn
    assert verdict.level == analyzer_pb2.MANDATORY
    assert by(ADVISORY, found) == []


def test_unknown_value_is_advice_and_does_not_hide_a_violation() -> None:
    tabular = [namespace("tabular"), ladder([A100_SPOT], namespace="tabular")]
    found = violations_of([namespace(), ladder(UNKNOWN), *tabular, *pools()])
    proven, advice = (
        [each.message.split(":")[0] for each in by(rule, found)] for rule in (MANDATORY, ADVISORY)
    )
    assert proven == ["namespace 'tabular'"], "the SDK would have turned the whole policy into advice"
    assert advice == ["namespace 'vision'"]


def test_setting_lists_pools_of_another_program() -> None:
    resources = with_ladder(A100_SPOT, {"pool": "shared"})
    assert by(MANDATORY, violations_of(resources)) == []
    strict, configured = Pack(), Pack()
    strict.configure({}, {"madeHere": ["pools"]}, of="training-verdicts")
    assert by(MANDATORY, strict.violations(resources))
    configured.configure({}, {"madeHere": ["pools"], "onDemandPools": ["shared"]}, of="training-verdicts")
    assert by(MANDATORY, configured.violations(resources)) == []


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (analyzer_pb2.ADVISORY, [analyzer_pb2.ADVISORY]),
        (analyzer_pb2.MANDATORY, [analyzer_pb2.MANDATORY]),
        (analyzer_pb2.DISABLED, []),
        # A rule about a whole stack cannot remediate.
        (analyzer_pb2.REMEDIATE, [analyzer_pb2.MANDATORY]),
    ],
)
def test_level_of_a_rule_is_configurable(
    level: analyzer_pb2.EnforcementLevel.ValueType, shown: list[int]
) -> None:
    pack = Pack()
    pack.configure({MANDATORY: level})
    found = pack.violations(with_ladder(A100_SPOT))
    assert [each.level for each in by(MANDATORY, found)] == shown


def test_misspelled_configuration_is_reported() -> None:
    pack = Pack()
    pack.configure({}, {"onDemandPool": ["shared"]}, of=MANDATORY, also=["all", "spot-pools-taintd"])
    messages = [each.message for each in by(VERDICTS, pack.violations(compliant()))][:2]
    assert "'spot-pools-taintd'" in str(messages)
    assert "'onDemandPool'" in messages[1]
    assert "it has: none" in messages[1]


@pytest.mark.parametrize("level", [analyzer_pb2.DISABLED, analyzer_pb2.ADVISORY])
def test_proof_does_not_fall_silent_when_the_rule_it_repeats_does(
    level: analyzer_pb2.EnforcementLevel.ValueType,
) -> None:
    reaches = "training-reaches-on-demand"
    assert by(reaches, violations_of(with_ladder(A100_SPOT))) == []
    pack = Pack()
    pack.configure({MANDATORY: level})
    (told,) = by(reaches, pack.violations(with_ladder(A100_SPOT)))
    assert told.level == analyzer_pb2.MANDATORY


def test_profiles_set_every_rule() -> None:
    profiles = {
        file.stem: json.loads(file.read_text("utf-8"))
        for file in (Path(server.__file__).parent / "profiles").iterdir()
    }
    levels = {rule.name: rule.strict.value for rule in RULES if rule.strict is not None}
    strict = {"training-verdicts": {"madeHere": ["pools"]}, **levels}
    assert profiles == {"strict": strict, "advisory": {"all": "advisory"}}


def test_disabled_rules_report_nothing() -> None:
    pack = Pack()
    pack.configure(dict.fromkeys((rule.name for rule in RULES), analyzer_pb2.DISABLED))
    assert pack.violations(with_ladder(A100_SPOT)) == []


def test_inputs_replace_missing_properties_until_the_final_ones_are_known() -> None:
    pack, inputs = Pack(), with_ladder(A100_SPOT)
    pack.asked(inputs)
    # The engine does not call a provider whose configuration is unknown, and sends its objects without properties.
    found = by(MANDATORY, pack.violations([replace(each, props={}) for each in inputs]))
    assert len(found) == 1
    assert by(MANDATORY, pack.violations(compliant())) == []


def test_resources_are_parsed_once_for_all_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def counted(shown: Iterable[AnalyzerResource], inputs: Mapping[str, Struct]) -> Iterable[StackResource]:
        reads.append(1)
        return stack_resources(shown, inputs)

    monkeypatch.setattr(server, "stack_resources", counted)
    violations_of(compliant())
    assert len(reads) == 1


def test_every_policy_has_a_level_a_severity_and_a_fix() -> None:
    for policy in policies():
        assert policy.severity is not None, f"{policy.name}: reports sort by it"
        assert policy.remediation_steps, f"{policy.name}: reports show it"
    levels = {policy.name: policy.enforcement_level for policy in policies()}
    assert levels[MANDATORY] is EnforcementLevel.MANDATORY
    assert levels[ADVISORY] is EnforcementLevel.ADVISORY


def test_engine_receives_the_name_level_and_settings_of_every_rule() -> None:
    info = Pack().servicer.GetAnalyzerInfo(None, NO_CONTEXT)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    received = {each.name: each for each in info.policies}
    for rule in RULES:
        level = analyzer_pb2.EnforcementLevel.Name(received[rule.name].enforcementLevel)
        assert level.lower() == rule.level.value, f"{rule.name}: its level"
        assert {*received[rule.name].configSchema.properties} == {*rule.settings}, f"{rule.name}: settings"


def failing(_: Sequence[StackResource], __: Settings) -> Sequence[Finding]:
    raise KeyError("spec")


def test_mandatory_rule_that_raises_stops_the_run_unless_a_setting_lets_it_pass() -> None:
    broken = Rule(
        name="broken", title="t", description="d", fix="m", level=Level.MANDATORY, severity=RuleSeverity.LOW, find=failing
    )  # fmt: skip
    pack = Pack()
    pack.servicer._policies.insert(0, RulePolicy(broken))  # pyright: ignore[reportPrivateUsage] - a rule that fails
    found = pack.violations(with_ladder(A100_SPOT))
    (told,) = by("broken", found)
    assert "rule 'broken' failed" in told.message
    assert told.level == analyzer_pb2.MANDATORY
    assert len(by(MANDATORY, found)) == 1
    pack.configure({}, {"stopOnFault": False}, of="training-verdicts")
    (let_pass,) = by("broken", pack.violations(with_ladder(A100_SPOT)))
    assert let_pass.level == analyzer_pb2.ADVISORY


def wire(props: Mapping[str, object]) -> Struct:
    """Properties as the engine sends them."""
    resource = analyzer_pb2.AnalyzerResource()
    return json_format.ParseDict(dict(props), resource.properties)


def test_unknown_values_secrets_assets_and_nan_are_read() -> None:
    raw = {"spec": {"tiers": [{"pool": UNKNOWN_STRING_VALUE}, "x"]}, "status": UNKNOWN_OBJECT_VALUE}
    explicit = {"spec": {"tiers": [{"pool": UNKNOWN}, "x"]}, "status": UNKNOWN}
    assert known_props(wire(raw)) == explicit
    secret = {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": {"pool": "a100"}}
    asset = {SPECIAL_SIG_KEY: SPECIAL_ASSET_SIG, "text": "x"}
    props = wire({"secret": secret, "source": asset})
    props.update({"count": float("nan")})
    found = known_props(props)
    assert found["secret"] == {"pool": "a100"}
    assert isinstance(found["source"], str)
    assert found.keys() == {"secret", "source", "count"}, "the SDK would have stopped the preview on NaN"


def test_deeply_nested_object_is_truncated() -> None:
    deep: dict[str, object] = {}
    for _ in range(90):
        deep = {"inside": deep}
    request = stack_request(compliant())
    sent = request.resources.add(type="t", urn="urn:pulumi:s::p::t::deep", name="deep")
    json_format.ParseDict(deep, sent.properties)
    assert Pack().servicer.AnalyzeStack(request, NO_CONTEXT) is not None


def test_once_computes_once_for_a_stack_and_again_for_a_list() -> None:
    calls: list[int] = []

    @once
    def count(resources: Sequence[StackResource]) -> int:
        calls.append(1)
        return len(resources)

    stack = Stack(compliant())
    assert (count(stack), count(stack)) == (4, 4)
    assert len(calls) == 1
    assert count(Stack(compliant()[:1])) == 1
    resources = compliant()
    assert count(resources) == 4
    resources.pop()
    assert count(resources) == 3


def test_once_computes_once_for_what_a_function_receives_beside_the_resources() -> None:
    calls: list[str] = []

    @once
    def named(resources: Sequence[StackResource], name: str) -> list[StackResource]:
        calls.append(name)
        return [each for each in resources if each.logical_name == name]

    stack = Stack(compliant())
    assert named(stack, "none") != named(stack, "a100")
    assert named(stack, "a100") is named(stack, "a100")
    assert calls == ["none", "a100"]


def calls_of_rules(teams: int) -> int:
    """How many functions the rules call for a program of so many namespaces, each with a ladder and two pools."""
    resources = [
        each
        for team in map(str, range(teams))
        for each in (
            namespace(team),
            ladder([{**A100_SPOT, "pool": f"spot-{team}"}, {"pool": team}], namespace=team),
            node_pool(f"spot-{team}", capacity_requirement("spot")),
            node_pool(team, capacity_requirement("on-demand")),
        )
    ]
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        findings(resources)
    finally:
        sys.setprofile(before)
    return calls


def test_work_of_the_rules_grows_with_the_program_and_not_with_its_square() -> None:
    calls_of_rules(1)
    few, many = calls_of_rules(10), calls_of_rules(40)
    assert many < 6 * few


def test_violating_program_breaks_every_mandatory_rule() -> None:
    mandatory = {rule.name for rule in RULES if (rule.strict or rule.level) is Level.MANDATORY}
    missing = mandatory - stopping(violations(), strict=True).keys()
    assert not missing
