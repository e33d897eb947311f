"""What the clouds publish about their APIs is recorded as the SDKs name it, and wrong values are refused."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.soak.judges.api_models import Botocore, Discovery
from tests.soak.judges.azure_models import AzurePackage, api_version
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


def test_a_model_of_botocore_is_read_with_required_fields_lists_and_bounds(tmp_path: Path) -> None:
    folder = tmp_path / "data/eks/2017-11-01"
    folder.mkdir(parents=True)
    document = {
        "operations": {"CreatePool": {"input": {"shape": "Request"}}},
        "shapes": {
            "Request": {
                "type": "structure",
                "required": ["name"],
                "members": {"name": {"shape": "Name"}, "zones": {"shape": "Zones"}},
            },
            "Name": {"type": "string", "max": 8, "pattern": "[a-z]+"},
            "Zones": {"type": "list", "member": {"shape": "Zone"}},
            "Zone": {"type": "string", "enum": ["a", "b"]},
        },
    }
    (folder / "service-2.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    model = Botocore(tmp_path, "eks")
    request = model.shape("CreatePool")
    name, zone = model.find(request, "Name"), model.find(request, "zone")
    assert name is not None
    assert name[1]
    assert model.rules(name[0]) == {"longest": 8, "pattern": "^(?:[a-z]+)$"}
    assert zone is not None
    assert not zone[1]
    assert model.rules(zone[0]) == {"values": ["a", "b"]}
    assert model.find(request, "region") is None


def test_a_discovery_document_is_read_without_what_only_google_sets(tmp_path: Path) -> None:
    folder = tmp_path / "discovery_cache/documents"
    folder.mkdir(parents=True)
    document = {
        "schemas": {
            "Pool": {
                "properties": {
                    "status": {"type": "string", "readOnly": True},
                    "config": {"$ref": "Config"},
                    "taints": {"type": "array", "items": {"$ref": "Taint"}},
                }
            },
            "Config": {"properties": {"mode": {"type": "string", "enum": ["FAST"]}}},
            "Taint": {"properties": {"key": {"type": "string"}}},
        }
    }
    (folder / "pools.v1.json").write_text(json.dumps(document), encoding="utf-8")
    model = Discovery(tmp_path, "pools.v1")
    pool = model.shape("Pool")
    assert model.find(pool, "status") is None, "a client cannot set it"
    mode = model.find(pool, "config.mode")
    assert mode is not None
    assert model.rules(mode[0]) == {"values": ["FAST"]}
    assert model.find(pool, "taints.key") is not None


_MODELS = """
class Resource(Model):
    _validation = {"id": {"readonly": True}, "location": {"required": True}}
    _attribute_map = {"id": {"key": "id", "type": "str"}, "location": {"key": "location", "type": "str"}}

class Pool(Resource):
    _validation = {"disk_gb": {"maximum": 2048, "minimum": 0}}
    _attribute_map = {
        "disk_gb": {"key": "properties.diskGB", "type": "int"},
        "https_only": {"key": "properties.supportsHttpsOnly", "type": "bool"},
        "rules": {"key": "properties.rules", "type": "[Rule]"},
    }

class Rule(Model):
    _validation = {"cidr": {"required": True, "pattern": r"^[0-9./]+$"}}
    _attribute_map = {"cidr": {"key": "cidr", "type": "str"}}
"""
_OPERATIONS = """
def build_create_request(pool_name, **kwargs):
    version = kwargs.pop("api_version", "2026-01-01")
    path = "/subscriptions/{id}/providers/Farm.Trees/orchards/{orchardName}/beds/default/pools/{poolName}"
    arguments = {"poolName": serializer.url("pool_name", pool_name, "str", max_length=12, pattern=r"^[a-z]+$")}
    return HttpRequest(method="PUT", url=path.format(**arguments))
"""


def test_a_package_of_azure_is_read_with_the_rules_of_its_models_and_of_the_names_in_a_path(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "azure/mgmt/farm/v2026_01_01"
    for name, source in {"models/_models_py3": _MODELS, "operations/_operations": _OPERATIONS}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    package, kind = AzurePackage(tmp_path, "farm", "2026-01-01"), "Farm.Trees/orchards/beds/pools"
    pool = package.shape("Pool")
    disk, https, cidr = (package.find(pool, path) for path in ("diskGB", "httpsOnly", "rules.cidr"))
    assert disk is not None
    assert package.rules(disk[0]) == {"least": 0, "most": 2048}
    assert https is not None
    assert cidr is not None
    assert package.rules(cidr[0]) == {"pattern": "^[0-9./]+$"}
    assert package.find(pool, "location") is not None
    assert package.find(pool, "id") is None
    name = package.find(package.shape(kind), "poolName")
    assert name is not None
    assert package.rules(name[0]) == {"longest": 12, "pattern": "^[a-z]+$"}
    assert package.version(kind) == "2026-01-01"
