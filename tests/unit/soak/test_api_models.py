"""What the clouds publish about their APIs is recorded as the SDKs name it, and wrong values are refused."""

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.soak.judges.azure_models import api_version
from tests.soak.judges.planted import mistakes
from tests.soak.judges.replacing import SOURCES
from tests.soak.judges.requests import REQUESTS
from tests.support.published import Published

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
GROUP: Mapping[str, object] = {
    "clusterName": "holdfast-dev",
    "nodeRoleArn": "arn:aws:iam::123456789012:role/nodes",
    "subnetIds": ["subnet-1"],
    "capacityType": "ON_DEMAND",
    "scalingConfig": {"desiredSize": 2, "minSize": 2, "maxSize": 3},
    "taints": [{"key": "holdfast.dev/system", "effect": "NO_SCHEDULE"}],
}
POOL_TYPE = "gcp:container/nodePool:NodePool"
POOL: Mapping[str, object] = {
    "cluster": "holdfast-dev",
    "name": "a100-spot",
    "nodeConfig": {
        "machineType": "a2-highgpu-1g",
        "guestAccelerators": [{"type": "nvidia-tesla-a100", "count": 1}],
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    },
    "placementPolicy": {"type": "COMPACT"},
}


def test_valid_resources_have_no_complaint() -> None:
    assert Published.of("aws").complaints(NODE_GROUP, GROUP) == []
    assert Published.of("gcp").complaints(POOL_TYPE, POOL) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"capacityType": "SPOTTY"}, "the published values are ON_DEMAND, SPOT"),
        ({"nodeRole": "nodes"}, "no judge knows this field"),
        ({"subnetIds": None}, "subnetIds is required"),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, "the published values are NO_SCHEDULE"),
        ({"scalingConfig": {"minSize": -1}}, "less than 0"),
    ],
)
def test_a_wrong_field_on_aws_is_refused_with_what_is_published(
    changes: dict[str, object], reason: str
) -> None:
    (complaint,) = Published.of("aws").complaints(NODE_GROUP, {**GROUP, **changes})
    assert reason in complaint


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"placementPolicy": {"type": "DENSE"}}, "the published values are TYPE_UNSPECIFIED, COMPACT"),
        ({"nodeConfig": {"machine": "a2-highgpu-1g"}}, "no judge knows this field"),
        ({"nodeConfig": {"guestAccelerators": [{"count": "one"}]}}, "not of the kind number"),
        ({"etag": "W/1"}, "no judge knows this field"),
    ],
)
def test_a_wrong_field_on_google_cloud_is_refused_with_what_is_published(
    changes: dict[str, object], reason: str
) -> None:
    (complaint,) = Published.of("gcp").complaints(POOL_TYPE, {**POOL, **changes})
    assert reason in complaint


@pytest.mark.parametrize(("cloud", "token", "inputs"), [("aws", NODE_GROUP, GROUP), ("gcp", POOL_TYPE, POOL)])
def test_every_misspelled_name_and_wrong_kind_is_seen(
    cloud: str, token: str, inputs: Mapping[str, object]
) -> None:
    planted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for mistake in mistakes(inputs):
        planted[mistake.kind] += 1
        seen[mistake.kind] += bool(Published.of(cloud).complaints(token, mistake.inputs))
    for kind in ("misspelled name", "wrong kind"):
        assert seen[kind] == planted[kind], f"every {kind} is seen"
    assert seen["wrong text"] >= 2


@pytest.mark.parametrize("cloud", REQUESTS)
def test_every_request_is_recorded_and_names_the_source_of_its_replacements(cloud: str) -> None:
    tokens = {request.token for request in REQUESTS[cloud]}
    assert tokens == Published.of(cloud).types.keys()
    assert cloud != "aws" or tokens <= SOURCES.keys()


def test_azure_is_recorded_for_the_api_versions_that_the_sdk_uses() -> None:
    types = Published.of("azure-native").types
    other = {token for token, one in types.items() if one["version"] != api_version(token)}
    assert other == {"azure-native:resources:ResourceGroup"}
