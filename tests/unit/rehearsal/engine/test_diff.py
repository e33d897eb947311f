"""Changes are found property by property, at their paths."""

import pytest

from pulumi_holdfast.rehearsal.engine.diff import ChangeKind, PropertyChange, changes
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret


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
