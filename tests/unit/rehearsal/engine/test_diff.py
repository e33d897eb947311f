"""Changes are found property by property, at their paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.rehearsal.engine.diff import ChangeKind, PropertyChange, changes
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Value

_values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_properties = st.dictionaries(st.text(min_size=1, max_size=3), _values, max_size=4)


@given(_properties)
def test_equal_inputs_have_no_changes(properties: Properties) -> None:
    assert changes(properties, properties) == [], "an unchanged resource would be updated"


@given(_properties, _properties)
def test_changes_are_opposite_in_the_other_direction(old: Properties, new: Properties) -> None:
    there, back = changes(old, new), changes(new, old)
    opposite = {
        ChangeKind.ADD: ChangeKind.DELETE,
        ChangeKind.DELETE: ChangeKind.ADD,
        ChangeKind.UPDATE: ChangeKind.UPDATE,
    }
    assert bool(there) == (old != new)
    assert {(one.path, opposite[one.kind]) for one in there} == {(one.path, one.kind) for one in back}


@pytest.mark.parametrize(
    ("old", "new", "path", "kind"),
    [
        ({}, {"tags": {"a": "b"}}, "tags", ChangeKind.ADD),
        ({"tags": {"a": "b"}}, {"tags": {"a": "c"}}, "tags.a", ChangeKind.UPDATE),
        ({"tags": {"a.b/c": "1"}}, {"tags": {}}, 'tags["a.b/c"]', ChangeKind.DELETE),
        ({"zones": ["a"]}, {"zones": ["a", "b"]}, "zones[1]", ChangeKind.ADD),
        ({"policy": "x"}, {"policy": None}, "policy", ChangeKind.DELETE),
        ({"arn": "x"}, {"arn": UNKNOWN}, "arn", ChangeKind.UPDATE),
        ({"key": "x"}, {"key": Secret("y")}, "key", ChangeKind.UPDATE),
    ],
)
def test_a_change_is_named_by_its_path(old: Properties, new: Properties, path: str, kind: ChangeKind) -> None:
    assert changes(old, new) == [PropertyChange(path=path, kind=kind)], "the plan would name another property"


@pytest.mark.parametrize(("old", "new"), [("x", Secret("x")), (None, None)])
def test_becoming_secret_and_null_for_absent_are_no_changes(old: Value, new: Value) -> None:
    assert changes({"key": old}, {"key": new}) == []


@pytest.mark.parametrize(
    ("path", "immutable", "within"),
    [
        ("name", "name", True),
        ("vpcConfig.subnetIds[0]", "vpcConfig.subnetIds", True),
        ("vpcConfig", "vpcConfig.subnetIds", True),
        ("vpcConfig.publicAccessCidrs[0]", "vpcConfig.subnetIds", False),
        ("names", "name", False),
    ],
)
def test_a_change_is_within_a_path_at_below_and_around_it(path: str, immutable: str, *, within: bool) -> None:
    assert PropertyChange(path=path, kind=ChangeKind.UPDATE).within([immutable]) is within
