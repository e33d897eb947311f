"""EC2's zones and instance type offerings."""

from pathlib import Path
from typing import Final

import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.machines import machine_catalogue, regions_of
from holdfast.simulator.clouds.aws.offerings import QUOTA
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.pulumi.values import Properties, Value, from_struct, to_struct
from tests.support.clusters.provider_calls import Provider, refused

ZONES: Final = "aws:index/getAvailabilityZones:getAvailabilityZones"
OFFERINGS: Final = "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings"


def asked(aws: Provider, token: str, arguments: Properties) -> dict[str, Value]:
    request = provider_pb2.InvokeRequest(tok=token, args=to_struct(arguments))
    return from_struct(getattr(aws.Invoke(request), "return"))


@pytest.mark.parametrize(
    ("region", "names"),
    [
        ("ap-northeast-1", ["ap-northeast-1a", "ap-northeast-1c", "ap-northeast-1d"]),
        ("us-west-1", ["us-west-1a", "us-west-1b"]),
        ("us-gov-west-1", ["us-gov-west-1a", "us-gov-west-1b", "us-gov-west-1c"]),
    ],
)
def test_a_region_has_the_zones_it_has(aws: Provider, region: str, names: list[str]) -> None:
    assert asked(aws, ZONES, {"region": region})["names"] == names, "three zones are not everywhere"


@pytest.mark.parametrize(
    ("region", "first"),
    [
        ("us-east-1", "use1-az1"),
        ("ap-northeast-1", "apne1-az1"),
        ("ca-central-1", "cac1-az1"),
        ("us-gov-west-1", "usgw1-az1"),
        ("cn-northwest-1", "cnnw1-az1"),
    ],
)
def test_zone_ids_have_the_shape_that_aws_gives_them(aws: Provider, region: str, first: str) -> None:
    ids = asked(aws, ZONES, {"region": region})["zoneIds"]
    assert isinstance(ids, list), "a list"
    assert ids[0] == first, "EKS names by id the zones that it does not run in"


def test_zones_are_left_out_by_name_or_by_id(aws: Provider) -> None:
    eks = asked(aws, ZONES, {"region": "us-west-1", "excludeZoneIds": ["usw1-az2"]})
    assert eks["names"] == ["us-west-1a", "us-west-1b"], "a cluster needs two, and can be had there"
    answer = asked(aws, ZONES, {"excludeNames": ["us-east-1a"], "excludeZoneIds": ["use1-az3"]})
    assert answer["names"] == ["us-east-1b", "us-east-1d", "us-east-1e", "us-east-1f"], "both are left out"
    assert answer["zoneIds"] == ["use1-az2", "use1-az4", "use1-az5", "use1-az6"], "in the same order"


def test_a_machine_is_offered_where_it_is_sold(aws: Provider) -> None:
    wanted = {"filters": [{"name": "instance-type", "values": ["m7i.large", "x9.colossal"]}]}
    here = asked(aws, OFFERINGS, {**wanted, "locationType": "availability-zone", "region": "us-west-1"})
    assert here["instanceTypes"] == ["m7i.large"] * 2, "once for each zone, and only what there is"
    assert here["locations"] == ["us-west-1a", "us-west-1b"], "the zones of the region"
    answer = asked(
        aws,
        OFFERINGS,
        {
            "locationType": "availability-zone-id",
            "filters": [
                {"name": "instance-type", "values": ["m7i.large"]},
                {"name": "location", "values": ["use1-az2"]},
            ],
        },
    )
    assert (answer["instanceTypes"], answer["locations"]) == (["m7i.large"], ["use1-az2"]), "all filters hold"


def test_a_region_offers_each_machine_once(aws: Provider) -> None:
    answer = asked(aws, OFFERINGS, {"region": "eu-west-1"})
    offered = answer["instanceTypes"]
    assert isinstance(offered, list), "a list"
    assert len(offered) == len({str(one) for one in offered}) > 100, "the region is the only location"
    assert answer["locationTypes"] == ["region"] * len(offered), "unless told otherwise"


def test_types_are_told_apart_by_how_they_are_bought(aws: Provider) -> None:
    names = ["m7i.large", next(name for name, one in machine_catalogue("aws").items() if not one.on_spot)]
    by_name = {"name": "instance-type", "values": names}
    region = min(regions_of(names[1]))
    bought = {
        way: asked(
            aws,
            "aws:ec2/getInstanceTypes:getInstanceTypes",
            {"region": region, "filters": [by_name, {"name": "supported-usage-class", "values": [way]}]},
        )["instanceTypes"]
        for way in ("on-demand", "spot")
    }
    assert bought["spot"] == ["m7i.large"], "some machines are never sold on spot"
    on_demand = bought["on-demand"]
    assert isinstance(on_demand, list), "a list"
    assert {str(name) for name in on_demand} == set(names), "both are sold in the region"


def test_a_quota_is_read_from_the_state(aws: Provider, state_file: Path) -> None:
    token = "aws:servicequotas/getServiceQuota:getServiceQuota"
    arguments: Properties = {"serviceCode": "ec2", "quotaCode": "L-34B43A08"}
    refused(
        lambda: asked(aws, token, arguments),
        "quota L-34B43A08 of ec2 is not simulated; only a real account knows it",
    )
    with CloudState(state_file).changing() as console:
        console.put(CloudObject(type=QUOTA, id="ec2/L-34B43A08", urn="", inputs={"value": 64}))
    assert asked(aws, token, arguments)["value"] == 64, "a small quota is rehearsed by writing one"
