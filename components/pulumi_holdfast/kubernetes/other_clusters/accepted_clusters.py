"""The clusters whose jobs a stack accepts: the users of their controllers in its cluster, by namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.config.clusters import AcceptedClusterSection


def all_users(users: Mapping[str, Sequence[Input[str]]]) -> Sequence[Input[str]]:
    """The users of every other cluster."""
    return [user for each in users.values() for user in each]


def users_in(
    namespace: str, accepted: Sequence[AcceptedClusterSection], users: Mapping[str, Sequence[Input[str]]]
) -> Sequence[Input[str]]:
    """The users of the clusters whose jobs may run in a namespace, by the cluster's name."""
    return [user for each in accepted if namespace in each.namespaces for user in users[each.name]]
