"""Invalid clusters and networks of GCP stacks, each with one mistake and the problem that it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.infra import versions
from tests.support.builders.configurations import section

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document

    InvalidConfig = tuple[Callable[[Document], object], str, str]

BROUGHT: Document = {
    "network": "projects/host-project/global/networks/shared",
    "subnetwork": "projects/host-project/regions/us-central1/subnetworks/training",
    "podsRange": "pods",
    "servicesRange": "services",
}


def access(**given: JsonValue) -> Callable[[Document], object]:
    """Change the access."""
    return lambda document: section(document, "cluster").update(access=given)


def maintenance(**given: JsonValue) -> Callable[[Document], object]:
    """A document with other times of upgrades."""
    return lambda document: section(document, "cluster").update(maintenance=given)


INVALID_CLUSTERS: dict[str, InvalidConfig] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "no cluster": (lambda d: d.pop("cluster"), ".cluster", "Add `cluster: {access: "),
    "a version without MutatingAdmissionPolicy": (
        lambda d: section(d, "cluster").update(version="1.35"),
        ".cluster.version",
        '{key: cloud.google.com/gke-spot, operator: Equal, value: "true", effect: NoSchedule}',
    ),
    "a version with a patch": (
        lambda d: section(d, "cluster").update(version=f"{versions.KUBERNETES}.4-gke.1391000"),
        ".cluster.version",
        f'Write "{versions.KUBERNETES}".',
    ),
    "a version without quotes": (
        lambda d: section(d, "cluster").update(version=float(versions.KUBERNETES)),
        ".cluster.version",
        f'Put it in quotes: "{versions.KUBERNETES}".',
    ),
    "a mistyped channel": (
        lambda d: section(d, "cluster").update(channel="Regualr"),
        ".cluster.channel",
        'Write "regular".',
    ),
    "a control plane in another region": (
        lambda d: section(d, "cluster").update(location="europe-west4"),
        ".cluster.location",
        "Leave it out for us-central1, or change gcp:region.",
    ),
    "a control plane outside the node zones": (
        lambda d: section(d, "cluster").update(location="us-central1-f"),
        ".cluster.zones",
        "Add it, or leave out zones",
    ),
    "a zone of another region": (
        lambda d: section(d, "cluster").update(zones=["us-central1-a", "europe-west4-b"]),
        ".cluster.zones[1]",
        'Write "us-central1-b"',
    ),
    "a zone that the region lacks": (
        lambda d: section(d, "cluster").update(zones=["us-central1-d"]),
        ".cluster.zones[0]",
        'Write "us-central1-a"',
    ),
    "a zone without its region": (
        lambda d: section(d, "cluster").update(zones=["a"]),
        ".cluster.zones[0]",
        "such as us-central1-a",
    ),
    "a zone twice": (
        lambda d: section(d, "cluster").update(zones=["us-central1-a", "us-central1-a"]),
        ".cluster.zones[1]",
        "Remove one",
    ),
    "no access": (access(), ".cluster.access", "`authorizedNetworks: [203.0.113.7/32]`"),
    "public and private access": (
        access(dnsEndpoint={"allowExternal": True}, authorizedNetworks=["203.0.113.0/24"]),
        ".cluster.access",
        "Remove one of the two.",
    ),
    "an external endpoint without allowExternal": (
        access(dnsEndpoint={}),
        ".cluster.access.dnsEndpoint.allowExternal",
        "Write `allowExternal: true` to confirm it",
    ),
    "an endpoint with allowExternal false": (
        access(dnsEndpoint={"allowExternal": False}),
        ".cluster.access.dnsEndpoint.allowExternal",
        "or write authorizedNetworks instead",
    ),
    "the whole internet": (
        access(authorizedNetworks=["0.0.0.0/0"]),
        ".cluster.access.authorizedNetworks",
        "dnsEndpoint: {allowExternal: true}",
    ),
    "the whole internet in two halves": (
        access(authorizedNetworks=["0.0.0.0/1", "128.0.0.0/1"]),
        ".cluster.access.authorizedNetworks",
        "Write your own addresses",
    ),
    "an empty list of networks": (
        access(authorizedNetworks=[]),
        ".cluster.access.authorizedNetworks",
        "[203.0.113.0/24]",
    ),
    "an address without a prefix length": (
        access(authorizedNetworks=["203.0.113.7"]),
        ".cluster.access.authorizedNetworks[0]",
        'Write "203.0.113.7/32".',
    ),
    "publicAccessCidrs instead of access": (
        lambda d: section(d, "cluster").update(publicAccessCidrs=["203.0.113.0/24"]),
        ".cluster.publicAccessCidrs",
        "access: {authorizedNetworks: […]}",
    ),
    "administrators": (
        lambda d: section(d, "cluster").update(admins=["user:me@example.com"]),
        ".cluster.admins",
        "IAM controls who administers",
    ),
    "system nodes with GPUs": (
        lambda d: section(d, "cluster").update(systemNodes={"machineType": "g2-standard-8"}),
        ".cluster.systemNodes.machineType",
        "e2-standard-4",
    ),
    "a system node with a typo": (
        lambda d: section(d, "cluster").update(systemNodes={"machineType": "e2-standrad-4"}),
        ".cluster.systemNodes.machineType",
        'Write "e2-standard-4".',
    ),
    "an invalid key name": (
        lambda d: section(d, "cluster").update(databaseKey="gke"),
        ".cluster.databaseKey",
        "gcloud kms keys list",
    ),
    "a version of a key": (
        lambda d: section(d, "cluster").update(
            databaseKey="projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"
        ),
        ".cluster.databaseKey",
        'rotates: "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k".',
    ),
    "a key in another region": (
        lambda d: section(d, "cluster").update(
            databaseKey="projects/my-project/locations/global/keyRings/r/cryptoKeys/k"
        ),
        ".cluster.databaseKey",
        "--location us-central1",
    ),
    # maintenance
    "a window that is too short": (
        maintenance(window={"days": ["saturday"], "hours": 4}),
        ".cluster.maintenance.window.hours",
        "`hours: 12`",
    ),
    "a day twice": (
        maintenance(window={"days": ["saturday", "saturday"], "hours": 12}),
        ".cluster.maintenance.window.days[1]",
        "Remove one",
    ),
    "a day in another language": (
        maintenance(window={"days": ["Samstag"]}),
        ".cluster.maintenance.window.days[0]",
        "`days: [saturday, sunday]`",
    ),
    "a time without quotes": (
        maintenance(window={"start": 1320}),
        ".cluster.maintenance.window.start",
        'Put it in quotes: "22:00".',
    ),
    "an invalid time of day": (
        maintenance(window={"start": "24:00"}),
        ".cluster.maintenance.window.start",
        'such as "02:00"',
    ),
    "a relative exclusion date": (
        maintenance(exclusion={"start": "now"}),
        ".cluster.maintenance.exclusion.start",
        "a relative one would change with every update",
    ),
    "a day that the calendar lacks": (
        maintenance(exclusion={"start": "2027-02-29"}),
        ".cluster.maintenance.exclusion.start",
        "Write a date of the calendar",
    ),
    "an exclusion that ends before it begins": (
        maintenance(exclusion={"start": "2026-12-01", "end": "2026-11-30"}),
        ".cluster.maintenance.exclusion.end",
        "Write a later date",
    ),
    # the network
    "ranges that overlap": (
        lambda d: section(d, "network").update(servicesCidr="10.44.0.0/20"),
        ".network.servicesCidr",
        "Write another",
    ),
    "a public pod range": (
        lambda d: section(d, "network").update(podsCidr="8.0.0.0/14"),
        ".network.podsCidr",
        "Leave it out",
    ),
    "a pod range smaller than maxNodes": (
        lambda d: section(d, "network").update(podsCidr="10.44.0.0/19"),
        ".network.podsCidr",
        "Write a larger block, or smaller maxNodes.",
    ),
    "a node range smaller than maxNodes": (
        lambda d: section(d, "network").update(nodesCidr="10.40.0.0/27"),
        ".network.nodesCidr",
        "Write a larger block, or smaller maxNodes.",
    ),
    "a service range that is too small": (
        lambda d: section(d, "network").update(servicesCidr="10.40.16.0/28"),
        ".network.servicesCidr",
        'Write "10.40.16.0/20"',
    ),
    "a range with host bits": (
        lambda d: section(d, "network").update(nodesCidr="10.40.0.1/20"),
        ".network.nodesCidr",
        'Write "10.40.0.0/20".',
    ),
    "cidr instead of nodesCidr": (
        lambda d: section(d, "network").update(cidr="10.40.0.0/16"),
        ".network.cidr",
        "nodesCidr, podsCidr and servicesCidr",
    ),
    "a subnetwork without its network": (
        lambda d: d.update(network={key: value for key, value in BROUGHT.items() if key != "network"}),
        ".network.network",
        "Add `network: ",
    ),
    "an existing network with a node range": (
        lambda d: d.update(network={**BROUGHT, "nodesCidr": "10.40.0.0/20"}),
        ".network.nodesCidr",
        "Leave it out",
    ),
    "a subnetwork in another region": (
        lambda d: d.update(
            network={**BROUGHT, "subnetwork": "projects/host-project/regions/us-east1/subnetworks/a"}
        ),
        ".network.subnetwork",
        "change gcp:region",
    ),
    "a link to a network": (
        lambda d: d.update(
            network={
                **BROUGHT,
                "network": "https://www.googleapis.com/compute/v1/projects/host-project/global/networks/shared",
            }
        ),
        ".network.network",
        'Write "projects/host-project/global/networks/shared".',
    ),
    "one range for pods and Services": (
        lambda d: d.update(network={**BROUGHT, "servicesRange": "pods"}),
        ".network.servicesRange",
        "Write another secondary range",
    ),
}
