"""Invalid documents of GCP stacks, each with one mistake and the problem that it causes."""

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders.configurations import Document
from tests.support.invalid_configs.everywhere import INVALID_EVERYWHERE
from tests.support.invalid_configs.mistakes import (
    ENDED,
    HOME,
    INVALID_VOLUMES,
    Mistake,
    changed,
    missing,
    reserved,
    volume,
    wrong,
)

BROUGHT: Document = {
    "network": "projects/host-project/global/networks/shared",
    "subnetwork": "projects/host-project/regions/us-central1/subnetworks/training",
    "podsRange": "pods",
    "servicesRange": "services",
}


def brought(name: str, value: JsonValue, fix: str) -> Mistake:
    """A mistake in an existing network."""
    return wrong(f".network.{name}", {**BROUGHT, name: value}, fix, at=".network")


def gpus(field: str, kind: str, count: int, fix: str, *, machine: str = "n1-standard-8") -> Mistake:
    """A mistake in the GPUs that are attached to a machine."""
    at = ".pools[1].accelerator"
    return wrong(f"{at}.{field}", {"type": kind, "count": count}, fix, at=at, machineType=machine)


RESERVATION: Document = {"name": "a100"}


def reserved_pool(field: str, fix: str, reservation: Document | None = None, **others: JsonValue) -> Mistake:
    """A pool of a reservation in one zone, with a mistake."""
    source: Document = {"zones": ["us-central1-a"], "reservation": {**RESERVATION, **(reservation or {})}}
    return reserved(".pools[2]", field, fix, source, **others)


def lustre(field: str, fix: str, **given: JsonValue) -> Mistake:
    """A parallel volume with a mistake."""
    return volume(field, fix, **{"kind": "parallel", "zone": "us-central1-a", "sizeGiB": 9000, **given})


