"""A project that answers what the program asks, as far as a test lets it."""

import re
from collections.abc import Callable, Mapping

from pulumi_holdfast.config import versions
from pulumi_holdfast.gcp.config.sections import Channel
from pulumi_holdfast.gcp.preflight.checks import Project, SubnetworkRanges
from pulumi_holdfast.gcp.preflight.quotas import Granted
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import machine_catalogue
from tests.support.builders.configurations import kubernetes_minor
from tests.support.fakes.pulumi_engine import asked_of

NUMBER = "123456789012"
AGENT = f"service-{NUMBER}@gs-project-accounts.iam.gserviceaccount.com"
ZONES = ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f")
NEWEST = {
    Channel.RAPID: f"{kubernetes_minor(1)}.0-gke.1500000",
    Channel.REGULAR: f"{versions.KUBERNETES}.4-gke.1391000",
    Channel.STABLE: f"{kubernetes_minor(-1)}.8-gke.1225000",
    Channel.EXTENDED: f"{versions.KUBERNETES}.4-gke.1391000",
}

PROJECT_DATA = "gcp:organizations/getProject:getProject"
ZONE_NAMES = "gcp:compute/getZones:getZones"
TYPES = "gcp:compute/getMachineTypes:getMachineTypes"
SUBNETWORK = "gcp:compute/getSubnetwork:getSubnetwork"
BUCKETS = "gcp:storage/getBuckets:getBuckets"
QUOTAS = "gcp:cloudquota/getSQuotaInfos:getSQuotaInfos"
VERSIONS = "gcp:container/getEngineVersions:getEngineVersions"
STORAGE_AGENT = "gcp:storage/getProjectServiceAccount:getProjectServiceAccount"


def project(
    *,
    zones: tuple[str, ...] | None = ZONES,
    cluster_zones: tuple[str, ...] = ZONES[:3],
    offered: Mapping[str, frozenset[str]] | None = None,
    newest: Mapping[Channel, str] = NEWEST,
    subnetwork: SubnetworkRanges | None = None,
    buckets: Mapping[str, bool] | None = None,
    granted: Granted | None = None,
    failed_queries: tuple[str, ...] = (),
) -> Project:
    """A project that has everything in every zone."""
    everything = frozenset(machine_catalogue("gcp"))
    return Project(
        number=NUMBER,
        storage_agent=AGENT,
        cluster_zones=cluster_zones,
        zones=zones,
        offered=dict.fromkeys(ZONES, everything) if offered is None else offered,
        newest=newest,
        subnetwork=subnetwork,
        buckets=buckets or {},
        granted=granted,
        failed_queries=failed_queries,
    )


# Before the first update.
_NOTHING_YET: dict[str, Json] = {SUBNETWORK: {}, BUCKETS: {"buckets": []}, QUOTAS: {"quotaInfos": []}}


def answers(token: str, arguments: Json) -> Json:
    """What a generous project answers to each question."""
    names = re.findall(r'name = "([^"]+)"', str(arguments.get("filter")))
    return {
        PROJECT_DATA: {"number": NUMBER, "projectId": arguments.get("projectId")},
        # In no order, as a service may answer.
        ZONE_NAMES: {"names": [*reversed(ZONES)]},
        TYPES: {"machineTypes": [_machine_type(name) for name in names]},
        VERSIONS: {
            "releaseChannelLatestVersion": {
                channel.value.upper(): version for channel, version in NEWEST.items()
            }
        },
        **_NOTHING_YET,
        STORAGE_AGENT: {"emailAddress": AGENT, "member": f"serviceAccount:{AGENT}"},
    }[token]


def _machine_type(name: str) -> Json:
    lists: Json = {key: [] for key in ("accelerators", "bundledLocalSsds", "deprecateds")}
    texts: Json = dict.fromkeys(("architecture", "description", "selfLink"), "")
    numbers: Json = dict.fromkeys(
        ("guestCpus", "maximumPersistentDisks", "maximumPersistentDisksSizeGb", "memoryMb"), 1
    )
    return {**lists, **texts, **numbers, "isSharedCpus": False, "name": name}


def asked(ask: Callable[[], object], answer: Callable[[str, Json], Json] = answers) -> None:
    """Run what asks questions, with a project that answers them."""
    asked_of(answer, ask, stack="gcp")
