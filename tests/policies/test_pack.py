"""The rules as Pulumi's policy SDK calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pulumi
import pytest
from pulumi_policy import (
    EnforcementLevel,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.policy import PolicyCustomTimeouts
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE, unknown_checking_proxy

from policies import run
from policies.known_values import UNKNOWN
from policies.pack import policies
from policies.pulumi_values import stack_resources
from tests.support.gke_stack_resources import compute_class
from tests.support.policy_programs import program
from tests.support.stack_resources import A100_SPOT, compliant, ladder, namespace, pools, with_ladder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.findings import StackResource
    from policies.known_values import Value

RULE_POLICIES = [policy for policy in policies() if isinstance(policy, StackValidationPolicy)]
MANDATORY = "training-ladder-ends-on-demand"
ADVISORY = "training-ladder-end-not-known-yet"
CLASSES = "compute-class-of-one-capacity-type"
QUOTAS = "training-namespaces-set-quotas"


def as_pulumi_has_it(resource: StackResource) -> PolicyResource:
    """A resource as the SDK hands it to a policy: behind a proxy that raises at unknown properties."""
    options = PolicyResourceOptions(resource.is_protected, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    props = unknown_checking_proxy(cast("dict[str, object]", as_wire_has_it(dict(resource.props))))
    return PolicyResource(
        resource.type, props, resource.urn, resource.logical_name, options, None, None, [], {}
    )


def as_pulumi_has_them(resources: Sequence[StackResource]) -> list[PolicyResource]:
    """Resources as the SDK hands them to a policy, each with those that its properties were made of."""
    shown = [as_pulumi_has_it(each) for each in resources]
    by_urn = {each.urn: each for each in shown}
    for each, it in zip(resources, shown, strict=True):
        it.property_dependencies.update(
            {key: [by_urn[urn] for urn in urns if urn in by_urn] for key, urns in each.refers_to.items()}
        )
    return shown


def as_wire_has_it(value: object) -> object:
    """Lists for sequences, dicts for mappings, floats for numbers and Pulumi's mark for the unknown."""
    if value is UNKNOWN:
        return UNKNOWN_STRING_VALUE
    if isinstance(value, dict):
        return {key: as_wire_has_it(each) for key, each in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [as_wire_has_it(each) for each in cast("Sequence[object]", value)]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def verdicts(
    resources: Sequence[StackResource], settings: Mapping[str, object] | None = None
) -> dict[str, list[tuple[str, str | None]]]:
    """What each policy of the pack reports."""
    reported: dict[str, list[tuple[str, str | None]]] = {}
    for policy in policies():
        if not isinstance(policy, StackValidationPolicy):
            continue
        found = reported.setdefault(policy.name, [])
        args = StackValidationArgs(as_pulumi_has_them(resources), settings)
        # The SDK says that it may return an awaitable, not of what.
        policy.validate(  # pyright: ignore[reportUnknownMemberType]
            args, lambda message, urn=None, found=found: found.append((message, urn))
        )
    return reported


def test_a_compliant_stack_is_passed_over_in_silence() -> None:
    said = {name: found for name, found in verdicts(program("aws-dev")).items() if found}
    assert set(said) <= {QUOTAS}, "there is nothing to say but advice on quotas"


def test_a_violation_is_reported_on_its_resource_by_the_mandatory_policy_alone() -> None:
    reported = verdicts(with_ladder(A100_SPOT))
    ((message, urn),) = reported[MANDATORY]
    assert "pool 'a100-spot'" in message, "the verdict names the pool"
    assert urn == ladder().urn, "the verdict points at the ladder"
    assert reported[ADVISORY] == [], "what is proven is no advice"


def test_an_unknown_is_advice_and_the_violation_beside_it_still_stops() -> None:
    tabular = [namespace("tabular"), ladder([A100_SPOT], namespace="tabular")]
    reported = verdicts([namespace(), ladder(UNKNOWN), *tabular, *pools()])
    assert [message.split(":")[0] for message, _ in reported[MANDATORY]] == ["namespace 'tabular'"], (
        "the SDK itself would have turned the whole policy into advice"
    )
    assert [message.split(":")[0] for message, _ in reported[ADVISORY]] == ["namespace 'vision'"], (
        "vision's is unknown"
    )


def test_pools_of_another_program_are_a_setting() -> None:
    resources = with_ladder(A100_SPOT, {"pool": "shared"})
    assert verdicts(resources)[MANDATORY], "unless told, the policy knows of no such pool"
    reported = verdicts(resources, {"onDemandPools": ["shared"]})
    assert (reported[MANDATORY], reported[ADVISORY]) == ([], []), "the setting vouches for it"


def test_only_the_proven_stops_a_run() -> None:
    levels = {policy.name: policy.enforcement_level for policy in policies()}
    assert levels[MANDATORY] is EnforcementLevel.MANDATORY, "what is proven wrong stops the run"
    assert levels[ADVISORY] is EnforcementLevel.ADVISORY, "what cannot be told yet is advice"


def test_before_a_cluster_exists_objects_are_known_by_what_they_are_asked_to_be() -> None:
    pack = {policy.name: policy for policy in policies()}
    asked = with_ladder(A100_SPOT)
    reader = pack["resources-are-read"]
    assert isinstance(reader, ResourceValidationPolicy), "it sees each resource as it is asked for"
    for each in asked:
        shown = as_pulumi_has_it(each)
        reader.validate(  # pyright: ignore[reportUnknownMemberType]
            ResourceValidationArgs(each.type, shown.props, each.urn, each.logical_name, shown.opts, None),
            ignore,
        )
    # The engine does not call a provider whose configuration is unknown: at the end of the run nothing is shown of them.
    empty = [as_pulumi_has_it(replace(each, props={})) for each in asked]
    found: list[str] = []
    rule = pack[MANDATORY]
    assert isinstance(rule, StackValidationPolicy), "it sees the whole stack"
    rule.validate(StackValidationArgs(empty, {}), lambda message, urn=None: found.append(message))  # pyright: ignore[reportUnknownMemberType]
    assert len(found) == 1, "the ladder that ends on spot is found without a cluster"


def ignore(message: str, urn: str | None = None) -> None:
    raise AssertionError(f"the reader reports nothing, not {message} on {urn}")


def test_resources_are_read_once_for_all_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def counted(resources: Sequence[PolicyResource], asked: Mapping[str, Mapping[str, Value]]) -> object:
        reads.append(len(resources))
        return stack_resources(resources, asked)

    monkeypatch.setattr(run, "stack_resources", counted)
    rules = [policy for policy in policies() if isinstance(policy, StackValidationPolicy)]
    shown = [as_pulumi_has_it(each) for each in compliant()]
    for _ in range(2):
        for rule in rules:
            rule.validate(StackValidationArgs(shown, {}), lambda message, urn=None: None)  # pyright: ignore[reportUnknownMemberType]
    assert len(reads) == 2, "once in each round of the engine's"


def test_a_class_of_both_capacity_types_is_reported_on_it() -> None:
    mixed = compute_class({"spot": True}, {"spot": False})
    ((message, urn),) = verdicts([*compliant(), mixed])[CLASSES]
    assert "on-demand and spot nodes" in message, "the verdict names what was mixed"
    assert urn == mixed.urn, "the verdict points at the class"


@pytest.mark.parametrize("policy", RULE_POLICIES, ids=lambda policy: policy.name)
def test_every_policy_says_how_grave_it_is_and_what_to_do(policy: StackValidationPolicy) -> None:
    assert policy.severity is not None, "a report is sorted by it"
    assert policy.remediation_steps, "a verdict without a mend is half a verdict"


def test_unknown_properties_become_explicit_at_every_depth() -> None:
    raw = {"spec": {"tiers": [{"pool": UNKNOWN_STRING_VALUE}, "x"]}, "status": UNKNOWN_OBJECT_VALUE}
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    props = unknown_checking_proxy(raw)
    (found,) = stack_resources([PolicyResource("t", props, "u::n", "n", options, None, None, [], {})], {})
    assert found.props == {"spec": {"tiers": [{"pool": UNKNOWN}, "x"]}, "status": UNKNOWN}, (
        "what is known beside an unknown must stay readable"
    )


def test_assets_are_no_obstacle() -> None:
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    props = unknown_checking_proxy({"source": pulumi.StringAsset("text")})
    (found,) = stack_resources([PolicyResource("t", props, "u::n", "n", options, None, None, [], {})], {})
    assert isinstance(found.props["source"], str), "a rule reads past what it does not know"
