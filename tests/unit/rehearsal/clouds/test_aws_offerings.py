"""EC2's zones and instance type offerings."""

from typing import Final

import pytest

from tests.support.clusters.provider_calls import Provider, invoke

ZONES: Final = "aws:index/getAvailabilityZones:getAvailabilityZones"


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
