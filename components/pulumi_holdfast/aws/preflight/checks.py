"""Checks what an AWS account offers against a stack: problems that stop it, and warnings. Pure, except for the PATH."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.aws.checkpoints import key_description
from pulumi_holdfast.aws.config.sections import AwsExistingCluster, AwsNewNetwork
from pulumi_holdfast.aws.control_plane.access import AWS_CLI
from pulumi_holdfast.aws.control_plane.addon_versions import ADDONS, addon_versions
from pulumi_holdfast.aws.preflight.existing_cluster import ExistingEks, existing_eks_problems
from pulumi_holdfast.aws.preflight.quotas import Ec2Quota, QuotaDemand, increase_command, quota_demands
from pulumi_holdfast.aws.preflight.reservations import Ec2Reservation, reservation_problems
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import known
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import zones_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pulumi_holdfast.aws.config.sections import AwsPlatform, AwsPool


#: What the name of a cluster's CheckpointBucket ends with.
CHECKPOINTS: Final = "checkpoints"


@dataclass(frozen=True, kw_only=True)
class Existing:
    """Resources in the account from earlier runs of the stack; a failed query found nothing.

    `cluster` is whether the stack's cluster exists, None if that is not known. `secrets_key` is the ARN of the key of the cluster's secrets, None without a cluster; `own_keys` are the ARNs of the
    stack's usable KMS keys by their descriptions. `log_group` is whether the control plane's log group exists.
    """

    cluster: bool | None = None
    secrets_key: str | None = None
    own_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    log_group: bool = False


@dataclass(frozen=True, kw_only=True)
class Account:
    """The results of the preflight queries in an account and a region.

    `caller` is the ARN of the caller, `checkpoints` the name of the cluster's CheckpointBucket. `zones` are those that can have an EKS cluster, in order. `offered` are the zones
    that offer each instance type, `available` the instance types of each capacity type, `quotas` the vCPUs of each
    quota by its code, `addons` the newest version of each add-on that EKS has for the cluster's Kubernetes version,
    `reservations` those of its pools by id. `cluster` is the existing cluster that the stack uses,
    None if it creates one. `spot_role` is the ARN of the service-linked role of EC2 Spot, None if there is none. The result
    of a failed query is None, or missing in a mapping; `failed_queries` has the reasons.
    """

    id: str
    caller: str
    checkpoints: str = CHECKPOINTS
    zones: tuple[str, ...] | None = None
    offered: Mapping[str, frozenset[str]] | None = None
    available: Mapping[CapacityType, frozenset[str]] = field(
        default_factory=dict["CapacityType", "frozenset[str]"]
    )
    quotas: Mapping[str, float] = field(default_factory=dict[str, float])
    addons: Mapping[str, str] = field(default_factory=dict[str, str])
    spot_role: str | None = None
    existing: Existing = field(default_factory=Existing)
    cluster: ExistingEks | None = None
    reservations: Mapping[str, Ec2Reservation] = field(default_factory=dict["str", "Ec2Reservation"])
    failed_queries: tuple[str, ...] = ()


def preflight_problems(platform: AwsPlatform, account: Account) -> Iterator[Problem]:
    """The problems that stop a stack in this account."""
    if platform.account is not None and platform.account != account.id:
        yield Problem(
            field=f"{PLATFORM}.account",
            value=f"{format_value(platform.account)}, but the credentials are of {format_value(account.id)}",
            allowed="the account of the credentials",
            fix=f"Log in to {platform.account}, or write {format_value(account.id)}.",
        )
        # Other problems of the wrong account do not matter.
        return
    if account.cluster is not None:
        yield from existing_eks_problems(platform, account.cluster)
    yield from _zone_problems(platform, account)
    yield from _secrets_key_problems(platform, account.existing)
    yield from _addon_problems(platform, account)
    if _creates_cluster(platform, account):
        for at, principal in _entries_of_the_caller(platform, account):
            yield Problem(
                field=at,
                value=f"{format_value(principal)}, which runs pulumi and creates the cluster",
                allowed="other principals: EKS makes the cluster's creator an administrator, and rejects a second access entry for it",
                fix="Leave it out. Add it if another principal has created the cluster.",
            )
    for index, pool in enumerate(platform.pools):
        yield from _pool_problems(platform, pool, account, f"{PLATFORM}.pools[{index}]")
    yield from reservation_problems(platform, account.reservations)
    for index, entry in enumerate(platform.pull_through_cache):
        credential = known(entry.credential_arn)
        if credential is not None and credential.split(":")[4] != account.id:
            yield Problem(
                field=f"{PLATFORM}.pullThroughCache[{index}].credentialArn",
                value=format_value(credential),
                allowed=f"a secret of {account.id}, the account of the cache",
                fix="Create the secret there, and write its ARN.",
            )
    for need in quota_demands(platform):
        if need.is_all and account.quotas.get(need.quota.code, need.smallest) < need.smallest:
            yield _no_machine_fits(need, account, platform.region)


def preflight_warnings(platform: AwsPlatform, account: Account) -> Iterator[str]:
    """The limits of this account that do not stop the stack: a line each."""
    yield from _quota_warnings(platform, account)
    for pool in platform.pools:
        available = account.available.get(pool.capacity)
        missing = [
            m.name
            for m in pool.machines(platform.region)
            if available is not None and m.name not in available
        ]
        if missing:
            yield (
                f"pool {pool.name}: {', '.join(missing)} is not available {_how(pool)} in this account; "
                "the pool uses its other machine types."
            )
    for _, principal in (
        () if _creates_cluster(platform, account) else _entries_of_the_caller(platform, account)
    ):
        yield (
            f"{principal} is the principal that runs pulumi. If it created the cluster, EKS rejects a second access entry for "
            f"it: leave it out of {PLATFORM}.cluster.admins and access."
        )
    if keeps_checkpoint_key(platform, account):
        yield (
            "checkpoints: new ones are encrypted with S3's key. The stack's key and the jobs' access to it stay, because "
            f"earlier ones are encrypted with it. Once none of them is needed, add `dropKey: true` to {PLATFORM}.checkpoints."
        )
    if account.failed_queries:
        yield f"not checked, because these queries failed: {'; '.join(account.failed_queries)}."


def keeps_checkpoint_key(platform: AwsPlatform, account: Account) -> bool:
    """Whether checkpoints of earlier runs may be encrypted with a key that new ones do not use."""
    kept = not platform.checkpoints.kms and not platform.checkpoints.drop_key
    return kept and key_description(account.checkpoints) in account.existing.own_keys


def _addon_problems(platform: AwsPlatform, account: Account) -> Iterator[Problem]:
    """Pins of add-ons that EKS does not have yet, in this region or for this Kubernetes version."""
    for name, pinned in pinned_addons(platform).items():
        newest = account.addons.get(name)
        if newest is not None and _order(pinned) > _order(newest):
            yield Problem(
                field=f"{PLATFORM}.cluster.addons.{name}",
                value=format_value(pinned),
                allowed=f"a version that EKS has in {platform.region}: the newest is {format_value(newest)}",
                fix=f"Write {format_value(newest)}.",
            )


def pinned_addons(platform: AwsPlatform) -> Mapping[str, str]:
    """The versions of the add-ons that a stack installs, by their names; none for a cluster that exists."""
    if isinstance(platform.cluster, AwsExistingCluster):
        return {}
    versions = addon_versions(platform.cluster.version, platform.cluster.addons)
    return {name: str(getattr(versions, at)) for name, at in ADDONS.items()} if versions else {}


def _order(version: str) -> tuple[int, ...]:
    """The numbers of `v1.22.4-eksbuild.3`, in order."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _secrets_key_problems(platform: AwsPlatform, existing: Existing) -> Iterator[Problem]:
    """Another key for the secrets of an existing cluster, which EKS cannot change."""
    if isinstance(platform.cluster, AwsExistingCluster):
        return
    given = platform.cluster.secrets_key
    current, wanted = existing.secrets_key, known(given)
    if (
        (given is not None and wanted is None)
        or current is None
        or (current == (wanted or current) and (wanted or current in existing.own_keys.values()))
    ):
        return
    own = current in existing.own_keys.values()
    yield Problem(
        field=f"{PLATFORM}.cluster.secretsKey",
        value=f"{format_value(wanted) if wanted else 'nothing'}, but the cluster's secrets are encrypted with "
        f"{'the key of the stack, ' if own else ''}{format_value(current)}",
        allowed="the key of the existing cluster: EKS cannot change it, and accepts another one without using it",
        fix=("Leave it out" if own else f"Write {format_value(current)}")
        + ". For another key, create a second stack with it and move the jobs there.",
    )


