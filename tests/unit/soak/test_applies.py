"""Requests to AWS are judged by botocore's models, and an apply is reported with whose fault each refusal is."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.soak.judges import apply_judge
from tests.soak.judges.applies import Applied
from tests.soak.judges.aws_requests import Service
from tests.soak.judges.aws_servers import EksEcho
from tests.soak.judges.combinations import Combination
from tests.soak.judges.provider_schema import ProviderSchema
from tests.soak.judges.server import Judged, Sent

_LIFECYCLE = (
    "<LifecycleConfiguration><Rule><ID>{id}</ID><Status>{status}</Status></Rule></LifecycleConfiguration>"
)


def sent(service: str, method: str = "POST", path: str = "/", body: str = "", **more: str) -> Sent:
    query = {"lifecycle": ""} if service == "s3" else {}
    headers = {"x-amz-target": more["target"]} if more else {}
    return Sent(service=service, method=method, path=path, query=query, headers=headers, body=body.encode())


#: One request in each form in which AWS takes them, and what it asks for.
REQUESTS: Mapping[str, tuple[Sent, str]] = {
    "form of EC2": (
        sent("ec2", body="Action=CreateSubnet&VpcId=vpc-1&TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=a"),
        "CreateSubnet",
    ),
    "form": (sent("iam", body="Action=CreateRole&RoleName=a&AssumeRolePolicyDocument=b&Tags.member.1.Key=a&Tags.member.1.Value=b"), "CreateRole"),
    "document": (sent("sqs", body='{"QueueName": "a"}', target="AmazonSQS.CreateQueue"), "CreateQueue"),
    "path and document": (sent("eks", path="/clusters/a/addons", body='{"addonName": "coredns"}'), "CreateAddon"),
    "path and XML": (
        sent("s3", "PUT", "/a-bucket", _LIFECYCLE.format(id="a", status="Enabled")),
        "PutBucketLifecycleConfiguration",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REQUESTS)
def test_a_request_in_each_form_of_aws_is_read_and_valid(form: str) -> None:
    request, operation = REQUESTS[form]
    call = Service.of(request.service).read(request)
    assert call.operation == operation
    assert call.parameters
    assert call.wrong == []


@pytest.mark.parametrize(
    ("form", "old", "new", "reason"),
    [
        ("form of EC2", "VpcId=", "VpcIdx=", "CreateSubnet.VpcId is required"),
        ("form of EC2", "VpcId=", "Vpc=1&VpcId=", "Vpc: no field of the request"),
        ("form of EC2", "=subnet", "=net", "the values of the model are"),
        ("form", "RoleName=a", "RoleName=a%20b", "does not match"),
        ("document", '"a"', "1", "not of the kind string"),
        ("path and document", "addonName", "addon", "CreateAddon.addonName is required"),
        ("path and XML", "Enabled", "On", "the values of the model are Enabled, Disabled"),
        ("path and XML", "Status>", "State>", "Status is required"),
    ],
)
def test_a_wrong_request_is_judged_with_what_the_model_allows(
    form: str, old: str, new: str, reason: str
) -> None:
    request, _ = REQUESTS[form]
    changed = request.body.decode().replace(old, new)
    wrong = Service.of(request.service).read(replace(request, body=changed.encode())).wrong
    assert any(reason in one for one in wrong), "a provider that sends it would be refused"


def test_the_echo_describes_what_it_was_given_until_that_is_deleted() -> None:
    echo, service = EksEcho(lambda: "sg-1"), Service.of("eks")

    def answer(method: str, path: str, **body: object) -> tuple[int, Mapping[str, object]]:
        request = sent("eks", method, path, json.dumps(body) if body else "")
        return echo.answer(request, service.read(request))

    network = {"subnetIds": ["subnet-1"]}
    status, made = answer(
        "POST", "/clusters", name="dev", roleArn="arn:aws:iam::1:role/a", resourcesVpcConfig=network
    )
    assert status == 200
    assert answer("GET", "/clusters/dev") == (200, {"cluster": made["cluster"]})
    answer("POST", "/clusters/dev/addons", addonName="coredns")
    assert answer("GET", "/clusters/dev/addons/coredns")[0] == 200
    assert answer("DELETE", "/clusters/dev")[0] == 200
    assert answer("GET", "/clusters/dev")[0] == 404


def test_a_made_up_text_of_another_resource_becomes_a_reference_to_it() -> None:
    nested = ["list", ["object", {"oidc": ["list", ["object", {"issuer": "string"}]]}]]
    schema = ProviderSchema({"aws_eks_cluster": {"version": 1, "block": {"attributes": {"identity": {"type": nested}, "id": {"type": "string"}}, "block_types": {"vpc_config": {"nesting_mode": "list", "block": {"attributes": {"cluster_security_group_id": {"type": "string"}}}}}}}})  # fmt: skip
    token = "aws:eks/cluster:Cluster"
    places = {
        ("id",): "id",
        ("identities", "oidcs", "issuer"): "identity[0].oidc[0].issuer",
        ("vpcConfig", "clusterSecurityGroupId"): "vpc_config[0].cluster_security_group_id",
        ("status",): None,
    }
    for path, place in places.items():
        assert schema.place(token, path) == place


def test_what_no_fault_of_others_explains_is_a_complaint_of_the_stack() -> None:
    applied = Applied(
        created=1,
        refused={"queue": "bad name"},
        changed={"bucket": ["aws_s3_bucket tags"], "vpc": ["aws_vpc tags"]},
    )
    judged = Judged(wrong=["ec2 CreateVpc.Cidr: no field of the request"])
    judged.answered.update({"moto": 3, "the echo of EKS": 1})
    lines, wrong = apply_judge.report(Combination(name="dev", known=[], unknown=[]), applied, judged)
    assert wrong == [
        "dev, applied: queue: bad name",
        "dev, applied: vpc: a second plan changes aws_vpc tags",
        "dev, applied: ec2 CreateVpc.Cidr: no field of the request",
    ]
    assert "dev: the provider creates 1 of 0 resources; 4 requests" in lines[0]
    assert "1 × moto:" in lines[1]
