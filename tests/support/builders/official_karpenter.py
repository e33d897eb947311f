"""Karpenter's official template and release for 1.14, with a cluster's values filled in."""

import json
from pathlib import Path
from typing import Final

from pulumi_holdfast.aws.karpenter.controller_policies import ControllerScope
from pulumi_holdfast.aws.policy_documents import Place
from pulumi_holdfast.ladder.json import Json
from tests.support.json_objects import obj

_FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "karpenter-1.14-policies"

PLACE: Final = Place(account="123456789012", region="eu-west-1", partition="aws")
SCOPE: Final = ControllerScope(
    place=PLACE,
    cluster_name="holdfast-dev",
    node_role="karpenter-node-0a1b2c3",
    queue="karpenter-interruption-0a1b2c3",
    isolated=False,
)


def official_document(name: str, scope: ControllerScope = SCOPE) -> str:
    """A document of the template (`node-lifecycle`) for the cluster, role and queue of a scope."""
    values = {
        "AWS::Partition": scope.place.partition,
        "AWS::Region": scope.place.region,
        "AWS::AccountId": scope.place.account,
        "AWS::URLSuffix": "amazonaws.com",
        "ClusterName": scope.cluster_name,
        "KarpenterNodeRole.Arn": scope.place.role(scope.node_role),
        "KarpenterInterruptionQueue.Arn": scope.place.queue(scope.queue),
    }
    text = (_FIXTURES / f"{name}.json").read_text("utf-8")
    for placeholder, value in values.items():
        text = text.replace(f"${{{placeholder}}}", value)
    assert "${" not in text, f"{name} has an unfilled placeholder"
    return text


def official(name: str) -> Json:
    """A part of the template or the release (`event-patterns`, `queue`, `node-role`, `release`)."""
    return obj(json.loads(official_document(name)))