def zones_of_network(
    network: AwsNewNetwork, account: Account, region_zones: tuple[str, ...]
) -> tuple[str, ...]:
    """The zones of a new network; from `region_zones` if those of the account are unknown."""
    return network.zone_names(region_zones if account.zones is None else account.zones)


def _creates_cluster(platform: AwsPlatform, account: Account) -> bool:
    """Whether this run certainly creates the cluster, so that the caller is its creator."""
    return account.existing.cluster is False and not isinstance(platform.cluster, AwsExistingCluster)


def _entries_of_the_caller(platform: AwsPlatform, account: Account) -> Iterator[tuple[str, str]]:
    """The fields that give an access entry to the caller, with the caller's principal."""
    admins = () if isinstance(platform.cluster, AwsExistingCluster) else platform.cluster.admins
    entries = [(f"{PLATFORM}.cluster.admins[{index}]", admin) for index, admin in enumerate(admins)]
    entries += [
        (f"{PLATFORM}.access[{index}].principal", entry.principal)
        for index, entry in enumerate(platform.access)
    ]
    yield from (
        (at, principal)
        for at, each in entries
        if (principal := known(each)) is not None and is_acting(principal, account.caller)
    )


def is_acting(principal: str, caller: str) -> bool:
    """Whether a caller is a principal or a session of it; the ARN of a session has the role's name without its path."""
    kind, _, name = principal.rpartition(":")[2].partition("/")
    account = principal.split(":")[4]
    session = f":sts::{account}:assumed-role/{name.rpartition('/')[2]}/"
    return caller == principal or (kind == "role" and session in caller)


