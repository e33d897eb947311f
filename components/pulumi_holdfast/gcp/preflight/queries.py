"""Queries Google Cloud. Beside existing_cluster.py, no other module of the program does; every query is a read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_gcp.cloudquota import get_s_quota_infos
from pulumi_gcp.compute import get_machine_types, get_subnetwork, get_zones
from pulumi_gcp.container import get_engine_versions
from pulumi_gcp.organizations import get_client_config, get_project
from pulumi_gcp.storage import get_bucket, get_buckets, get_project_service_account

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.preflight import CloudQueries, refuse_or_warn
from pulumi_holdfast.gcp.config.sections import Channel
from pulumi_holdfast.gcp.network import PODS_RANGE, SERVICES_RANGE, subnetwork_name
from pulumi_holdfast.gcp.preflight.checks import (
    Project,
    SubnetworkRanges,
    preflight_problems,
    preflight_warnings,
)
from pulumi_holdfast.gcp.preflight.existing_cluster import existing_gke
from pulumi_holdfast.gcp.preflight.quotas import QuotaRow, granted_in, zones_of_cluster
from pulumi_holdfast.kubernetes.labels import STACK_LABEL
from pulumi_holdfast.ladder.machines import zones_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pulumi

    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.gcp.preflight.quotas import Granted


def provider_place(parent: pulumi.Resource) -> tuple[str, str]:
    """The project and the region of the Google Cloud provider of a component. Raises ConfigError if it has none."""
    queries = CloudQueries(
        credentials="Google Cloud credentials",
        fix="Log in with `gcloud auth application-default login`.",
        parent=parent,
    )
    found = queries.required("the provider's project", lambda: get_client_config(opts=queries.options))
    return found.project, found.region


class ProjectQueries:
    """Queries for the project of a stack.

    The result of a query without permission, or of a disabled API, is missing in the project; `failed_queries` has the
    reason.
    """

    def __init__(self, platform: GcpPlatform, stack: str, *, parent: pulumi.Resource) -> None:
        self._platform = platform
        self._stack = stack
        self._queries = CloudQueries(
            credentials="Google Cloud credentials",
            fix="Log in with `gcloud auth application-default login`; if the message names an API, enable it with "
            f"`gcloud services enable API --project {platform.project}`.",
            parent=parent,
        )
        self._options = self._queries.options
        self._bucket = naming.part(parent.pulumi_resource_name, _BUCKET)

    def project(self) -> Project:
        """Run all queries.

        Raises ConfigError if a query that the stack needs fails.
        """
        platform, queries = self._platform, self._queries
        # The number is part of every principal's name.
        number = queries.required(
            "resourcemanager.projects.get",
            lambda: get_project(project_id=platform.project, opts=self._options).number,
        )
        zones = queries.optional("compute.zones.list", self._zones)
        cluster = existing_gke(platform, queries)
        return Project(
            number=number,
            storage_agent=self._storage_agent(number),
            cluster=cluster,
            cluster_zones=zones_of_cluster(platform, zones) if cluster is None else cluster.zones,
            zones=zones,
            offered=self._sold(zones or zones_of(platform.region)),
            newest=queries.optional("container.projects.locations.getServerConfig", self._newest) or {},
            subnetwork=queries.optional("compute.subnetworks.get", self._subnetwork),
            buckets=queries.optional("storage.buckets.list", self._buckets) or {},
            granted=queries.optional("cloudquotas.quotas.get", self._granted),
            failed_queries=queries.failed,
        )

    def _zones(self) -> tuple[str, ...]:
        # Zones of every state: an outage of a zone must not move the nodes of a stack.
        answer = get_zones(project=self._platform.project, region=self._platform.region, opts=self._options)
        return tuple(sorted(answer.names))

    def _sold(self, zones: Sequence[str]) -> Mapping[str, frozenset[str]]:
        system = (machine.name for machine in self._platform.system_machines())
        types = sorted({*system, *(pool.machine_type for pool in self._platform.pools)})
        wanted = " OR ".join(f'(name = "{name}")' for name in types)
        offered: dict[str, frozenset[str]] = {}
        silent: list[str] = []
        for zone in zones:
            try:
                answer = get_machine_types(
                    project=self._platform.project, zone=zone, filter=wanted, opts=self._options
                )
                offered[zone] = frozenset(machine.name for machine in answer.machine_types)
            except Exception as error:  # noqa: BLE001 - the SDK raises nothing narrower
                if not silent:
                    # One reason for all: a caller without permission in one zone has none in others.
                    self._queries.record_failure("compute.machineTypes.list", error)
                silent.append(zone)
        return offered

    def _newest(self) -> Mapping[Channel, str]:
        answer = get_engine_versions(
            project=self._platform.project, location=self._platform.location, opts=self._options
        )
        by_name = answer.release_channel_latest_version
        return {channel: by_name[channel.upper()] for channel in Channel if channel.upper() in by_name}

    def _granted(self) -> Granted:
        infos = get_s_quota_infos(
            parent=f"projects/{self._platform.project}", service="compute.googleapis.com", opts=self._options
        ).quota_infos
        return granted_in(
            self._platform.region,
            (
                QuotaRow(
                    id=info.quota_id,
                    dimensions=row.dimensions,
                    locations=tuple(row.applicable_locations),
                    value=int(row.details[0].value or 0) if row.details else 0,
                )
                for info in infos
                for row in info.dimensions_infos
            ),
        )

    def _subnetwork(self) -> SubnetworkRanges | None:
        name = subnetwork_name(naming.gke_cluster_name(self._stack))
        try:
            found = get_subnetwork(
                project=self._platform.project, region=self._platform.region, name=name, opts=self._options
            )
        except Exception as error:
            # A new stack has none, and one in an existing network neither.
            if _NOT_FOUND in str(error):
                return None
            raise
        if not found.ip_cidr_range:
            return None
        ranges = {each.range_name: each.ip_cidr_range for each in found.secondary_ip_ranges or ()}
        return SubnetworkRanges(
            nodes=found.ip_cidr_range, pods=ranges.get(PODS_RANGE), services=ranges.get(SERVICES_RANGE)
        )

    def _buckets(self) -> Mapping[str, bool]:
        """Whether each bucket of this stack has a hierarchical namespace; a destroyed stack may have left some."""
        project, stack = self._platform.project, naming.as_google_label_value(self._stack)
        labeled = [
            bucket.name
            for bucket in get_buckets(project=project, prefix=self._bucket, opts=self._options).buckets
            if (bucket.labels or {}).get(STACK_LABEL) == stack
        ]
        return {
            name: any(
                each.enabled for each in get_bucket(name=name, opts=self._options).hierarchical_namespaces
            )
            for name in labeled
        }

    def _storage_agent(self, number: str) -> str:
        if self._platform.checkpoints.kms_key is None:
            return f"service-{number}@gs-project-accounts.iam.gserviceaccount.com"
        # The query creates the account if it does not exist; until then a grant to it is rejected.
        return self._queries.required(
            "resourcemanager.projects.get",
            lambda: (
                get_project_service_account(project=self._platform.project, opts=self._options).email_address
            ),
        )


#: How the provider's error ends for an object that does not exist.
_NOT_FOUND: Final = "not found"

#: What follows the cluster's name in the generated name of its bucket.
_BUCKET: Final = "checkpoints-bucket-"


def check_project(platform: GcpPlatform, stack: str, *, parent: pulumi.Resource) -> Project:
    """Query the project with the provider of the component `parent`, and check that it can hold the stack.

    Logs warnings to the engine; raises ConfigError with every problem. A query that fails causes no problem.
    """
    project = ProjectQueries(platform, stack, parent=parent).project()
    refuse_or_warn(preflight_problems(platform, project), preflight_warnings(platform, project))
    return project
