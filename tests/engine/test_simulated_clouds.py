"""The real engine creates, updates, replaces and destroys resources on a simulated cloud, and reports its errors."""

from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine import EngineFailure
from pulumi_holdfast.rehearsal.engine.faults import Faults
from tests.support.clusters.cloud_program import CloudProgram, bucket, network

pytestmark = pytest.mark.engine


_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_BUCKET = "aws:s3/bucket:Bucket"


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path)


def test_a_preview_creates_nothing_and_leaves_computed_outputs_unknown(stack: CloudProgram) -> None:
    seen: list[str] = []

    def program() -> None:
        from pulumi_aws import s3

        s3.Bucket("checkpoints", bucket="ckpt").arn.apply(seen.append)

    outcome = stack.preview(program)
    assert outcome.changes["create"] == 2
    assert seen == []
    assert stack.objects(_BUCKET) == []
    stack.up(program)
    assert seen == ["arn:aws:s3:::ckpt"]


def test_resources_are_created_updated_replaced_and_destroyed(stack: CloudProgram) -> None:
    made = stack.up(network)
    assert made.changes["create"] == 3
    assert str(made.outputs["subnet"]).startswith("arn:aws:ec2:us-east-1:")
    assert stack.up(network).changed == 0

    tagged = stack.up(lambda: network(tags={"team": "vision"}))
    assert tagged.changes["update"] == 1
    assert stack.objects(_VPC)[0].inputs["tags"] == {"team": "vision"}

    moved = stack.up(lambda: network(cidr="10.1.0.0/16"))
    assert moved.changes["replace"] == 2, "a VPC cannot change its range, nor a subnet its VPC"
    assert [one.id for one in stack.objects(_VPC)] == [moved.outputs["vpc"]]
    assert moved.outputs["vpc"] != made.outputs["vpc"]

    stack.destroy()
    assert stack.cloud().read().all() == []


def test_a_replaced_bucket_gets_another_generated_name(stack: CloudProgram) -> None:
    def program(generation: int) -> None:
        from pulumi_aws import s3

        s3.Bucket("ckpt", opts=pulumi.ResourceOptions(replacement_trigger=generation))

    stack.up(lambda: program(1))
    (first,) = stack.objects(_BUCKET)
    stack.up(lambda: program(2))
    (second,) = stack.objects(_BUCKET)
    assert first.id != second.id


def test_an_object_deleted_by_hand_is_created_again_after_a_refresh(stack: CloudProgram) -> None:
    stack.up(network)
    with stack.cloud().changing() as console:
        (subnet,) = console.of_type(_SUBNET)
        console.remove(_SUBNET, subnet.id)
    assert stack.refresh(network).changes.get("delete") == 1
    assert stack.up(network).changes["create"] == 1
    assert len(stack.objects(_SUBNET)) == 1


def test_only_an_existing_bucket_can_be_imported(stack: CloudProgram) -> None:
    with pytest.raises(EngineFailure, match="resource 'ckpt' does not exist"):
        stack.up(lambda: bucket("ckpt", import_id="ckpt"))
    with stack.cloud().changing() as console:
        console.put(CloudObject(type=_BUCKET, id="ckpt", urn="", inputs={"bucket": "ckpt"}))
    assert stack.up(lambda: bucket("ckpt", import_id="ckpt")).changes["import"] == 1
    assert stack.up(lambda: bucket("ckpt")).changed == 0


def test_invokes_and_instances_answer_for_their_own_regions(tmp_path: Path) -> None:
    stack = CloudProgram(root=tmp_path, config={"aws:region": "eu-west-1"})

    def program() -> None:
        import pulumi_aws as aws

        elsewhere = aws.Provider("elsewhere", region="us-west-2")
        pulumi.export("here", aws.sqs.Queue("here").arn)
        pulumi.export("there", aws.sqs.Queue("there", opts=pulumi.ResourceOptions(provider=elsewhere)).arn)
        pulumi.export("zones", aws.get_availability_zones_output().names)

    outputs = stack.up(program).outputs
    assert str(outputs["here"]).startswith("arn:aws:sqs:eu-west-1:")
    assert str(outputs["there"]).startswith("arn:aws:sqs:us-west-2:")
    assert outputs["zones"] == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]


def test_google_and_azure_are_simulated_too(tmp_path: Path) -> None:
    config = {"gcp:project": "acme", "azure-native:location": "westeurope"}
    stack = CloudProgram(root=tmp_path, packages=("gcp", "azure-native"), config=config)

    def program() -> None:
        from pulumi_azure_native import resources, storage
        from pulumi_gcp import container

        # Protected unless it is said that it is not, as by the real provider.
        cluster = container.Cluster(
            "train", location="us-central1", initial_node_count=1, deletion_protection=False
        )
        container.NodePool("spot", cluster=cluster.name, location="us-central1", node_config={"spot": True})
        group = resources.ResourceGroup("ml")
        for account in ("one", "two"):
            made = storage.StorageAccount(
                account, resource_group_name=group.name, kind="StorageV2", sku={"name": "Standard_LRS"}
            )
            storage.BlobContainer(
                f"{account}-checkpoints",
                container_name="checkpoints",
                resource_group_name=group.name,
                account_name=made.name,
            )
        pulumi.export("project", cluster.project)

    made = stack.up(program)
    assert made.changes["create"] == 8
    assert made.outputs["project"] == "acme"
    assert stack.up(program).changed == 0
    assert stack.refresh(program).changed == 0
    stack.destroy(program)
    assert [*stack.cloud("gcp").read().all(), *stack.cloud("azure-native").read().all()] == []


def _register(token: str, inputs: dict[str, str]) -> None:
    pulumi.CustomResource(token, "one", dict(inputs))


def test_a_taken_name_stops_the_run_with_the_error_of_the_cloud(stack: CloudProgram) -> None:
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
def test_an_unknown_property_stops_the_preview(
    stack: CloudProgram, token: str, inputs: dict[str, str], reason: str
) -> None:
    with pytest.raises(EngineFailure) as caught:
        stack.preview(lambda: _register(token, inputs))
    assert reason in str(caught.value), str(caught.value)
    assert "Traceback" not in caught.value.outcome.stdout


def test_a_run_that_failed_at_a_create_converges_with_the_next(stack: CloudProgram) -> None:
    faults = Faults()
    faults.fail_create(2, "SubnetLimitExceeded")
    with pytest.raises(EngineFailure, match="creating zone-a: SubnetLimitExceeded"):
        stack.up(network, faults=faults)
    outcome = stack.up(network)
    assert (outcome.changes["create"], outcome.changes["same"]) == (1, 2), "only what had failed is made"
    assert stack.up(network).changed == 0, "the stack has not converged"
