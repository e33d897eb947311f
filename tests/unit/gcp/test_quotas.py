"""Quotas of a Google Cloud project: which machine counts against which, what is granted, and what others use."""

import json
from collections.abc import Mapping, Sequence
from math import inf

import pytest

from pulumi_holdfast.config.preflight import CommandResult, QuotaUse, report
from pulumi_holdfast.gcp.preflight.checks import preflight_warnings
from pulumi_holdfast.gcp.preflight.quotas import (
    Quota,
    QuotaRow,
    granted_in,
    project_quota_uses,
    quota_uses,
    takes_of,
)
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue, with_attached
from tests.support.builders.gcp_stacks import PLATFORMS
from tests.support.fakes.gcp_project import ZONES, project

REGION = "us-central1"


def row(quota: str, value: int | None, **dimensions: str) -> Json:
    """A quota as the Cloud Quotas API lists it: a whole number is text, and 0 is left out."""
    details: Json = {} if value is None else {"value": str(value)}
    return {
        "quotaId": quota,
        "dimensionsInfos": [
            {"dimensions": dimensions, "details": details, "applicableLocations": [REGION, "europe-west4"]}
        ],
    }


LISTED = (
    row("CPUS-per-project-region", 24),
    row("N2-CPUS-per-project-region", 24),
    row("PREEMPTIBLE-CPUS-per-project-region", None),
    row("CPUS-ALL-REGIONS-per-project", 32),
    row("SSD-TOTAL-GB-per-project-region", 500),
    row("HDB-TOTAL-GB-per-project-region", 500),
    row("NVIDIA-A100-GPUS-per-project-region", 16),
    row("GPUS-ALL-REGIONS-per-project", -1),
    row("PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region", 8),
)


def instance(kind: str, **fields: JsonValue) -> Json:
    url = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a"
    return {"machineType": f"{url}/machineTypes/{kind}", "zone": url, **fields}


def uses(
    listed: Sequence[Json] | None = LISTED, instances: Sequence[Json] | None = (), stack: str = "gcp-prod"
) -> Mapping[str, QuotaUse]:
    asked: list[tuple[str, ...]] = []

    def run(words: tuple[str, ...]) -> CommandResult:
        asked.append(words)
        given = listed if "quotas" in words else instances
        if given is None:
            return CommandResult(
                code=1, output="", errors="ERROR: PERMISSION_DENIED: caller\n may not do this"
            )
        return CommandResult(code=0, output=json.dumps(given), errors="")

    found = {use.name: use for use in project_quota_uses(PLATFORMS[stack](), stack, run)}
    assert all(words[0] == "gcloud" for words in asked)
    if len(asked) > 1:
        (filter_,) = [word for word in asked[1] if word.startswith("status=")]
        assert filter_.endswith(f"NOT labels.goog-k8s-cluster-name=holdfast-{stack}")
    return found


def test_each_quota_counts_system_nodes_spot_and_fallback_pools() -> None:
    found = uses()
    assert found["CPUS-per-project-region"].fields == ("cluster.systemNodes",)
    assert found["CPUS-per-project-region"].asked == 72
    assert found["CPUS-per-project-region"].least == 24
    n2 = found["N2-CPUS-per-project-region"]
    assert n2.fields == ("pools[0]", "pools[1]")
    assert n2.asked == 20 * 8 + 20 * 32
    assert n2.blocks
    assert found["NVIDIA-A100-GPUS-per-project-region"].asked == 128
    assert found["PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region"].asked == 32
    assert found["GPUS-ALL-REGIONS-per-project"].granted == inf
    assert found["HDB-TOTAL-GB-per-project-region"].asked == 2000
    assert not [name for name in found if name.startswith(("A2-", "A3-"))]


def test_a_quota_below_one_machine_is_an_error_and_one_below_full_pools_a_warning() -> None:
    lines = list(report(tuple(uses().values())))
    (error,) = [line for line in lines if line.startswith("error: ")]
    assert "gcloud beta quotas preferences create --service compute.googleapis.com" in error
    assert error.rstrip("`.").endswith("--preferred-value 800 --dimensions region=us-central1")
    assert any('warning: "NVIDIA-A100' in line for line in lines)
    assert any("unlimited" in line for line in lines)