def _zone_problems(platform: AwsPlatform, account: Account) -> Iterator[Problem]:
    network, zones = platform.network, account.zones
    if zones is None or not isinstance(network, AwsNewNetwork):
        return
    has = f"one of {', '.join(zones)}, the zones of {platform.region} where this account can have a cluster"
    if isinstance(network.zones, int):
        if len(zones) < network.zones:
            yield Problem(
                field=f"{PLATFORM}.network.zones",
                value=str(network.zones),
                allowed=f"up to {len(zones)}, the number of zones of this account: {', '.join(zones)}",
                fix=f"Write `zones: {len(zones)}`, or another aws:region.",
            )
        return
    for index, zone in enumerate(network.zones):
        if zone not in zones:
            yield Problem(
                field=f"{PLATFORM}.network.zones[{index}]",
                value=format_value(zone),
                allowed=has,
                fix="Write another zone.",
            )


def _pool_problems(platform: AwsPlatform, pool: AwsPool, account: Account, at: str) -> Iterator[Problem]:
    names = [machine.name for machine in pool.machines(platform.region)]
    zones = _zones_of_pool(platform, pool, account)
    available = account.available.get(pool.capacity)
    if available is not None and not available & set(names):
        yield Problem(
            field=f"{at}.capacity",
            value=f"{pool.capacity.value}, but none of {', '.join(names)} is available with it",
            allowed="a capacity type that at least one machine type of the pool is available with",
            fix="Write other machine types, or the other capacity.",
        )
    yield from _zones_without_subnet(platform, pool, account, f"{at}.zones")
    if account.offered is None or zones is None:
        return
    offered = account.offered
    if not any(offered.get(name, frozenset()) & zones for name in names):
        sellers = sorted({zone for name in names for zone in offered.get(name, ())})
        yield Problem(
            field=at,
            value=f"a pool in {', '.join(sorted(zones))}, which offer none of {', '.join(names)}",
            allowed=f"zones that offer one of them: {', '.join(sellers) or 'none in this region'}",
            fix="Write other zones for the network, or other machine types.",
        )


