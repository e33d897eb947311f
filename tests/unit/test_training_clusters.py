"""Training clusters as components of people's own programs, in Python and as the plugin constructs them."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial

import pulumi
import pulumi_aws
import pytest
from pulumi.output import UNKNOWN

import pulumi_holdfast as holdfast
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.package_plugin import TrainingClusterProvider
from pulumi_holdfast.training_clusters import ArgumentsError, Value
from tests.support.builders.aws_stacks import SUBNETS, VPC
from tests.support.builders.configurations import AWS_REGION, Document, aws_document, read_aws
from tests.support.fakes.aws_account import answers
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import value

REGION = "aws:index/getRegion:getRegion"
KEY = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
ROLE = "arn:aws:iam::123456789012:role/research"


def account(token: str, arguments: Json) -> Json:
    return {"region": AWS_REGION} if token == REGION else answers(token, arguments)


def later(text: Value) -> pulumi.Output[Value]:
    """What a resource of the program gives, known at once in an update."""
    return pulumi.Output.from_input(text)


def arguments(**changed: Value) -> dict[str, Value]:
    document = {name: each for name, each in aws_document(_private).items() if name != "cloud"}
    return {**document, **changed}


def _private(document: Document) -> None:
    """The addresses of documentation, which an update refuses, are left out."""
    document["cluster"] = {"privateAccessCidrs": ["10.0.0.0/8"]}


def composed(args: Mapping[str, Value], *, preview: bool = False, name: str = "research") -> Recording:
    return record(partial(holdfast.EksTrainingCluster, name, args), answer=account, preview=preview)


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(pulumi.RunError) as caught:
        record(make, answer=account)
    return str(caught.value)


@pytest.mark.parametrize("preview", [False, True], ids=["update", "preview"])
def test_outputs_of_the_program_reach_the_cluster(preview: bool) -> None:
    found = composed(
        arguments(
            network={"vpcId": later(VPC), "privateSubnetIds": [later(each) for each in SUBNETS]},
            cluster={"privateAccessCidrs": ["10.0.0.0/8"], "secretsKey": later(KEY), "admins": [later(ROLE)]},
        ),
        preview=preview,
    )
    cluster = found.one(":eks/cluster:Cluster")
    assert value(cluster, "vpcConfig", "subnetIds") == [*SUBNETS]
    assert value(cluster, "encryptionConfig", "provider", "keyArn") == KEY
    assert ROLE in [value(each, "principalArn") for each in found.of(":AccessEntry")]
    assert not found.of(":ec2/vpc:Vpc")


def test_a_whole_list_of_subnets_may_be_an_output() -> None:
    found = composed(arguments(network={"vpcId": later(VPC), "privateSubnetIds": later([*SUBNETS])}))
    assert value(found.one(":eks/cluster:Cluster"), "vpcConfig", "subnetIds") == [*SUBNETS]
    terms = {str(value(each, "spec", "subnetSelectorTerms")) for each in found.of(":EC2NodeClass")}
    assert terms == {str([{"id": each} for each in SUBNETS])}


def test_an_output_that_no_preview_knows_is_passed_on() -> None:
    found = composed(
        arguments(network={"vpcId": later(UNKNOWN), "privateSubnetIds": later(UNKNOWN)}), preview=True
    )
    assert found.of("TrainingNamespace")


def test_a_wrong_output_is_the_message_of_the_stack_file_once_it_is_known() -> None:
    said = refusal(
        lambda: holdfast.EksTrainingCluster(
            "research", arguments(network={"vpcId": later("vpc"), "privateSubnetIds": [*SUBNETS]})
        )
    )
    assert said.startswith('network.vpcId: got "vpc"; allowed: the id of a VPC.')


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"pool": []}, id="an unknown section"),
        pytest.param({"budget": 0}, id="a value out of its range"),
        pytest.param({"network": {"vpcId": VPC}}, id="a missing field"),
        pytest.param({"checkpoints": {"kms": True, "dropKey": True}}, id="fields that do not fit together"),
    ],
)
def test_a_wrong_argument_is_the_message_of_the_stack_file(changed: dict[str, Value]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_aws({"cloud": "aws", **arguments(**changed)})
    said = refusal(lambda: holdfast.EksTrainingCluster("research", arguments(**changed)))
    assert said == str(caught.value).replace("holdfast:platform.", "")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"budget": later(400)}, "budget"),
        ({"checkpoints": later({})}, "checkpoints"),
        ({"mirror": {"images": later("registry.example.com/mirror")}}, "mirror.images"),
        ({"environment": later("dev")}, "environment"),
    ],
)
def test_an_output_in_a_plain_field_is_refused(changed: dict[str, Value], field: str) -> None:
    said = refusal(lambda: holdfast.EksTrainingCluster("research", arguments(**changed)))
    assert said.startswith(f"{field}: got ")
    assert "an Output" in said


def test_the_region_is_that_of_the_provider_and_no_argument() -> None:
    def program() -> None:
        given = pulumi.ResourceOptions(providers=[pulumi_aws.Provider("west", region="us-west-2")])
        holdfast.EksTrainingCluster("research", arguments(), given)

    assert set(record(program, answer=account).looked_up_by) == {"west"}
    assert "region: got" in refusal(
        lambda: holdfast.EksTrainingCluster("research", arguments(region="us-east-1"))
    )


def test_everything_is_below_the_component_with_names_and_tags_of_its_own() -> None:
    found = composed(arguments())
    top = found.one("EksTrainingCluster")
    inner = found.one("aws:TrainingCluster")
    assert inner.parent == top.name
    assert all(each.name.startswith("research") for each in found)
    assert value(found.one(":eks/cluster:Cluster"), "tags", "holdfast.dev/stack") == "local-research"


@pytest.mark.parametrize("name", ["a-name-of-many-characters", "Research"])
def test_a_name_for_which_the_clouds_have_no_room_is_refused(name: str) -> None:
    assert "allowed: up to 20 lower-case letters" in refusal(
        lambda: holdfast.EksTrainingCluster(name, arguments())
    )


def test_the_plugin_makes_the_same_cluster_from_what_the_wire_carries() -> None:
    wire = {**arguments(), "budget": 4000.0}
    found = record(
        lambda: TrainingClusterProvider().construct("research", "holdfast:index:EksTrainingCluster", wire),
        answer=account,
    )
    assert [each.urn for each in found] == [each.urn for each in composed(arguments())]


def test_the_plugin_reports_each_problem_at_its_property() -> None:
    wire = arguments(pool=[], budget=0.0)
    with pytest.raises(pulumi.InputPropertiesError) as caught:
        record(
            lambda: TrainingClusterProvider().construct(
                "research", "holdfast:index:EksTrainingCluster", wire
            ),
            answer=account,
        )
    errors = caught.value.errors or []
    assert [each["property_path"] for each in errors] == ["budget", "pool"]
    assert 'Write "pools".' in errors[1]["reason"]


def test_every_exported_name_is_there() -> None:
    assert all(getattr(holdfast, name) is not None for name in holdfast.__all__)
    assert holdfast.__version__
    assert issubclass(ArgumentsError, pulumi.RunError)


@pytest.mark.parametrize(
    ("name", "sdks"),
    [("EksTrainingCluster", set[str]()), ("S3Checkpoints", {"pulumi_aws"}), ("GkePool", {"pulumi_gcp"})],
)
def test_a_name_imports_the_sdk_of_its_cloud_alone(name: str, sdks: set[str]) -> None:
    clouds = {"pulumi_aws", "pulumi_gcp", "pulumi_azure_native"}
    code = f"import sys, pulumi_holdfast as h; h.{name}; print(*({clouds!r} & {{*sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*ran.stdout.split()} == sdks