def test_machines_of_others_are_subtracted() -> None:
    spot: Json = {"scheduling": {"preemptible": True, "provisioningModel": "SPOT"}}
    n1 = instance(
        "n1-standard-4", guestAccelerators=[{"acceleratorType": "…/nvidia-tesla-t4", "acceleratorCount": 1}]
    )
    elsewhere = {**instance("n2-standard-8"), "zone": "…/zones/europe-west4-a"}
    found = uses(
        instances=[instance("n2-standard-4"), instance("a2-highgpu-8g"), instance("x-9"), n1, elsewhere,
                   instance("a3-highgpu-8g", **spot)],
    )  # fmt: skip
    assert found["N2-CPUS-per-project-region"].used == 4
    assert found["CPUS-per-project-region"].used == 4
    assert found["NVIDIA-A100-GPUS-per-project-region"].available == 8
    assert found["PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region"].blocks
    assert found["SSD-TOTAL-GB-per-project-region"].used is None


@pytest.mark.parametrize("which", ["listed", "instances"])
def test_a_query_without_permission_leaves_values_unknown(which: str) -> None:
    found = uses(None) if which == "listed" else uses(instances=None)
    assert all(use.used is None for use in found.values())
    lines = list(report(tuple(found.values())))
    denied = [line for line in lines if "PERMISSION_DENIED: caller may not do this" in line]
    assert bool(denied) == (which == "listed")
    assert which == "instances" or not any(use.blocks for use in found.values())


def test_a_quota_that_the_project_does_not_list_is_a_warning() -> None:
    found = uses([row("CPUS-per-project-region", 100)])
    assert found["N2-CPUS-per-project-region"].granted is None, "a stack must not be refused for it"
    assert "CPUS-ALL-REGIONS-per-project" not in found


def test_families_without_a_quota_of_their_own_are_dimensions() -> None:
    found = uses([row("GPUS-PER-GPU-FAMILY-per-project-region", 8, gpu_family="NVIDIA_A100", region=REGION)])
    use = found["GPUS-PER-GPU-FAMILY-per-project-region (NVIDIA_A100)"]
    assert (use.asked, use.granted) == (128, 8)
    assert use.increase.endswith(f"--dimensions region={REGION},gpu_family=NVIDIA_A100")


def test_a_value_for_the_region_takes_precedence() -> None:
    rows = [
        QuotaRow(id="a", dimensions={"region": REGION}, value=5),
        QuotaRow(id="a", value=100),
        QuotaRow(id="a", dimensions={"region": "europe-west4"}, value=7),
        QuotaRow(id="b", locations=("europe-west4",), value=7),
        QuotaRow(id="c", locations=("global",), value=7),
    ]
    assert granted_in(REGION, rows) == {Quota("a"): 5, Quota("c"): 7}


def test_every_machine_type_has_its_quotas() -> None:
    catalogue = machine_catalogue("gcp")
    everything = [*catalogue.values(), with_attached(catalogue["n1-standard-4"], "nvidia-tesla-t4", 1)]
    for machine in everything:
        units = {take.unit for take in takes_of(machine, CapacityType.SPOT, 100)}
        assert "GB" in units, f"{machine.name} has a boot disk"
        assert ("GPUs" in units) == bool(machine.gpus), f"{machine.name}"
        assert units & {"vCPUs", "GPUs"}, f"{machine.name} counts against something"


def test_an_update_warns_about_quotas_and_continues() -> None:
    granted = granted_in(REGION, [QuotaRow(id="CPUS-per-project-region", value=8)])
    (warning,) = preflight_warnings(PLATFORMS["gcp-prod"](), project(granted=granted))
    assert 'quota "CPUS-per-project-region" is too small for cluster.systemNodes' in warning
    assert not list(preflight_warnings(PLATFORMS["gcp-prod"](), project()))


def test_a_development_stack_fits_a_new_project() -> None:
    found = quota_uses(PLATFORMS["gcp-dev"](), ZONES[:1], granted_in(REGION, rows_of_a_new_project()))
    assert not any(use.blocks for use in found)
    short = {use.name for use in found if use.is_short}
    full = {"N2-CPUS-per-project-region", "CPUS-ALL-REGIONS-per-project", "SSD-TOTAL-GB-per-project-region"}
    assert short == full


def rows_of_a_new_project() -> list[QuotaRow]:
    listed = {"CPUS-per-project-region": 24, "N2-CPUS-per-project-region": 24, "CPUS-ALL-REGIONS-per-project": 12,
              "SSD-TOTAL-GB-per-project-region": 500}  # fmt: skip
    return [QuotaRow(id=name, value=value) for name, value in listed.items()]
