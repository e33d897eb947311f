"""An AWS account that answers what the program asks, as far as a test lets it."""

from collections.abc import Callable, Mapping
from typing import cast

from pulumi_holdfast.aws.preflight.checks import Account, Existing
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from tests.support.fakes.pulumi_engine import asked_of

ACCOUNT = "123456789012"
CALLER = f"arn:aws:iam::{ACCOUNT}:user/deployer"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d")
SPOT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"

IDENTITY = "aws:index/getCallerIdentity:getCallerIdentity"
AVAILABILITY_ZONES = "aws:index/getAvailabilityZones:getAvailabilityZones"
OFFERINGS = "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings"
TYPES = "aws:ec2/getInstanceTypes:getInstanceTypes"
ROLES = "aws:iam/getRoles:getRoles"
CLUSTERS = "aws:eks/getClusters:getClusters"
CLUSTER = "aws:cloudcontrol/getResource:getResource"
TAGGED = "aws:resourcegroupstaggingapi/getResources:getResources"
KEY = "aws:kms/getKey:getKey"
LOG_GROUPS = "aws:cloudwatch/getLogGroups:getLogGroups"
ADDON = "aws:eks/getAddonVersion:getAddonVersion"
QUOTA = "aws:servicequotas/getServiceQuota:getServiceQuota"


def account(
    *,
    number: str = ACCOUNT,
    caller: str = CALLER,
    zones: tuple[str, ...] | None = ZONES,
    offered: Mapping[str, frozenset[str]] | None = None,
    available: Mapping[CapacityType, frozenset[str]] | None = None,
    quotas: Mapping[str, float] | None = None,
    addons: Mapping[str, str] | None = None,
    existing: Existing | None = None,
    failed_queries: tuple[str, ...] = (),
) -> Account:
    """An account that has everything in every zone, and quotas for whatever is asked of it."""
    everything = frozenset(machine_catalogue("aws"))
    return Account(
        id=number,
        caller=caller,
        zones=zones,
        offered=dict.fromkeys(everything, frozenset(ZONES)) if offered is None else offered,
        available=dict.fromkeys(CapacityType, everything) if available is None else available,
        quotas={} if quotas is None else quotas,
        addons={} if addons is None else addons,
        existing=existing or Existing(),
        failed_queries=failed_queries,
    )


def answers(token: str, arguments: Json) -> Json:
    """What a generous account answers to each question."""
    names = _filtered(arguments, "instance-type")
    pairs = [(name, zone) for name in names for zone in ZONES]
    given: dict[str, Json] = {
        IDENTITY: {"accountId": ACCOUNT, "arn": CALLER, "id": ACCOUNT, "userId": "AIDA"},
        # In no order, as a service may answer.
        AVAILABILITY_ZONES: {"names": [*reversed(ZONES)]},
        OFFERINGS: {"instanceTypes": [name for name, _ in pairs], "locations": [zone for _, zone in pairs]},
        TYPES: {"instanceTypes": names},
        CLUSTERS: {"names": []},
        ADDON: {**arguments, "id": "any", "version": "v99.0.0-eksbuild.1"},
        TAGGED: {"resourceTagMappingLists": []},
        LOG_GROUPS: {"logGroupNames": []},
        ROLES: {"arns": [SPOT_ROLE], "names": ["AWSServiceRoleForEC2Spot"]},
        QUOTA: {"value": 10_000.0, "quotaCode": arguments.get("quotaCode"), "serviceCode": "ec2"},
    }
    return given[token]


def _filtered(arguments: Json, name: str) -> list[str]:
    filters = cast("list[Json]", arguments.get("filters") or [])
    return [value for one in filters if one["name"] == name for value in cast("list[str]", one["values"])]


def asked(ask: Callable[[], object], answer: Callable[[str, Json], Json] = answers) -> None:
    """Run what asks questions, with an account that answers them."""
    asked_of(answer, ask, stack="aws")
