"""The rules as Pulumi's policy SDK calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pulumi
import pytest
from pulumi_policy import (
    EnforcementLevel,
    PolicyResource,
    PolicyResourceOptions,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.policy import PolicyCustomTimeouts
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE, unknown_checking_proxy

from policies.known_values import UNKNOWN
from policies.pack import policies
from policies.pulumi_values import stack_resources
from tests.support.gke_stack_resources import compute_class
from tests.support.stack_resources import A100_SPOT, compliant, ladder, namespace, pools, with_ladder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.findings import StackResource

MANDATORY = "training-ladder-ends-on-demand"
ADVISORY = "training-ladder-end-not-known-yet"
CLASSES = "compute-class-of-one-capacity-type"
SCALING = "aks-cluster-scales-in-one-way"


def as_pulumi_has_it(resource: StackResource) -> PolicyResource:
    """A resource as the SDK hands it to a policy: behind a proxy that raises at unknown properties."""
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    props = unknown_checking_proxy(cast("dict[str, object]", as_wire_has_it(dict(resource.props))))
    return PolicyResource(
        resource.type, props, resource.urn, resource.logical_name, options, None, None, [], {}
    )


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
        assert isinstance(policy, StackValidationPolicy), "the rules look at a stack as a whole"
        found = reported.setdefault(policy.name, [])
        args = StackValidationArgs([as_pulumi_has_it(each) for each in resources], settings)
        # The SDK says that it may return an awaitable, not of what.
        policy.validate(  # pyright: ignore[reportUnknownMemberType]
            args, lambda message, urn=None, found=found: found.append((message, urn))
        )
    return reported


def test_a_compliant_stack_is_passed_over_in_silence() -> None:
    assert verdicts(compliant()) == {MANDATORY: [], ADVISORY: [], CLASSES: [], SCALING: []}, (
        "there is nothing to say"
    )


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
    assert reported == {MANDATORY: [], ADVISORY: [], CLASSES: [], SCALING: []}, "the setting vouches for it"


def test_only_the_proven_stops_a_run() -> None:
    levels = {policy.name: policy.enforcement_level for policy in policies()}
    assert levels == {
        MANDATORY: EnforcementLevel.MANDATORY,
        ADVISORY: EnforcementLevel.ADVISORY,
        CLASSES: EnforcementLevel.MANDATORY,
        SCALING: EnforcementLevel.MANDATORY,
    }, "a policy has one level, so a rule that cannot always tell is two policies"


def test_a_class_of_both_capacity_types_is_reported_on_it() -> None:
    mixed = compute_class({"spot": True}, {"spot": False})
    ((message, urn),) = verdicts([*compliant(), mixed])[CLASSES]
    assert "on-demand and spot nodes" in message, "the verdict names what was mixed"
    assert urn == mixed.urn, "the verdict points at the class"


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy.name)
def test_every_policy_says_how_grave_it_is_and_what_to_do(policy: StackValidationPolicy) -> None:
    assert policy.severity is not None, "a report is sorted by it"
    assert policy.remediation_steps, "a verdict without a mend is half a verdict"


def test_unknown_properties_become_explicit_at_every_depth() -> None:
    raw = {"spec": {"tiers": [{"pool": UNKNOWN_STRING_VALUE}, "x"]}, "status": UNKNOWN_OBJECT_VALUE}
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    props = unknown_checking_proxy(raw)
    (found,) = stack_resources([PolicyResource("t", props, "u::n", "n", options, None, None, [], {})])
    assert found.props == {"spec": {"tiers": [{"pool": UNKNOWN}, "x"]}, "status": UNKNOWN}, (
        "what is known beside an unknown must stay readable"
    )


def test_assets_are_no_obstacle() -> None:
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    props = unknown_checking_proxy({"source": pulumi.StringAsset("text")})
    (found,) = stack_resources([PolicyResource("t", props, "u::n", "n", options, None, None, [], {})])
    assert isinstance(found.props["source"], str), "a rule reads past what it does not know"
