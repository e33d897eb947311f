"""Asks AWS. The only module of the program that does; every question is a read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pulumi_aws import get_availability_zones, get_caller_identity
from pulumi_aws.ec2 import get_instance_type_offerings, get_instance_types
from pulumi_aws.iam import get_roles
from pulumi_aws.servicequotas import get_service_quota

from holdfast.components.spot_service_linked_role import PATH
from holdfast.infra.aws.preflight.checks import Account, quota_demands
from holdfast.infra.cloud_queries import CloudQueries
from holdfast.scheduling.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.infra.aws.config.stack import AwsPlatform

#: Zones in which EKS makes no cluster, by the ids that are the same for every account.
_WITHOUT_EKS: Final = ("use1-az3", "usw1-az2", "cac1-az3")

#: EC2 takes so many values in one filter.
_LONGEST_FILTER: Final = 200


class AccountQueries:
    """Questions to the account that a stack's credentials lead to.

    What is not answered, because the caller may not ask, stays out of the account and is kept in `failed_queries`.
    """

    def __init__(self, platform: AwsPlatform) -> None:
        self._platform = platform
        self._queries = CloudQueries(
            credentials="AWS credentials",
            fix="Log in, or name a profile: `pulumi config set aws:profile …`; "
            "`aws sts get-caller-identity` shows who you are.",
        )

    def account(self) -> Account:
        """Ask everything.

        Raises ConfigError where nobody answers at all, or the one thing stays open that the stack must know.
        """
        identity = self._queries.required("sts:GetCallerIdentity", get_caller_identity)
        by_capacity = self._machines()
        every_type = sorted({name for names in by_capacity.values() for name in names})
        return Account(
            id=identity.account_id,
            caller=identity.arn,
            zones=self._queries.optional("ec2:DescribeAvailabilityZones", self._zones),
            offered=self._queries.optional(
                "ec2:DescribeInstanceTypeOfferings", lambda: self._offered(every_type)
            ),
            bought={
                capacity: found
                for capacity, names in by_capacity.items()
                if (found := self._bought(capacity, sorted(names))) is not None
            },
            quotas=self._quotas(),
            spot_role=self._spot_role(),
            failed_queries=self._queries.failed,
        )

    def _machines(self) -> Mapping[CapacityType, set[str]]:
        """The instance types of the stack, by how they are bought."""
        found: dict[CapacityType, set[str]] = defaultdict(set)
        found[CapacityType.ON_DEMAND].update(machine.name for machine in self._platform.system_machines())
        for pool in self._platform.pools:
            found[pool.capacity].update(machine.name for machine in pool.machines(self._platform.region))
        return found

    def _zones(self) -> tuple[str, ...]:
        # Of every state: one that is impaired for an hour must not take its subnets out of the plan.
        answer = get_availability_zones(
            exclude_zone_ids=[*_WITHOUT_EKS],
            filters=[{"name": "zone-type", "values": ["availability-zone"]}],
        )
        return tuple(sorted(answer.names))

    def _offered(self, names: Sequence[str]) -> Mapping[str, frozenset[str]]:
        zones: dict[str, set[str]] = defaultdict(set)
        for some in _in_filters(names):
            answer = get_instance_type_offerings(
                filters=[{"name": "instance-type", "values": [*some]}],
                location_type="availability-zone",
            )
            for name, zone in zip(answer.instance_types, answer.locations, strict=True):
                zones[name].add(zone)
        return {name: frozenset(found) for name, found in zones.items()}

    def _bought(self, capacity: CapacityType, names: Sequence[str]) -> frozenset[str] | None:
        def ask() -> frozenset[str]:
            return frozenset(
                name
                for some in _in_filters(names)
                for name in get_instance_types(
                    filters=[
                        {"name": "instance-type", "values": [*some]},
                        {"name": "supported-usage-class", "values": [capacity.value]},
                    ],
                ).instance_types
            )

        return self._queries.optional(f"ec2:DescribeInstanceTypes ({capacity.value})", ask)

    def _quotas(self) -> Mapping[str, float]:
        values: dict[str, float] = {}
        silent: dict[str, Exception] = {}
        for code in sorted({need.quota.code for need in quota_demands(self._platform)}):
            try:
                values[code] = get_service_quota(service_code="ec2", quota_code=code).value
            except Exception as error:  # noqa: BLE001 - the SDK raises nothing narrower
                silent[code] = error
        if silent:
            # One reason for all of them: whoever may not ask for one may not ask for another.
            self._queries.record_failure(
                f"servicequotas:GetServiceQuota ({', '.join(silent)})", next(iter(silent.values()))
            )
        return values

    def _spot_role(self) -> str | None:
        # A role that is there and not seen would be made a second time, which AWS refuses.
        roles = self._queries.required("iam:ListRoles", lambda: get_roles(path_prefix=PATH))
        return next(iter(roles.arns), None)


def _in_filters(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _LONGEST_FILTER):
        yield names[start : start + _LONGEST_FILTER]
