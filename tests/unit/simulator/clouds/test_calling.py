"""Provider instances, functions, components and ordered failures."""

import json
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.clouds import CloudProvider
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.plugin import serve
from holdfast.simulator.pulumi.values import from_struct, to_struct
from tests.support.provider_calls import Engine, Provider, calling, refusal

_BUCKET = "aws:s3/bucket:Bucket"
_VPC = "aws:ec2/vpc:Vpc"
_SUBNET = "aws:ec2/subnet:Subnet"
_ROLE = "aws:iam/role:Role"
_GROUP = "aws:ec2/securityGroup:SecurityGroup"


def test_each_provider_instance_keeps_its_own_configuration(state_file: Path) -> None:
    with serve(CloudProvider("aws", state_file, Faults())) as served:
        arns: set[str] = set()
        for region in ("us-east-1", "eu-west-1"):
            with calling(served.port) as provider:
                configure = provider_pb2.ConfigureRequest(args=to_struct({"region": region}))
                provider.Configure(configure)
                _, outputs = Engine(provider=provider, type=_VPC, name=region).create({})
                arns.add(str(outputs["arn"]).split(":")[3])
    assert arns == {"us-east-1", "eu-west-1"}, (
        "instances of a package share one server, not one configuration"
    )


def test_default_tags_of_the_provider_show_in_all_tags(aws: Provider) -> None:
    tags = json.dumps({"tags": {"team": "ml", "a": "default"}})
    aws.Configure(provider_pb2.ConfigureRequest(args=to_struct({"defaultTags": tags})))
    _, outputs = Engine(provider=aws, type=_VPC).create({"tags": {"a": "own"}})
    assert outputs["tagsAll"] == {"team": "ml", "a": "own"}, "a resource's own tag wins over the default"


def test_an_invoke_answers_for_the_providers_region(aws: Provider) -> None:
    aws.Configure(provider_pb2.ConfigureRequest(args=to_struct({"region": "eu-west-1"})))
    request = provider_pb2.InvokeRequest(tok="aws:index/getAvailabilityZones:getAvailabilityZones")
    zones = from_struct(getattr(aws.Invoke(request), "return"))["names"]
    assert zones == ["eu-west-1a", "eu-west-1b", "eu-west-1c"], "zones of another region were named"


def test_an_invoke_that_is_not_rehearsed_is_refused_by_name(aws: Provider) -> None:
    request = provider_pb2.InvokeRequest(tok="aws:ec2/getAmi:getAmi")
    reason = refusal(lambda: aws.Invoke(request))
    assert "function 'aws:ec2/getAmi:getAmi' is not rehearsed; of aws these are: aws:" in reason, reason


def test_a_component_of_a_package_is_refused_by_name_with_the_mend(aws: Provider) -> None:
    request = provider_pb2.ConstructRequest(type="aws:network:Everything", name="network")
    reason = refusal(lambda: aws.Construct(request))
    assert (
        "component 'aws:network:Everything' is not rehearsed; make the resources it is made of" in reason
    ), reason


def test_a_method_of_a_component_is_refused_by_name(aws: Provider) -> None:
    reason = refusal(lambda: aws.Call(provider_pb2.CallRequest(tok="aws:network:Everything/open")))
    assert reason.startswith("method 'aws:network:Everything/open' is not rehearsed"), reason


def test_an_ordered_failure_of_the_nth_create_makes_nothing(state_file: Path) -> None:
    faults = Faults()
    faults.fail_create(2, "VpcLimitExceeded")
    with serve(CloudProvider("aws", state_file, faults)) as served, calling(served.port) as aws:
        Engine(provider=aws, type=_VPC).create({})
        reason = refusal(lambda: Engine(provider=aws, type=_VPC, name="two").create({}))
    assert reason == "creating two: VpcLimitExceeded", reason
    assert len(CloudState(state_file).read().all()) == 1, "the refused create made an object"


def test_a_crash_after_a_create_leaves_the_object_and_no_answer(state_file: Path) -> None:
    faults = Faults(on_crash=lambda: None)
    faults.crash_after_create(1)
    with serve(CloudProvider("aws", state_file, faults)) as served, calling(served.port) as aws:
        engine = Engine(provider=aws, type=_VPC)
        request = provider_pb2.CreateRequest(urn=engine.urn, type=_VPC, name="one", properties=to_struct({}))
        call = aws.Create.future(request)
        with pytest.raises(grpc.FutureTimeoutError):
            call.result(timeout=0.2)
    (orphan,) = CloudState(state_file).read().all()
    assert orphan.urn == engine.urn, "the next run cannot find what this one made"


def test_a_throttled_call_is_served_after_retries(state_file: Path) -> None:
    faults = Faults()
    faults.throttle(1, times=3)
    with serve(CloudProvider("aws", state_file, faults)) as served, calling(served.port) as aws:
        made, _ = Engine(provider=aws, type=_VPC).create({})
    assert made.startswith("vpc-"), "the call was not served in the end"
    assert faults.retries == 3, "the provider did not try again as often as it was turned away"


def test_a_call_throttled_beyond_the_retries_fails_in_the_clouds_words(state_file: Path) -> None:
    faults = Faults()
    faults.throttle(1, times=100)
    with serve(CloudProvider("aws", state_file, faults)) as served, calling(served.port) as aws:
        reason = refusal(lambda: Engine(provider=aws, type=_VPC).create({}))
    assert reason.startswith("create aws:ec2/vpc:Vpc: ThrottlingException: Rate exceeded; gave up"), reason
