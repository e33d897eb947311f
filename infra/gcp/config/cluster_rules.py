"""The rules of a GKE cluster's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.admission.rules import version_problem
from holdfast.infra.config import rules
from holdfast.infra.config.access_rules import is_everywhere
from holdfast.infra.config.problems import shown
from holdfast.infra.gcp.config.machine_rules import named_machine, no_gpus
from holdfast.infra.gcp.config.maintenance_rules import maintenance_problems
from holdfast.infra.gcp.config.regions import REGION, is_zone_of, zone_problem
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.taints import GKE_SPOT_TAINT, GPU

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.cluster import DnsEndpoint, GcpAccess, GcpCluster

_ONE_WAY_IN: Final = "one of dnsEndpoint and authorizedNetworks"


def cluster_problems(cluster: GcpCluster, region: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a cluster; `region` is None where it is not known."""
    wrong_version = version_problem(f"{at}.version", cluster.version, (GKE_SPOT_TAINT, GPU))
    yield from (wrong_version,) if wrong_version else rules.minor_version(cluster.version, f"{at}.version")
    yield from access_problems(cluster.access, f"{at}.access")
    yield from maintenance_problems(cluster.maintenance, f"{at}.maintenance")
    if region is not None:
        yield from _location(cluster.location, region, f"{at}.location")
        yield from zones_outside(cluster.zones or (), region, f"{at}.zones")
        yield from _zone_of_control_plane(cluster, region, f"{at}.zones")
        yield from _of_region(cluster.database_key, region, f"{at}.databaseKey")
    machine, field = cluster.system_nodes.machine_type, f"{at}.systemNodes.machineType"
    yield from named_machine(machine, field)
    yield from no_gpus(machine, field)


def access_problems(access: GcpAccess, at: str) -> Iterator[Problem]:
    """Ways in that nobody can use, or that everybody can without its having been said."""
    named, blocks = access.dns_endpoint, access.authorized_networks
    if named is None and blocks is None:
        yield Problem(
            field=at,
            value="neither dnsEndpoint nor authorizedNetworks",
            allowed=_ONE_WAY_IN,
            fix="Add the public address from which you work, such as `authorizedNetworks: [203.0.113.7/32]`; or, for "
            "a private endpoint, the block of the network in which `pulumi up` runs.",
        )
    if named is not None and blocks is not None:
        yield Problem(field=at, value="both", allowed=_ONE_WAY_IN, fix="Leave out the one or the other.")
    if named is not None:
        yield from _dns_endpoint(named, f"{at}.dnsEndpoint")
    if is_everywhere(blocks or ()):
        yield Problem(
            field=f"{at}.authorizedNetworks",
            value="the whole internet",
            allowed="the blocks from which you work",
            fix="Write your own addresses, such as 203.0.113.0/24; or, for an endpoint that is open to the internet "
            "and guarded by IAM, dnsEndpoint: {allowExternal: true}.",
        )
    yield from rules.repeated(blocks or (), f"{at}.authorizedNetworks", "block")


def zones_outside(zones: tuple[str, ...], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and such as stand there twice."""
    for index, zone in enumerate(zones):
        wrong = zone_problem(zone, region, f"{at}[{index}]")
        yield from (wrong,) if wrong else ()
    yield from rules.repeated(zones, at, "zone")


def _dns_endpoint(endpoint: DnsEndpoint, at: str) -> Iterator[Problem]:
    if not endpoint.allow_external:
        yield Problem(
            field=f"{at}.allowExternal",
            value="not true",
            allowed="true: this endpoint is reached from the whole internet, where IAM alone guards it, or by nobody",
            fix="Say `allowExternal: true` if that is meant; or write authorizedNetworks instead of dnsEndpoint, with "
            "the blocks from which you work.",
        )


def _location(location: str | None, region: str, field: str) -> Iterator[Problem]:
    if location is not None and location != region and not is_zone_of(location, region):
        yield Problem(
            field=field,
            value=shown(location),
            allowed=f"{region}, the stack's region, or one of its zones",
            fix=f"Leave it out for {region}, or change {REGION}.",
        )


def _zone_of_control_plane(cluster: GcpCluster, region: str, field: str) -> Iterator[Problem]:
    location, zones = cluster.location, cluster.zones
    if location is None or not is_zone_of(location, region) or zones is None or location in zones:
        return
    yield Problem(
        field=field,
        value=", ".join(zones),
        allowed=f"zones with {location} among them, where the control plane is",
        fix="Add it, or leave out zones for this one alone.",
    )


def _of_region(key: str | None, region: str, field: str) -> Iterator[Problem]:
    wrong = key_problem(key, region, field) if key is not None else None
    yield from (wrong,) if wrong else ()


def key_problem(key: str, region: str, field: str) -> Problem | None:
    """What is wrong with a key for something that is in a region: it is elsewhere."""
    location = key.split("/")[3]
    if location == region:
        return None
    return Problem(
        field=field,
        value=f"a key in {location}",
        allowed=f"a key in {region}: what it encrypts is there, and takes no key from another place",
        fix=f"Make one there: `gcloud kms keys create NAME --keyring RING --location {region} --purpose encryption`.",
    )
