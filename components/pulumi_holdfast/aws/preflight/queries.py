"""Queries an AWS account for what a stack needs. Every query is a read."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pulumi_aws import get_availability_zones, get_caller_identity, get_region
from pulumi_aws.cloudcontrol import get_resource
from pulumi_aws.cloudwatch import get_log_groups
from pulumi_aws.ec2 import get_instance_type_offerings, get_instance_types
from pulumi_aws.eks import get_addon_version, get_clusters
from pulumi_aws.iam import get_roles
from pulumi_aws.kms import get_key
from pulumi_aws.resourcegroupstaggingapi import get_resources
from pulumi_aws.servicequotas import get_service_quota

from pulumi_holdfast.aws.config.sections import AwsExistingCluster
from pulumi_holdfast.aws.control_plane.control_plane import log_group_name
from pulumi_holdfast.aws.karpenter.iam_roles import PATH
from pulumi_holdfast.aws.preflight.checks import (
    CHECKPOINTS,
    Account,
    Existing,
    pinned_addons,
    preflight_problems,
    preflight_warnings,
)
from pulumi_holdfast.aws.preflight.existing_cluster import existing_eks
from pulumi_holdfast.aws.preflight.quotas import quota_demands
from pulumi_holdfast.aws.preflight.reservations import reservations_of
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.preflight import CloudQueries, refuse_or_warn
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pulumi

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.ladder.json import Json

#: Zones without EKS, by the ids that are the same in every account.
_WITHOUT_EKS: Final = ("use1-az3", "usw1-az2", "cac1-az3")

#: EC2's limit for the values of one filter.
_LONGEST_FILTER: Final = 200


_CREDENTIALS: Final = "AWS credentials"
_LOG_IN: Final = "Log in, or set a profile with `pulumi config set aws:profile …`; check with `aws sts get-caller-identity`."


def provider_region(parent: pulumi.Resource) -> str:
    """The region of the AWS provider of a component. Raises ConfigError if it has none."""
    queries = CloudQueries(credentials=_CREDENTIALS, fix=_LOG_IN, parent=parent)
    return queries.required("the provider's region", lambda: get_region(opts=queries.options).region)


class AccountQueries:
    """Queries for the account of a stack's credentials.

    The result of a query without permission is missing in the account; `failed_queries` has the reason.
    """

    def __init__(self, platform: AwsPlatform, stack: str, *, parent: pulumi.Resource) -> None:
        self._platform = platform
        self._stack = stack
        self._queries = CloudQueries(credentials=_CREDENTIALS, fix=_LOG_IN, parent=parent)
        self._options = self._queries.options
        self._cluster = parent.pulumi_resource_name

    def account(self) -> Account:
        """Run all queries.

        Raises ConfigError if a query that the stack needs fails.
        """
        identity = self._queries.required(
            "sts:GetCallerIdentity", lambda: get_caller_identity(opts=self._options)
        )
        by_capacity = self._machines()
        of_pools = {m.name for pool in self._platform.pools for m in pool.machines(self._platform.region)}
        every_type = sorted({name for names in by_capacity.values() for name in names} | of_pools)
        return Account(
            id=identity.account_id,
            checkpoints=naming.part(self._cluster, CHECKPOINTS),
            caller=identity.arn,
            zones=self._queries.optional("ec2:DescribeAvailabilityZones", self._zones),
            offered=self._queries.optional(
                "ec2:DescribeInstanceTypeOfferings", lambda: self._offered(every_type)
            ),
            available={
                capacity: found
                for capacity, names in by_capacity.items()
                if (found := self._bought(capacity, sorted(names))) is not None
            },
            quotas=self._quotas(),
            addons=self._queries.optional("eks:DescribeAddonVersions", self._addons) or {},
            spot_role=self._spot_role(),
            reservations=reservations_of(self._platform, self._queries),
            cluster=existing_eks(self._platform, self._queries),
            existing=existing_of(self._platform, self._stack, self._queries),
            failed_queries=self._queries.failed,
        )

    def _machines(self) -> Mapping[CapacityType, set[str]]:
        """The instance types of the stack, by the capacity type that EC2 sells them with; it has sold reserved ones."""
        found: dict[CapacityType, set[str]] = defaultdict(set)
        found[CapacityType.ON_DEMAND].update(machine.name for machine in self._platform.system_machines())
        for pool in self._platform.pools:
            if pool.capacity is CapacityType.RESERVED:
                continue
            found[pool.capacity].update(machine.name for machine in pool.machines(self._platform.region))
        return found

    def _zones(self) -> tuple[str, ...]:
        # Zones of every state: an impaired zone must not remove its subnets from the plan.
        answer = get_availability_zones(
            exclude_zone_ids=[*_WITHOUT_EKS],
            filters=[{"name": "zone-type", "values": ["availability-zone"]}],
            opts=self._options,
        )
        return tuple(sorted(answer.names))

    def _offered(self, names: Sequence[str]) -> Mapping[str, frozenset[str]]:
        zones: dict[str, set[str]] = defaultdict(set)
        for some in _in_filters(names):
            answer = get_instance_type_offerings(
                filters=[{"name": "instance-type", "values": [*some]}],
                location_type="availability-zone",
                opts=self._options,
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
                    opts=self._options,
                ).instance_types
            )

        return self._queries.optional(f"ec2:DescribeInstanceTypes ({capacity.value})", ask)

    def _quotas(self) -> Mapping[str, float]:
        values: dict[str, float] = {}
        silent: dict[str, Exception] = {}
        for code in sorted({need.quota.code for need in quota_demands(self._platform)}):
            try:
                values[code] = get_service_quota(
                    service_code="ec2", quota_code=code, opts=self._options
                ).value
            except Exception as error:  # noqa: BLE001 - the SDK raises nothing narrower
                silent[code] = error
        if silent:
            # One reason for all: a caller without permission for one quota has none for others.
            self._queries.record_failure(
                f"servicequotas:GetServiceQuota ({', '.join(silent)})", next(iter(silent.values()))
            )
        return values

    def _addons(self) -> Mapping[str, str]:
        cluster = self._platform.cluster
        if isinstance(cluster, AwsExistingCluster):
            return {}
        return {
            name: get_addon_version(
                addon_name=name, kubernetes_version=cluster.version, most_recent=True, opts=self._options
            ).version
            for name in pinned_addons(self._platform)
        }

    def _spot_role(self) -> str | None:
        # AWS rejects a second role, so an existing one must be found.
        roles = self._queries.required(
            "iam:ListRoles", lambda: get_roles(path_prefix=PATH, opts=self._options)
        )
        return next(iter(roles.arns), None)


def _in_filters(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _LONGEST_FILTER):
        yield names[start : start + _LONGEST_FILTER]


#: The states of a key that can decrypt, now or after it is enabled.
_USABLE: Final = frozenset({"Enabled", "Disabled"})


def existing_of(platform: AwsPlatform, stack: str, queries: CloudQueries) -> Existing:
    """Return what earlier runs of the stack left.

    The stack's keys are a required query where their result decides whether a key is deleted: without it, every earlier
    checkpoint could become unreadable.
    """
    ask_keys = "tag:GetResources and kms:DescribeKey"
    if platform.checkpoints.kms or platform.checkpoints.drop_key:
        keys = queries.optional(ask_keys, lambda: _keys(stack, queries.options))
    else:
        keys = queries.required(ask_keys, lambda: _keys(stack, queries.options))
    cluster = naming.cluster(stack)
    clusters = queries.optional("eks:ListClusters", lambda: get_clusters(opts=queries.options).names)
    return Existing(
        cluster=None if clusters is None else cluster in clusters,
        # Without the list of the stack's keys, nothing shows whether the cluster's key is one of them.
        secrets_key=None
        if keys is None or cluster not in (clusters or ())
        else queries.optional("cloudformation:GetResource", lambda: _secrets_key(cluster, queries.options)),
        own_keys=keys or {},
        log_group=bool(
            queries.optional("logs:DescribeLogGroups", lambda: _has_log_group(cluster, queries.options))
        ),
    )


def _keys(stack: str, options: pulumi.InvokeOptions) -> Mapping[str, str]:
    """The usable keys with the stack's tag, by their descriptions."""
    found = get_resources(
        resource_type_filters=["kms:key"],
        tag_filters=[{"key": labels.STACK, "values": [labels.stack_labels(stack)[labels.STACK]]}],
        opts=options,
    )
    keys = [get_key(key_id=each.resource_arn, opts=options) for each in found.resource_tag_mapping_lists]
    return {key.description: key.arn for key in keys if key.key_state in _USABLE}


def _secrets_key(cluster: str, options: pulumi.InvokeOptions) -> str | None:
    # The provider's function for clusters does not return the key.
    found: Json = json.loads(
        get_resource(type_name="AWS::EKS::Cluster", identifier=cluster, opts=options).properties
    )
    for each in map(mapping, sequence(found.get("EncryptionConfig"))):
        arn = mapping(each.get("Provider")).get("KeyArn")
        if isinstance(arn, str):
            return arn
    return None


def _has_log_group(cluster: str, options: pulumi.InvokeOptions) -> bool:
    name = log_group_name(cluster)
    return name in get_log_groups(log_group_name_prefix=name, opts=options).log_group_names


def check_account(platform: AwsPlatform, stack: str, *, parent: pulumi.Resource) -> Account:
    """Query the account of the provider of the component `parent`, and check that it can hold the stack of this name.

    Logs warnings to the engine; raises ConfigError with every problem. A query that fails causes no problem.
    """
    account = AccountQueries(platform, stack, parent=parent).account()
    refuse_or_warn(preflight_problems(platform, account), preflight_warnings(platform, account))
    return account
