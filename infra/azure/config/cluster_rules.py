"""The rules of an AKS cluster's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.admission.rules import version_problem
from holdfast.infra.azure.config.cluster import Scaling
from holdfast.infra.azure.config.locations import SUBSCRIPTION
from holdfast.infra.azure.config.maintenance_rules import maintenance_problems
from holdfast.infra.azure.config.system_node_rules import system_node_problems
from holdfast.infra.config import rules
from holdfast.infra.config.access_rules import is_everywhere, not_on_the_internet
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.taints import AKS_SPOT, GPU, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.azure.config.cluster import AzureAccess, AzureCluster

#: What the nodes of spot pools are tainted with, by AKS too where they are scale sets.
_SPOT_TAINTS: Final = {Scaling.NAP: (SPOT,), Scaling.FIXED: (SPOT, AKS_SPOT)}

_ONE_WAY_IN: Final = "one of public and private: true"


def cluster_problems(
    cluster: AzureCluster, *, location: str | None, subscription: str | None, at: str
) -> Iterator[Problem]:
    """Everything that is wrong with a cluster; `location` and `subscription` are None where they are not known."""
    wrong_version = version_problem(f"{at}.version", cluster.version, (*_SPOT_TAINTS[cluster.scaling], GPU))
    yield from (wrong_version,) if wrong_version else rules.minor_version(cluster.version, f"{at}.version")
    yield from access_problems(cluster.access, f"{at}.access")
    yield from rules.repeated(cluster.admins, f"{at}.admins", "administrator")
    yield from maintenance_problems(cluster.maintenance, f"{at}.maintenance")
    yield from system_node_problems(cluster.system_nodes, location, f"{at}.systemNodes")
    if subscription is not None and cluster.disk_encryption_set is not None:
        yield from _in_subscription(cluster.disk_encryption_set, subscription, f"{at}.diskEncryptionSet")


def access_problems(access: AzureAccess, at: str) -> Iterator[Problem]:
    """Ways in that nobody can use, or that everybody can."""
    if access.public is None and not access.private:
        yield Problem(
            field=at,
            value="neither public nor private: true",
            allowed=_ONE_WAY_IN,
            fix="Add the public address from which you work, such as `public: {cidrs: [203.0.113.7/32]}`; or "
            "`private: true`, and run `pulumi up` inside the stack's network or beside it.",
        )
    if access.public is not None and access.private:
        yield Problem(
            field=at,
            value="both",
            allowed=f"{_ONE_WAY_IN}: AKS takes no public addresses for a private cluster",
            fix="Leave out the one or the other.",
        )
    if access.public_name and not access.private:
        yield Problem(
            field=f"{at}.publicName",
            value="true without private: true",
            allowed="true for a private cluster: a public one's name is known to everybody",
            fix="Leave it out.",
        )
    if access.public is not None:
        yield from _public(access.public.cidrs, f"{at}.public.cidrs")


def _public(cidrs: tuple[str, ...], at: str) -> Iterator[Problem]:
    if is_everywhere(cidrs):
        yield Problem(
            field=at,
            value="the whole internet",
            allowed="the blocks from which you work",
            fix="Write your own addresses, such as 203.0.113.0/24; or `private: true` instead of public.",
        )
    yield from rules.repeated(cidrs, at, "block")
    yield from not_on_the_internet(
        cidrs,
        at,
        fix="Write the public address behind which it is, such as your NAT gateway's; or `private: true` instead of "
        "public.",
    )


def _in_subscription(resource: str, subscription: str, field: str) -> Iterator[Problem]:
    own = resource.split("/")[2]
    if own.lower() != subscription.lower():
        yield Problem(
            field=field,
            value=f"a disk encryption set in the subscription {own}",
            allowed=f"one in {subscription}, the stack's: Azure encrypts a disk with none of another subscription",
            fix=f"Make one there, or change {SUBSCRIPTION}.",
        )
