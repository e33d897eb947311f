"""Objects with a label, an annotation or a selection that is no text: the API server refuses them as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, POOL
from pulumi_holdfast.program.namespaces.ladders import is_fallback_policy
from pulumi_holdfast.program.resources import StackResource, Value, is_object
from pulumi_holdfast.program.unquoted import unquoted
from rule import PACK_DEFAULTS
from rules.reachability import find_unreachable
from rules.verdicts import Word, verdicts
from tests.support.builders.program_jobs import declared_jobset, job_program
from tests.support.builders.stack_resources import resource


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
        ), "an object is refused as a whole, in Go's words: cannot unmarshal bool into a string"


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
    assert any(f"{kind} " in each and "for team, which is no text" in each for each in stops(program)), (
        "the object is refused as a whole, so the ladder is never complete"
    )
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
    assert any("`selector` has 1.0 for rack, which is no text" in each for each in stops(program)), (
        "its pods would select less"
    )


def test_label_of_a_node_group_may_be_a_boolean() -> None:
    group = resource("aws:eks/nodeGroup:NodeGroup", "gpu", {"labels": {"team": True}})
    assert unquoted(group) == (), "no API server reads it: the provider makes a text of it"
