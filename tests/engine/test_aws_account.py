"""The preflight of an AWS account by a program on the real engine, before any change."""

from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.aws.preflight.queries import check_account
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine import EngineFailure
from tests.support.builders.configurations import AWS_REGION, aws_platform
from tests.support.clusters.cloud_program import CloudProgram, bucket
from tests.support.fakes.pulumi_engine import asking_component

pytestmark = pytest.mark.engine

P4_SPOT = "L-7212CCBC"


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path, config={"aws:region": AWS_REGION})


def asking_first() -> None:
    """Ask the account as the program does, then make something."""
    try:
        account = check_account(aws_platform(), "aws-dev", parent=asking_component())
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None
    pulumi.export("zones", list(account.zones or ()))
    bucket("made-after-asking")


def grant(stack: CloudProgram, code: str, vcpus: int) -> None:
    """Put a quota into the account, as its console would show it."""
    with stack.cloud().changing() as console:
        console.put(
            CloudObject(
                type="aws:servicequotas/serviceQuota:ServiceQuota",
                id=f"ec2/{code}",
                urn="",
                inputs={"value": vcpus},
            )
        )


def test_facts_that_the_simulator_does_not_know_are_named_and_reject_nothing(stack: CloudProgram) -> None:
    made = stack.up(asking_first)
    assert made.outputs["zones"] == ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"]
    assert "servicequotas:GetServiceQuota (L-1216C47A, L-34B43A08, L-417A185B, L-7212CCBC)" in made.stdout
    assert not made.problems
    assert stack.up(asking_first).changed == 0


def test_a_quota_of_zero_stops_the_run_before_any_change(stack: CloudProgram) -> None:
    grant(stack, P4_SPOT, 0)
    with pytest.raises(EngineFailure) as refused:
        stack.up(asking_first)
    message = str(refused.value)
    assert "holdfast:platform.pools[2]: got machines of 96 vCPUs or more" in message
    assert f"--quota-code {P4_SPOT} --desired-value 768 --region us-west-2" in message
    assert "Traceback" not in message
    assert not stack.objects("aws:s3/bucket:Bucket")


def test_the_stack_is_created_with_a_granted_quota(stack: CloudProgram) -> None:
    grant(stack, P4_SPOT, 0)
    with pytest.raises(EngineFailure):
        stack.preview(asking_first)
    grant(stack, P4_SPOT, 768)
    assert stack.up(asking_first).changes["create"] == 3