INVALID_CONFIGS: dict[str, Mistake] = {
    **INVALID_EVERYWHERE,
    "a budget of nothing": wrong(".budget", 0, "for example, `budget: 400`"),
    "a reserved pool without a source": reserved(".pools[2]", "", "Add `reservation: {name: h100}`.", {}),
    "a reservation beside flexStart": reserved_pool("", "Remove all but one", flexStart={}),
    "flexStart on a spot pool": (changed(".pools[2]", flexStart={}), ".pools[2].flexStart", "Write capacity: reserved, or remove flexStart."),
    "a reservation that has ended": reserved_pool("reservation.ends", "the reservation that follows it", ENDED),
    "the link of a reservation": reserved_pool("reservation.name", 'Write "projects/shared-1/reservations/a100".', {"name": "https://www.googleapis.com/compute/v1/projects/shared-1/reservations/a100"}),
    "a reservation in two zones": reserved_pool("zones", "the zone of the reservation", zones=["us-central1-a", "us-central1-c"]),
    "a reservation with blue-green upgrades": reserved_pool("upgrades", "Write `upgrades: surge`", upgrades="blue-green"),
    "a reservation with compact placement": reserved_pool("compactPlacement", "Leave it out.", compactPlacement=True),
    "a machine of flexStart for ten days": reserved(".pools[2]", "flexStart.maxRunDuration", "Write 168h", {"flexStart": {"maxRunDuration": "240h"}}),
    "flexStart without GPUs": reserved(".pools[1]", "flexStart", "Write a machineType with GPUs", {"flexStart": {}}),
    "queued provisioning": reserved(".pools[2]", "flexStart.queued", "jobs that Kueue manages follow no ladder", {"flexStart": {"queued": True}}),
    "a project in the document": wrong(".project", "p", "gcp:project"),
    "a region in the document": wrong(".region", "us-east1", "gcp:region"),
    "an environment of one's own": wrong(".environment", "dev", "contain the stack's name"),
    "resourcePools of Determined": wrong(".resourcePools", [], "Write pools"),
    # pools
    "several machine types": wrong(".pools[1].machineType", ["n2-standard-16", "c3-standard-22"], "a GKE node pool has one machine type. If it is often out of capacity, list more zones"),
    "a list of one machine type": wrong(".pools[1].machineType", ["n2-standard-16"], 'Write "n2-standard-16", without the brackets.'),
    "instance types": wrong(".pools[1].instanceTypes", ["n2-standard-16"], "Write machineType"),
    "no machine type": missing(".pools[1].machineType", "Add `machineType: "),
    "a machine type with a typo": wrong(".pools[1].machineType", "n2-standrad-16", 'Write "n2-standard-16".'),
    "a machine type of another cloud": wrong(".pools[1].machineType", "Standard_ND96asr_v4", "gcloud compute machine-types list"),
    "a price cap": wrong(".pools[1].spotMaxPrice", 1.5, "Compute Engine has no bids"),
    "a price cap as in Determined": wrong(".pools[1].spot_max_price", "1.5", "Compute Engine has no bids"),
    "a taint of GPUs": wrong(".pools[2].taints", [{"key": "nvidia.com/gpu"}], "follow from its capacity and its GPUs"),
    "a number of nodes to begin with": wrong(".pools[1].initialNodeCount", 2, "zero nodes"),
    "a machine that is not sold on demand": wrong(".pools[3].machineType", "a3-highgpu-1g", "or the other capacity"),
    "an Arm machine": wrong(".pools[1].machineType", "t2a-standard-4", "n2-standard-4"),
    "GPUs for a machine that brings its own": wrong(".pools[2].accelerator", {"type": "nvidia-tesla-a100", "count": 8}, "Leave it out."),
    "GPUs for a machine that takes none": wrong(".pools[1].accelerator", {"type": "nvidia-tesla-t4", "count": 1}, "n1-standard-8"),
    "GPUs by another name": gpus("type", "nvidia-t4", 1, 'Write "nvidia-tesla-t4".'),
    "three GPUs": gpus("count", "nvidia-tesla-t4", 3, "`count: 1`"),
    "too few GPUs for so many vCPUs": gpus("count", "nvidia-tesla-v100", 1, "`count: 4`", machine="n1-standard-32"),
    "a pool in a zone outside the region": wrong(".pools[2].zones[0]", ["europe-west4-a"], 'Write "us-central1-a"'),
    "machines close together in two zones": wrong(".pools[2].compactPlacement", True, "`zones: [us-central1-a]`"),
    "machines close together in all zones": wrong(".pools[3].compactPlacement", True, "A later change of the zone replaces the node pool"),
    "machines close together of which none are": wrong(".pools[0].compactPlacement", True, "c2-standard-8", machineType="e2-standard-4", zones=["us-central1-a"]),
    "blue-green upgrades of machines close together": wrong(".pools[2].upgrades", "blue-green", "Write `upgrades: surge`", compactPlacement=True, zones=["us-central1-a"]),
    "a shutdown of a minute": wrong(".pools[1].gracefulShutdownSeconds", 60, "`gracefulShutdownSeconds: 30`"),
    "a shutdown on demand": wrong(".pools[3].gracefulShutdownSeconds", 30, "Leave it out."),
    "upgrades for short-lived machines": wrong(".pools[1].upgrades", "short-lived", "`upgrades: surge`"),
    "a name that is too long": wrong(".pools[1].name", "a" * 41, f'Write "{"a" * 40}".', without=[".namespaces"]),
    "a name that starts with a digit": wrong(".pools[1].name", "8gpus", 'Write "gpus".', without=[".namespaces"]),
    "a default pool on spot": wrong(".pools[1].default", True, "Write it on cpu instead.", without=[".pools[0].default"]),
    # classes
    "a class of GKE's": wrong(".pools[2].computeClass", "gke-a100", 'such as "training-gke-a100"', without=[".namespaces"]),
    "a class on the default pool": (lambda d: [changed(f".pools[{index}]", computeClass=f"class-{index}")(d) for index in (0, 1)], ".pools[0].computeClass", "Leave it out on this pool."),
    "a ladder with a class and a pool without": wrong(".namespaces[0].ladder", "a100", "to each of them, or to none", at=".pools[2].computeClass"),
    # checkpoints
    "soft delete for two days": wrong(".checkpoints.retainDays", 2, "`retainDays: 7`"),
    "soft delete for a year": wrong(".checkpoints.retainDays", 365, "`recovery: versioning`"),
    "versions in real folders": wrong(".checkpoints.recovery", "versioning", "Write `recovery: soft-delete`", hierarchical=True),
    "Google's word for versions": wrong(".checkpoints.versioning", True, "recovery: versioning"),
    "a key of checkpoints from elsewhere": wrong(".checkpoints.kmsKey", "projects/my-project/locations/us/keyRings/r/cryptoKeys/k", "--location us-central1"),
    "a bucket's name": wrong(".checkpoints.bucket", "mine", "and names it"),
    # the rest
    "a registry with its scheme": wrong(".mirror.images", "https://us-central1-docker.pkg.dev/my-project/mirror", 'Write "us-central1-docker.pkg.dev/my-project/mirror".'),
    "a namespace of GKE": wrong(".namespaces[0].name", "gke-managed-system", 'such as "training-gke-managed-system"'),
    # the cluster
    "no cluster": missing(".cluster", "Add `cluster: {access: "),
    "a version without MutatingAdmissionPolicy": wrong(".cluster.version", "1.35", '{key: cloud.google.com/gke-spot, operator: Equal, value: "true", effect: NoSchedule}'),
    "a version with a patch": wrong(".cluster.version", f"{versions.KUBERNETES}.4-gke.1391000", f'Write "{versions.KUBERNETES}".'),
    "a mistyped channel": wrong(".cluster.channel", "Regualr", 'Write "regular".'),
    "a control plane in another region": wrong(".cluster.location", "europe-west4", "Leave it out for us-central1, or change gcp:region."),
    "a control plane outside the node zones": wrong(".cluster.zones", "us-central1-f", "Add it, or leave out zones", at=".cluster.location"),
    "a zone of another region": wrong(".cluster.zones[1]", ["us-central1-a", "europe-west4-b"], 'Write "us-central1-b"'),
    "a zone that the region lacks": wrong(".cluster.zones[0]", ["us-central1-d"], 'Write "us-central1-a"'),
    "a zone without its region": wrong(".cluster.zones[0]", ["a"], "such as us-central1-a"),
    "a zone twice": wrong(".cluster.zones[1]", ["us-central1-a", "us-central1-a"], "Remove one"),
    "no access": wrong(".cluster.access", {}, "`authorizedNetworks: [203.0.113.7/32]`"),
    "public and private access": wrong(".cluster.access", {"dnsEndpoint": {"allowExternal": True}, "authorizedNetworks": ["203.0.113.0/24"]}, "Remove one of the two."),
    "an external endpoint without allowExternal": wrong(".cluster.access.dnsEndpoint.allowExternal", {"dnsEndpoint": {}}, "Write `allowExternal: true` to confirm it", at=".cluster.access"),
    "an endpoint with allowExternal false": wrong(".cluster.access.dnsEndpoint.allowExternal", {"dnsEndpoint": {"allowExternal": False}}, "or write authorizedNetworks instead", at=".cluster.access"),
    "the whole internet": wrong(".cluster.access.authorizedNetworks", ["0.0.0.0/0"], "dnsEndpoint: {allowExternal: true}"),
    "the whole internet in two halves": wrong(".cluster.access.authorizedNetworks", ["0.0.0.0/1", "128.0.0.0/1"], "Write your own addresses"),
    "an empty list of networks": wrong(".cluster.access.authorizedNetworks", [], "[203.0.113.0/24]"),
    "an address without a prefix length": wrong(".cluster.access.authorizedNetworks[0]", ["203.0.113.7"], 'Write "203.0.113.7/32".'),
    "publicAccessCidrs instead of access": wrong(".cluster.publicAccessCidrs", ["203.0.113.0/24"], "access: {authorizedNetworks: […]}"),
    "administrators": wrong(".cluster.admins", ["user:me@example.com"], "IAM controls who administers"),
    "system nodes with GPUs": wrong(".cluster.systemNodes.machineType", "g2-standard-8", "e2-standard-4"),
    "a system node with a typo": wrong(".cluster.systemNodes.machineType", "e2-standrad-4", 'Write "e2-standard-4".'),
    "an invalid key name": wrong(".cluster.secretsKey", "gke", "gcloud kms keys list"),
    "a version of a key": wrong(".cluster.secretsKey", "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1", 'rotates: "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k".'),
    "a key in another region": wrong(".cluster.secretsKey", "projects/my-project/locations/global/keyRings/r/cryptoKeys/k", "--location us-central1"),
    # maintenance
    "a window that is too short": wrong(".cluster.maintenance.window.hours", 4, "`hours: 12`", days=["saturday"]),
    "a day twice": wrong(".cluster.maintenance.window.days[1]", ["saturday", "saturday"], "Remove one", hours=12),
    "a day in another language": wrong(".cluster.maintenance.window.days[0]", ["Samstag"], "`days: [saturday, sunday]`"),
    "a time without quotes": wrong(".cluster.maintenance.window.start", 1320, 'Put it in quotes: "22:00".'),
    "an invalid time of day": wrong(".cluster.maintenance.window.start", "24:00", 'such as "02:00"'),
    "a relative exclusion date": wrong(".cluster.maintenance.exclusions[0].start", "now", "a relative one would change with every update"),
    "a day that the calendar lacks": wrong(".cluster.maintenance.exclusions[0].start", "2027-02-29", "Write a date of the calendar"),
    "an exclusion that ends before it begins": wrong(".cluster.maintenance.exclusions[0].end", "2026-11-30", "Write a later date"),
    # the network
    "ranges that overlap": wrong(".network.servicesCidr", "10.44.0.0/20", "Write another"),
    "a public pod range": wrong(".network.podsCidr", "8.0.0.0/14", "Leave it out"),
    "a pod range smaller than maxNodes": wrong(".network.podsCidr", "10.44.0.0/19", "Write a larger block, or smaller maxNodes."),
    "a node range smaller than maxNodes": wrong(".network.cidr", "10.40.0.0/27", "Write a larger block, or smaller maxNodes."),
    "a service range that is too small": wrong(".network.servicesCidr", "10.40.16.0/28", 'Write "10.40.16.0/20"'),
    "a range with host bits": wrong(".network.cidr", "10.40.0.1/20", 'Write "10.40.0.0/20".'),
    "a subnetwork without its network": wrong(".network.network", {name: BROUGHT[name] for name in BROUGHT if name != "network"}, "Add `network: ", at=".network"),
    "an existing network with a node range": brought("cidr", "10.40.0.0/20", "Leave it out"),
    "a subnetwork in another region": brought("subnetwork", "projects/host-project/regions/us-east1/subnetworks/a", "change gcp:region"),
    "a link to a network": brought("network", f"https://www.googleapis.com/compute/v1/{BROUGHT['network']}", f'Write "{BROUGHT["network"]}".'),
    "one range for pods and Services": brought("servicesRange", "pods", "Write another secondary range"),
    "jobs for a namespace with a typo": wrong(".acceptsFrom[0].namespaces[0]", [{**HOME, "namespaces": ["vison"]}], 'Write "vision".', at=".acceptsFrom"),
    "one cluster twice": wrong(".acceptsFrom[1].issuer", [HOME, {**HOME, "name": "us-west-1", "namespaces": ["tabular"]}], "in one entry", at=".acceptsFrom"),
    "two clusters with one name": wrong(".acceptsFrom[1].name", [HOME, {**HOME, "issuer": "https://other.example.com", "namespaces": ["tabular"]}], "Rename", at=".acceptsFrom"),
    "two homes of a namespace": wrong(".acceptsFrom[1].namespaces", [HOME, {**HOME, "name": "us-west-1", "issuer": "https://other.example.com"}], "in another namespace", at=".acceptsFrom"),
    "a stack for an issuer": wrong(".acceptsFrom[0].stack", [{**HOME, "stack": "acme/holdfast/aws-dev"}], "`pulumi stack output issuer`", at=".acceptsFrom"),
    # volumes
    **INVALID_VOLUMES,
    "Lustre without a size": lustre("sizeGiB", "the smallest", sizeGiB=None),
    "Lustre without a zone": lustre("zone", "Write ", zone=None),
    "Filestore without a size": volume("sizeGiB", "Write 1024", kind="shared"),
    "Filestore of a size that there is not": volume("sizeGiB", "Write 1024", kind="shared", sizeGiB=1500),
    "Lustre of a size of another throughput": lustre("sizeGiB", "Write 18000", throughput=500),
    "Lustre in a zone of another region": lustre("zone", "Write ", zone="us-east1-b"),
    "a file system on an existing cluster": (lambda d: (volume("", "", kind="shared", sizeGiB=1024)[0](d), d.update(cluster={"existing": "shared"}), d.pop("network", None)), ".storage[0].kind", "beside this stack"),
}  # fmt: skip
