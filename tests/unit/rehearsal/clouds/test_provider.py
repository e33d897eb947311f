"""The simulated provider checks, plans, creates, changes and deletes objects like a real one."""

from pathlib import Path

import pytest
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.rehearsal.clouds import CloudProvider
from pulumi_holdfast.rehearsal.clouds.answers import Answers
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import serve
from pulumi_holdfast.rehearsal.engine.values import Secret
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.support.clusters.provider_calls import Engine, Provider, calling, invoke, refused

_BUCKET = "aws:s3/bucket:Bucket"


def test_a_secret_input_comes_back_secret_and_is_kept_in_plain(aws: Provider, state_file: Path) -> None:
    _, outputs = Engine(provider=aws, type=_BUCKET).create({"bucket": "b", "policy": Secret("{}")})
    assert outputs["policy"] == Secret("{}"), "the engine would store it in plain text"
    assert CloudState(state_file).read().all()[0].inputs["policy"] == "{}"


@pytest.mark.parametrize(("name", "deletes_first"), [("mine", True), ("one-0123abc", False)])
def test_a_fixed_name_is_deleted_before_its_replacement(
    aws: Provider, name: str, *, deletes_first: bool
) -> None:
    old = {"name": name, "roleArn": "a", "vpcConfig": {"subnetIds": ["s"]}}
    answer = Engine(provider=aws, type="aws:eks/cluster:Cluster").diff(old, {**old, "roleArn": "b"})
    assert list(answer.replaces) == ["roleArn"], "a cluster's role cannot be changed in place"
    assert answer.deleteBeforeReplace is deletes_first, "two clusters of one name cannot exist together"
    assert answer.detailedDiff["roleArn"].kind == provider_pb2.PropertyDiff.UPDATE_REPLACE


def test_unknown_functions_components_and_methods_are_refused_by_name(aws: Provider) -> None:
    token = "aws:ssm/getParameter:getParameter"
    reason = (
        f"function '{token}' of aws is not simulated. Write its result into a file, "
        f"`{token}: [{{arguments: {{name: /team/vpc}}, result: {{…}}}}]`, and pass it with --answers FILE"
    )
    refused(lambda: invoke(aws, token, {"name": "/team/vpc"}), reason)
    component = provider_pb2.ConstructRequest(type="aws:network:Everything", name="network")
    reason = "component 'aws:network:Everything' is not simulated; register its resources"
    refused(lambda: aws.Construct(component), reason)
    method = provider_pb2.CallRequest(tok="aws:network:Everything/open")
    refused(lambda: aws.Call(method), "method 'aws:network:Everything/open' is not simulated")


def test_answers_of_a_file_come_before_the_functions_of_the_cloud(tmp_path: Path, state_file: Path) -> None:
    file = tmp_path / "answers.yaml"
    file.write_text(
        "aws:ec2/getAmi:getAmi: {id: ami-1}\n"
        "aws:ssm/getParameter:getParameter:\n"
        "  - {arguments: {name: /team/vpc}, result: {value: vpc-1}}\n"
        "  - {arguments: {}, result: {value: other}}\n"
    )
    provider = CloudProvider("aws", state_file, Faults(), answers=Answers.read(file))
    with serve(provider) as served, calling(served.port) as aws:
        assert invoke(aws, "aws:ec2/getAmi:getAmi", {"mostRecent": True}) == {"id": "ami-1"}
        values = [
            invoke(aws, "aws:ssm/getParameter:getParameter", {"name": name})["value"]
            for name in ("/team/vpc", "/team/key")
        ]
    assert values == ["vpc-1", "other"]


def test_a_file_of_answers_that_is_none_is_refused_with_its_form(tmp_path: Path) -> None:
    file = tmp_path / "answers.yaml"
    with pytest.raises(RehearsalError, match="does not exist; name a YAML file"):
        Answers.read(file)
    file.write_text("aws:ec2/getAmi:getAmi: ami-1\n")
    with pytest.raises(RehearsalError, match="getAmi is no result; write a mapping"):
        Answers.read(file)