def _zones_without_subnet(
    platform: AwsPlatform, pool: AwsPool, account: Account, at: str
) -> Iterator[Problem]:
    """Zones of a pool outside the network, if the configuration has only the network's number of zones."""
    network = platform.network
    if not isinstance(network, AwsNewNetwork) or not isinstance(network.zones, int):
        return
    zones = zones_of_network(network, account, zones_of(platform.region))
    for index, zone in enumerate(pool.zones or ()):
        if zone not in zones:
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(zone),
                allowed=f"the zones of the network; with zones: {network.zones} these are {', '.join(zones)}",
                fix="Write one of them, or write the names of the network's zones.",
            )


def _zones_of_pool(platform: AwsPlatform, pool: AwsPool, account: Account) -> frozenset[str] | None:
    """The zones of a pool's machines; None if they are unknown."""
    if pool.zones is not None:
        return frozenset(pool.zones)
    if not isinstance(platform.network, AwsNewNetwork):
        return None
    return frozenset(zones_of_network(platform.network, account, zones_of(platform.region)))


def _no_machine_fits(need: QuotaDemand, account: Account, region: str) -> Problem:
    value = account.quotas[need.quota.code]
    return Problem(
        field=need.field,
        value=f"machines of {need.smallest} vCPUs or more, but this account's quota "
        f'"{need.quota.name}" ({need.quota.code}) is {value:g} vCPUs in {region}',
        allowed="a quota for at least one of them; below it EC2 reports insufficient capacity",
        fix=f"Request more with `{increase_command(need.quota, need.vcpus, region)}`, or leave out the pool until it is granted.",
    )


def _quota_warnings(platform: AwsPlatform, account: Account) -> Iterator[str]:
    by_quota: dict[Ec2Quota, list[QuotaDemand]] = defaultdict(list)
    for need in quota_demands(platform):
        by_quota[need.quota].append(need)
    for quota, wanted in by_quota.items():
        total, value = sum(need.vcpus for need in wanted), account.quotas.get(quota.code)
        if value is not None and value < total:
            places = ", ".join(need.field.removeprefix(f"{PLATFORM}.") for need in wanted)
            yield (
                f'quota "{quota.name}" ({quota.code}) is {value:g} vCPUs in {platform.region}; at their maximum, '
                f"{places} need {total}. Beyond the quota EC2 reports insufficient capacity. "
                f"Request more with `{increase_command(quota, total, platform.region)}`."
            )


def _how(pool: AwsPool) -> str:
    return "on spot" if pool.capacity.value == "spot" else "on demand"


def credential_plugin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """The problem of a missing AWS CLI, the credential plugin of EKS clusters; None if it is installed.

    `find` returns the path of a command. Without the plugin, `pulumi up` would create the cluster and then fail a
    quarter of an hour later, and no object in the cluster could be read or deleted.
    """
    if find(AWS_CLI) is not None:
        return None
    return Problem(
        field=AWS_CLI,
        value="no such command on the PATH of pulumi",
        allowed="the AWS CLI, version 2, which gets tokens for clients of the cluster",
        fix="Install it: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    )
