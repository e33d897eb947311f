"""The real engine takes a stand-in cloud's refusals, and goes on from them with the next run."""

from pathlib import Path

import pulumi
import pytest

from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.pulumi import EngineFailure
from holdfast.simulator.pulumi.faults import Faults
from tests.support.clusters.cloud_program import CloudProgram, bucket, network

pytestmark = pytest.mark.engine

_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_BUCKET = "aws:s3/bucket:Bucket"


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path)


def _register(token: str, inputs: dict[str, str]) -> None:
    pulumi.CustomResource(token, "one", dict(inputs))


def test_a_name_that_is_taken_stops_the_run_in_the_clouds_words(stack: CloudProgram) -> None:
    with stack.cloud().changing() as console:
        console.put(CloudObject(type=_BUCKET, id="ckpt", urn="", inputs={"bucket": "ckpt"}))
    with pytest.raises(
        EngineFailure, match="BucketAlreadyExists: The requested bucket name is not available: ckpt"
    ):
        stack.up(lambda: bucket("ckpt"))


@pytest.mark.parametrize(
    ("token", "inputs", "reason"),
    [
        ("aws:s3/bukket:Bukket", {}, "has no type 'aws:s3/bukket:Bukket'; did you mean aws:s3/bucket:Bucket"),
        (_SUBNET, {"vpcId": "vpc-1", "cidr": "10.0.0.0/24"}, "no property 'cidr' on aws:ec2/subnet:Subnet"),
        (_SUBNET, {"cidrBlock": "10.0.0.0/24"}, "missing required property 'vpcId' (aws:ec2/subnet:Subnet"),
    ],
)
def test_what_the_sdk_does_not_know_stops_the_preview(
    stack: CloudProgram, token: str, inputs: dict[str, str], reason: str
) -> None:
    with pytest.raises(EngineFailure) as caught:
        stack.preview(lambda: _register(token, inputs))
    assert reason in str(caught.value), str(caught.value)
    assert "Traceback" not in caught.value.outcome.stdout, "a traceback reached the user"


def test_a_run_that_failed_at_a_create_converges_with_the_next(stack: CloudProgram) -> None:
    faults = Faults()
    faults.fail_create(2, "SubnetLimitExceeded")
    with pytest.raises(EngineFailure, match="creating zone-a: SubnetLimitExceeded"):
        stack.up(network, faults=faults)
    outcome = stack.up(network)
    assert (outcome.changes["create"], outcome.changes["same"]) == (1, 2), "only what had failed is made"
    assert stack.up(network).changed == 0, "the stack has not converged"


def test_a_throttled_call_delays_a_run_and_does_not_fail_it(stack: CloudProgram) -> None:
    faults = Faults()
    faults.throttle(1, times=3)
    assert stack.up(network, faults=faults).changes["create"] == 3, "a throttled call failed the run"
    assert faults.retries == 3, "the call was not throttled"
