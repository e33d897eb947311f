"""Whether a private API server is reached from where pulumi runs."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.infra.azure.preflight.lookups import api_server_of
from holdfast.infra.azure.preflight.names import cluster_name_of
from holdfast.infra.config.reading import PLATFORM
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.infra.azure.config.stack import AzurePlatform

#: Tells why nobody answers at a host, None where somebody does.
Knock: TypeAlias = "Callable[[str], str | None]"

_PORT: Final = 443
_SECONDS: Final = 5.0


def knock(host: str) -> str | None:
    """Why nobody answers at a host; None where somebody does."""
    try:
        socket.create_connection((host, _PORT), timeout=_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    return None


def reach_problem(platform: AzurePlatform, stack: str, try_it: Knock = knock) -> Problem | None:
    """Why this run could put nothing into the stack's cluster; None where it can, or where there is none yet.

    A private API server answers in its network alone: from elsewhere each object in the cluster would be waited for in
    vain, one after the other.
    """
    access = platform.cluster.access
    if not access.private:
        return None
    host = api_server_of(cluster_name_of(stack), by_public_name=access.public_name)
    reason = None if host is None else try_it(host)
    if reason is None:
        return None
    return Problem(
        field=f"{PLATFORM}.cluster.access.private",
        value=f"true, and {host} does not answer here ({reason})",
        allowed="a place in the cluster's network, or beside it: a runner in its subnet, a peered network, a VPN",
        fix="Run pulumi there. Where the name alone is not known, link the cluster's private DNS zone to your network, "
        "or write `publicName: true`.",
    )
