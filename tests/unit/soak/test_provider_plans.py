"""Resources are written in the words of a Terraform provider, and its plans are compared with the simulator's replacements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.rehearsal.engine.values import UNKNOWN
from tests.soak.judges import provider_judge
from tests.soak.judges.combinations import Combination
from tests.soak.judges.field_changes import field_changes
from tests.soak.judges.plans import Planned, Planner, Subject, Verdicts
from tests.soak.judges.provider_schema import ProviderSchema, terraform_type
from tests.support.fakes.pulumi_engine import Recorded

GROUP = "aws:eks/nodeGroup:NodeGroup"
#: A cut of what `terraform providers schema -json` prints.
SCHEMA = ProviderSchema({
    "aws_eks_node_group": {
        "version": 1,
        "block": {
            "attributes": {
                "cluster_name": {"type": "string", "required": True},
                "id": {"type": "string", "computed": True},
                "instance_types": {"type": ["list", "string"], "optional": True},
                "labels": {"type": ["map", "string"], "optional": True},
                "binding": {
                    "nested_type": {
                        "nesting_mode": "list",
                        "attributes": {"role": {"type": "string"}, "scope": {"type": "string"}},
                    }
                },
            },
            "block_types": {
                "taint": {"nesting_mode": "set", "block": {"attributes": {"key": {"type": "string"}}}},
                "scaling_config": {
                    "nesting_mode": "list",
                    "block": {"attributes": {"min_size": {"type": "number"}}},
                },
            },
        },
    }
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A registration of a node group."""

    type: str = GROUP
    name: str = "system"
    inputs: Mapping[str, object] = field(
        default_factory=lambda: {
            "clusterName": "a",
            "nodeGroupName": "system",
            "scalingConfig": {"minSize": 1},
        }
    )


def node_group(**inputs: object) -> Recorded:
    one = Registered()
    return cast("Recorded", Registered(inputs={**one.inputs, **inputs}))


@pytest.mark.parametrize(
    ("token", "name"),
    [
        ("aws:ec2/vpc:Vpc", "aws_vpc"),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "aws_vpc_security_group_ingress_rule"),
        (GROUP, "aws_eks_node_group"),
        ("gcp:storage/bucketIAMMember:BucketIAMMember", "google_storage_bucket_iam_member"),
        ("gcp:projects/iAMMember:IAMMember", "google_project_iam_member"),
    ],
)
def test_types_have_the_names_of_the_terraform_provider(token: str, name: str) -> None:
    assert terraform_type(token) == name


def test_inputs_become_attributes_and_blocks_of_the_provider() -> None:
    inputs: Mapping[str, object] = {
        "clusterName": "${a}",
        "instanceTypes": UNKNOWN,
        "labels": {"nodePool": "a"},
        "bindings": {"role": "view"},
        "taints": [{"key": "spot"}],
        "scalingConfig": {"minSize": 1},
    }
    assert SCHEMA.body(GROUP, inputs) == {
        "cluster_name": "$${a}",
        "instance_types": "${[terraform_data.pending.id]}",
        "labels": {"nodePool": "a"},
        "binding": [{"role": "view", "scope": None}],
        "taint": [{"key": "spot"}],
        "scaling_config": [{"min_size": 1}],
    }
    with pytest.raises(LookupError, match=r"no field scalingConfig\.size"):
        SCHEMA.body(GROUP, {"scalingConfig": {"size": 1}})


def test_each_field_changes_to_a_value_of_another_stack_or_goes() -> None:
    stacks = [node_group(), node_group(scalingConfig={"minSize": 7})]
    found = {(one.path, one.removes): one.new for one in field_changes(stacks)}
    assert set(found) == {
        ("clusterName", False),
        ("clusterName", True),
        ("nodeGroupName", False),
        ("scalingConfig.minSize", False),
        ("scalingConfig.minSize", True),
    }
    assert found["scalingConfig.minSize", False]["scalingConfig"] == {"minSize": 7}
    assert found["clusterName", False]["clusterName"] == "b"
    assert "clusterName" not in found["clusterName", True]


class Provider(Planner):
    """A provider that replaces a node group for its scaling, not for its cluster, and refuses the cluster b."""

    def __init__(self, *_: object) -> None:
        self.title = "made up"
        self.schema = SCHEMA

    def plan(self, subjects: Sequence[Subject]) -> Verdicts:
        plans: dict[int, Planned] = {}
        refused: dict[int, str] = {}
        for number, one in enumerate(subjects):
            after = self.schema.body(one.token, {k: v for k, v in one.inputs.items() if k != "nodeGroupName"})
            if after.get("cluster_name") == "~":
                refused[number] = "no such cluster"
                continue
            is_scaled = one.before is not None and one.before["scaling_config"] != after["scaling_config"]
            actions = ["create"] if one.before is None else ["delete", "create"] if is_scaled else ["no-op"]
            plans[number] = Planned(actions=actions, after={**after, "id": None}, unknown={"id": True})
        return Verdicts(plans=plans, refused=refused)


def test_replacements_of_one_side_and_refused_stacks_are_complaints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(provider_judge, "Planner", Provider)
    stack = Combination(name="dev", known=[node_group()], unknown=[node_group(clusterName="~")])
    verdict = provider_judge.judge("aws", [stack], tmp_path)
    assert verdict.wrong == [
        "dev (unknown ids): system: no such cluster",
        f"{GROUP} clusterName: only the simulator replaces the resource (none)",
        f"{GROUP} nodeGroupName: only the simulator replaces the resource (none)",
        *[f"{GROUP} scalingConfig.minSize: only the provider replaces the resource (replaced)"] * 2,
    ]
