"""Objects with a value that their definition refuses: the API server creates none of them, and what rests on them is broken."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.cli.editor_schema import published_definitions
from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import FOLLOWS, POOL
from pulumi_holdfast.program.definitions import FILE, refusals
from pulumi_holdfast.program.resources import StackResource, Value, is_fallback_policy, is_object
from rule import PACK_DEFAULTS
from rules.reachability import find_unreachable
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import STACKS, recorded
from tests.support.builders.program_jobs import declared_jobset, job_program
from tests.support.builders.stack_resources import (
    A100,
    A100_SPOT,
    FALLBACK_POLICY_TYPE,
    NODE_POOL_TYPE,
    ladder,
    namespace,
    pools,
    resource,
)


def of_nodes(**spec: Value) -> StackResource:
    """A NodePool with this specification of its nodes."""
    return resource(NODE_POOL_TYPE, "x", {"spec": {"template": {"spec": spec}}})


def stops(program: Sequence[StackResource]) -> list[str]:
    return [each.message for each in find_unreachable(program, PACK_DEFAULTS) if each.proven]


def with_text(props: Mapping[str, Value], path: Sequence[str], value: Value) -> dict[str, Value]:
    """These properties with a value at a path."""
    first, *rest = path
    inner = props.get(first)
    return {**props, first: with_text(inner if is_object(inner) else {}, rest, value) if rest else value}


@pytest.mark.parametrize("value", [True, 1.0])
def test_job_with_a_label_that_is_no_text_is_refused_by_the_api_server(value: float) -> None:
    selecting: Json = {"nodeSelector": {POOL: "cpu-spot", "rack": value}}
    for job, key in (
        (declared_jobset({}, selector="cpu-spot", metadata={"labels": {FOLLOWS: value}}), FOLLOWS),
        (declared_jobset(selecting), "rack"),
    ):
        assert any(
            f"for {key}, which is no text, and the API server refuses it: quote" in each
            for each in stops(job_program(job))
        )


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Namespace", ("metadata", "labels")),
        ("FallbackPolicy", ("metadata", "annotations")),
        ("NodePool", ("spec", "template", "metadata", "labels")),
        ("NodePool", ("metadata", "labels")),
    ],
)
@pytest.mark.parametrize("value", [True, 1.0])
def test_ladder_with_an_object_that_the_api_server_refuses_is_broken(
    kind: str, path: Sequence[str], value: float
) -> None:
    program = [
        replace(each, props=with_text(each.props, (*path, "team"), value))
        if each.type.endswith(f":{kind}")
        else each
        for each in job_program()
    ]
    assert any(f"{kind} " in each and "for team, which is no text" in each for each in stops(program))
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert found.word is Word.BROKEN, "a value that no reader sees must not count as proved"


def test_shape_whose_selector_is_no_text_is_broken() -> None:
    shape: Json = {"name": "small", "selector": {"rack": 1.0}}
    program = [
        replace(each, props=with_text(each.props, ("spec", "shapes"), [shape]))
        if is_fallback_policy(each.type)
        else each
        for each in job_program()
    ]
    assert any("`selector` has 1.0 for rack, which is no text" in each for each in stops(program))


def test_label_of_a_node_group_may_be_a_boolean() -> None:
    group = resource("aws:eks/nodeGroup:NodeGroup", "gpu", {"labels": {"team": True}})
    assert refusals(group) == ()


@pytest.mark.parametrize(
    ("made", "refusal"),
    [
        (resource(NODE_POOL_TYPE, "x", {"spec": {}}), "has no `spec.template`"),
        (of_nodes(requirements="any"), "`spec.template.spec.requirements` is \"any\""),
        (of_nodes(requirements=[{"key": "a", "operator": "Like", "values": []}]), "requirements.operator` is \"Like\""),
        (of_nodes(taints=[{"key": "spot", "effect": "Repel"}]), "taints.effect` is \"Repel\""),
        (of_nodes(expireAfter="30d"), "`spec.template.spec.expireAfter` is \"30d\""),
        (resource(NODE_POOL_TYPE, "x", {"spec": {"template": {}, "limits": {"cpu": "lots"}}}), "`spec.limits.cpu` is \"lots\""),
        (resource(FALLBACK_POLICY_TYPE, "x", {}), "has no `spec.tiers`"),
        (ladder([A100_SPOT, A100_SPOT, A100]), "tier 2 names pool 'a100-spot', which is already tier 1"),
        (ladder([{**A100_SPOT, "maxFailures": "many"}, A100]), "`spec.tiers.maxFailures` is \"many\""),
        (ladder([{**A100_SPOT, "procurementTimeout": "20 min"}, A100]), "`spec.tiers.procurementTimeout` is \"20 min\""),
    ],
)  # fmt: skip
def test_value_that_a_definition_refuses_is_named_with_what_is_allowed(
    made: StackResource, refusal: str
) -> None:
    (found,) = refusals(made)
    assert refusal in found


def test_values_that_definitions_allow_and_those_that_are_not_known_are_not_refused() -> None:
    allowed = of_nodes(
        expireAfter="720h30m", taints=[{"key": "spot", "effect": "NoExecute"}], requirements=UNKNOWN
    )
    assert refusals(allowed) == ()
    assert not [
        each
        for name in STACKS
        for made in recorded(name)
        if not made.type.endswith("Definition")
        for each in refusals(made)
    ]


def test_ladder_with_a_timeout_that_its_definition_refuses_is_broken() -> None:
    program = [namespace(), ladder([{**A100_SPOT, "procurementTimeout": "20 min"}, A100]), *pools()]
    assert any("FallbackPolicy 'vision-ladder' cannot be created" in each for each in stops(program))
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert found.word is Word.BROKEN


def test_the_definitions_are_those_of_the_charts_that_the_stacks_install() -> None:
    assert FILE.read_text("utf-8") == published_definitions(), "run `holdfast schemas`"
