"""The quotas of a Google Cloud project and what its other machines use of them, from the answers of `gcloud`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.config.naming import gke_cluster_name
from pulumi_holdfast.gcp.preflight.queries import zones_of_cluster
from pulumi_holdfast.gcp.preflight.quotas import QuotaRow, granted_in, quota_uses, used_by
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue, with_attached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulumi_holdfast.config.preflight import QuotaUse, Runner
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.machines import Machine

#: The label that GKE gives the machines of a cluster.
_CLUSTER: Final = "goog-k8s-cluster-name"


def project_quota_uses(platform: GcpPlatform, stack: str, runner: Runner) -> tuple[QuotaUse, ...]:
    """Each quota that machines and boot disks of the stack count against.

    A query that fails, such as one without permission, leaves its values unknown.
    """
    zones = zones_of_cluster(platform, None)
    of_project = ("--project", platform.project, "--format", "json")
    answer = runner(
        ("gcloud", "beta", "quotas", "info", "list", "--service", "compute.googleapis.com", *of_project)
    )
    if answer.code != 0:
        reason = " ".join((answer.errors or answer.output).split())
        return quota_uses(platform, zones, None, reason=reason)
    granted = granted_in(platform.region, _rows(_listed(answer.output)))
    answer = runner(
        (
            *("gcloud", "compute", "instances", "list", *of_project),
            *("--filter", f"status=RUNNING AND NOT labels.{_CLUSTER}={gke_cluster_name(stack)}"),
        )
    )
    others = _machines(_listed(answer.output), platform.region) if answer.code == 0 else None
    return quota_uses(platform, zones, granted, used=None if others is None else used_by(others, granted))


def _listed(output: str) -> Iterator[Json]:
    return (mapping(each) for each in sequence(cast("JsonValue", json.loads(output or "[]"))))


def _rows(infos: Iterable[Json]) -> Iterator[QuotaRow]:
    for info in infos:
        for each in map(mapping, sequence(info.get("dimensionsInfos"))):
            yield QuotaRow(
                id=str(info.get("quotaId")),
                dimensions={name: str(value) for name, value in mapping(each.get("dimensions")).items()},
                locations=tuple(str(place) for place in sequence(each.get("applicableLocations"))),
                # JSON of Google's APIs has whole numbers as text, and leaves 0 out.
                value=int(str(mapping(each.get("details")).get("value") or 0)),
            )


def _machines(instances: Iterable[Json], region: str) -> Iterator[tuple[Machine, CapacityType]]:
    """The known machine types of instances in a region."""
    catalogue = machine_catalogue("gcp")
    for instance in instances:
        machine = catalogue.get(_last_part(instance.get("machineType")))
        if machine is None or not _last_part(instance.get("zone")).startswith(f"{region}-"):
            continue
        for attached in map(mapping, sequence(instance.get("guestAccelerators"))):
            # Machine types with GPUs of their own list these, too.
            if not machine.gpus:
                kind, count = (
                    _last_part(attached.get("acceleratorType")),
                    int(str(attached.get("acceleratorCount"))),
                )
                machine = _with(machine, kind, count)
        is_spot = mapping(instance.get("scheduling")).get("preemptible") is True
        yield machine, CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND


def _with(machine: Machine, kind: str, count: int) -> Machine:
    try:
        return with_attached(machine, kind, count)
    except ValueError:
        # GPUs that no pool of this program can have, such as those of virtual workstations.
        return machine


def _last_part(url: JsonValue) -> str:
    return str(url).rpartition("/")[2]
