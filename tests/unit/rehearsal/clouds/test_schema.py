"""Types and properties are refused by what the installed SDKs say of themselves."""

import subprocess
import sys

import pytest

from pulumi_holdfast.rehearsal.clouds.schema import Schema, UnknownTypeError, violations
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Value
from pulumi_holdfast.rehearsal.errors import RehearsalError

_CLUSTER = "aws:eks/cluster:Cluster"


def _cluster(**overrides: Value) -> dict[str, Value]:
    return {"roleArn": "arn:aws:iam::1:role/r", "vpcConfig": {"subnetIds": ["subnet-1"]}, **overrides}


def _reasons(inputs: Properties, token: str = _CLUSTER) -> dict[str, str]:
    schema = Schema.for_package(token.split(":")[0]).resource(token)
    return {one.path: one.reason for one in violations(inputs, schema)}


def test_an_unknown_type_or_package_is_refused_with_the_fix() -> None:
    closest = r"pulumi-aws \d.* has no type 'aws:s3/bukket:Bukket'; did you mean aws:s3/buck"
    with pytest.raises(UnknownTypeError, match=closest):
        Schema.for_package("aws").resource("aws:s3/bukket:Bukket")
    install = "'oci': its SDK is not installed; install it with `pip install 'pulumi-oci'`"
    with pytest.raises(RehearsalError, match=install):
        Schema.for_package("oci")


@pytest.mark.parametrize(
    ("token", "required"),
    [
        (_CLUSTER, {"roleArn", "vpcConfig"}),
        ("gcp:container/nodePool:NodePool", {"cluster"}),
        ("azure-native:containerservice:ManagedCluster", {"resourceGroupName"}),
        ("aws:lightsail/disk_attachment:Disk_attachment", {"diskName", "diskPath", "instanceName"}),
    ],
)
def test_what_is_required_is_read_from_every_clouds_sdk(token: str, required: set[str]) -> None:
    inputs = Schema.for_package(token.split(":")[0]).resource(token).inputs
    assert {name for name, one in inputs.items() if one.required} == required, f"{token} was read wrongly"


def test_complete_and_unknown_inputs_pass_and_secret_ones_are_checked() -> None:
    assert _reasons(_cluster()) == {}
    inputs = _cluster(roleArn=UNKNOWN, vpcConfig={"subnetIds": UNKNOWN}, version=Secret("1.36"))
    assert _reasons(inputs) == {}, "what is not known yet cannot be wrong yet"
    assert list(_reasons(_cluster(vpcConfig=Secret({})))) == ["vpcConfig.subnetIds"]


def test_wrong_inputs_are_refused_by_path_with_what_is_allowed() -> None:
    reasons = _reasons({"vpcConfig": {"subnetIds": []}})
    assert list(reasons) == ["roleArn"]
    assert "missing required property 'roleArn' (aws:eks/cluster:Cluster of pulumi-aws" in reasons["roleArn"]
    assert list(_reasons(_cluster(vpcConfig={}))) == ["vpcConfig.subnetIds"]
    reasons = _reasons(_cluster(rolearn="x"))
    assert "did you mean 'roleArn'?" in reasons["rolearn"]
    reasons = _reasons(_cluster(vpcConfig={"subnetIds": "subnet-1"}))
    assert "vpcConfig.subnetIds must be a list, not a string ('subnet-1')" in reasons["vpcConfig.subnetIds"]


def test_a_value_that_an_enumeration_does_not_list_is_refused_an_open_one_only_by_a_judge() -> None:
    closed, opened = "azure-native:storage:BlobContainer", "azure-native:containerservice:AgentPool"
    container: Properties = {"accountName": "a", "resourceGroupName": "g"}
    assert _reasons({**container, "publicAccess": "None"}, closed) == {}
    (reason,) = _reasons({**container, "publicAccess": "Everyone"}, closed).values()
    assert "publicAccess must be one of Container, Blob, None, not 'Everyone'" in reason
    pool: Properties = {"resourceName": "c", "resourceGroupName": "g", "scaleSetPriority": "Cheap"}
    assert _reasons(pool, opened) == {}
    schema = Schema.for_package("azure-native").resource(opened)
    (found,) = violations(pool, schema, judge_open=True)
    assert "must be one of Spot, Regular" in found.reason


def test_scalars_that_a_provider_converts_pass() -> None:
    for version in ("1.36", 1.36, True):
        assert _reasons(_cluster(version=version)) == {}, f"{version!r} becomes text on the way to the cloud"
    group: Properties = {"clusterName": "c", "nodeRoleArn": "arn", "subnetIds": ["s"]}
    for size, passes in (("3", True), ("three", False)):
        scaling: Value = {"desiredSize": size, "maxSize": 3, "minSize": 0}
        reasons = _reasons({**group, "scalingConfig": scaling}, "aws:eks/nodeGroup:NodeGroup")
        assert (reasons == {}) is passes, f"{size!r} was judged wrongly"


def test_looking_up_types_imports_no_sdk() -> None:
    program = (
        "import sys; from pulumi_holdfast.rehearsal.clouds import CloudProvider;"
        "from pulumi_holdfast.rehearsal.clouds.schema import Schema;"
        f"Schema.for_package('aws').resource('{_CLUSTER}');"
        "print([m for m in sys.modules if m.startswith('pulumi_') and not m.startswith('pulumi_holdfast')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
