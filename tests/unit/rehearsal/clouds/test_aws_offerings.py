"""EC2's zones and instance type offerings."""

from typing import Final

import pytest

from pulumi_holdfast.ladder.machines import machine_catalogue, regions_of
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.provider_calls import Provider, invoke, refused

ZONES: Final = "aws:index/getAvailabilityZones:getAvailabilityZones"
OFFERINGS: Final = "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings"


@pytest.mark.parametrize(
    ("region", "letters", "first"),
    [
        ("ap-northeast-1", "acd", "apne1-az1"),
        ("us-west-1", "ab", "usw1-az3"),
        ("us-gov-west-1", "abc", "usgw1-az1"),
        ("us-east-1", "abcdef", "use1-az1"),
        ("ca-central-1", "abd", "cac1-az1"),
        ("cn-northwest-1", "abc", "cnnw1-az1"),
    ],
)
def test_a_region_has_zones_and_zone_ids(aws: Provider, region: str, letters: str, first: str) -> None:
    zones = invoke(aws, ZONES, {"region": region})
    assert zones["names"] == [f"{region}{letter}" for letter in letters]
    ids = zones["zoneIds"]
    assert isinstance(ids, list)
    assert ids[0] == first


def test_zones_are_left_out_by_name_or_by_id(aws: Provider) -> None:
    eks = invoke(aws, ZONES, {"region": "us-west-1", "excludeZoneIds": ["usw1-az2"]})
    assert eks["names"] == ["us-west-1a", "us-west-1b"]
    rest = invoke(aws, ZONES, {"excludeNames": ["us-east-1a"], "excludeZoneIds": ["use1-az3"]})
    assert rest["names"] == [f"us-east-1{letter}" for letter in "bdef"]
    assert rest["zoneIds"] == ["use1-az2", "use1-az4", "use1-az5", "use1-az6"]


def test_a_machine_is_offered_where_it_is_sold(aws: Provider) -> None:
    wanted: Value = {"name": "instance-type", "values": ["m7i.large", "x9.colossal"]}
    west: Properties = {"locationType": "availability-zone", "region": "us-west-1", "filters": [wanted]}
    here = invoke(aws, OFFERINGS, west)
    assert here["instanceTypes"] == ["m7i.large"] * 2
    assert here["locations"] == ["us-west-1a", "us-west-1b"]
    place: Value = {"name": "location", "values": ["use1-az2"]}
    zone = invoke(aws, OFFERINGS, {"locationType": "availability-zone-id", "filters": [wanted, place]})
    assert (zone["instanceTypes"], zone["locations"]) == (["m7i.large"], ["use1-az2"])


def test_a_region_offers_each_machine_once(aws: Provider) -> None:
    answer = invoke(aws, OFFERINGS, {"region": "eu-west-1"})
    offered = answer["instanceTypes"]
    assert isinstance(offered, list)
    assert len(offered) == len({str(one) for one in offered}) > 100
    assert answer["locationTypes"] == ["region"] * len(offered), "unless told otherwise"


def test_types_differ_by_how_they_are_bought(aws: Provider) -> None:
    names = ["m7i.large", next(name for name, one in machine_catalogue("aws").items() if not one.on_spot)]
    by_name = {"name": "instance-type", "values": names}
    region = min(regions_of(names[1]))
    bought = {
        way: invoke(
            aws,
            "aws:ec2/getInstanceTypes:getInstanceTypes",
            {"region": region, "filters": [by_name, {"name": "supported-usage-class", "values": [way]}]},
        )["instanceTypes"]
        for way in ("on-demand", "spot")
    }
    assert bought["spot"] == ["m7i.large"]
    on_demand = bought["on-demand"]
    assert isinstance(on_demand, list)
    assert {str(name) for name in on_demand} == set(names)


def test_a_quota_is_known_to_a_real_account_only(aws: Provider) -> None:
    arguments: Properties = {"serviceCode": "ec2", "quotaCode": "L-34B43A08"}
    missing = "quota L-34B43A08 of ec2 is not simulated; only a real account knows it"
    refused(lambda: invoke(aws, "aws:servicequotas/getServiceQuota:getServiceQuota", arguments), missing)
