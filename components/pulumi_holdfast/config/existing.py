"""An existing cluster in the configuration: it replaces `cluster`, and includes its network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.ladder.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi_holdfast.ladder.json import Json

#: Why a field of a new cluster is an error beside `existing`.
NOT_OF_EXISTING_CLUSTER: Final = (
    "Leave it out: the owner of an existing cluster sets it; without existing the stack creates a cluster."
)

_NETWORK: Final = "network"


class ExistingCluster(Section):
    """A cluster that the stack uses and does not own: it registers neither a cluster nor a network."""


def is_existing_cluster(value: object) -> bool:
    """Whether a value of `cluster` is an existing cluster."""
    return isinstance(value, ExistingCluster) or (isinstance(value, Mapping) and "existing" in value)


def fixes_beside_existing(new: type[Section], existing: tuple[str, ...]) -> Mapping[str, str]:
    """The fixes of an existing cluster's section: for each field of the new cluster that it does not have."""
    unused = [name for name in new.field_names() if name not in existing]
    return {**new.fixes, **dict.fromkeys(unused, NOT_OF_EXISTING_CLUSTER)}


def new_network_problems(
    document: Json, at: str, fields: tuple[str, ...] = (), others: tuple[str, ...] = ()
) -> Iterator[Problem]:
    """A network beside an existing cluster that does not consist of `fields`, those of an existing network.

    `others` may stand beside them.
    """
    network = document.get(_NETWORK)
    if not is_existing_cluster(document.get("cluster")) or _NETWORK not in document:
        return
    listed = " and ".join(fields)
    if isinstance(network, Mapping) and any(field in network for field in fields):
        for extra in sorted(set(network) - {*fields, *others}):
            yield Problem(
                field=f"{at}.{extra}",
                value="a field of a new cluster's network",
                allowed=f"{listed} beside an existing cluster",
                fix="Leave it out.",
            )
        return
    yield Problem(
        field=at,
        value="a new network beside an existing cluster",
        allowed=f"nothing{f', or {listed}' if fields else ''}: the cluster has a network",
        fix="Leave it out: the stack uses the cluster's network."
        + (f" To choose its subnets, write {listed}." if fields else ""),
    )
