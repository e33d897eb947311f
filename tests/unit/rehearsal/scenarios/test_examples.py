"""The examples that scenarios apply, and the table of their results."""

import json
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import render_table
from pulumi_holdfast.rehearsal.scenarios.manifests import acting_as, load_example, pod_count
from pulumi_holdfast.rehearsal.scenarios.pod_placement import worker_count

CHECKOUT = Path(__file__).resolve().parents[4]


def job_of(jobset: Json) -> Json:
    replicated = mapping(sequence(mapping(jobset["spec"])["replicatedJobs"])[0])
    return mapping(mapping(replicated["template"])["spec"])


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_on_spot_needs_one_selector_and_five_restarts(name: str) -> None:
    jobset = load_example(CHECKOUT, name)
    job = job_of(jobset)
    pod = mapping(mapping(job["template"])["spec"])
    assert pod["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}
    assert "tolerations" not in pod
    assert mapping(mapping(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5
    assert job["backoffLimit"] == 0
    assert pod_count(jobset) == 2, "two pods, so that the loss of one affects another"


def test_only_the_workers_of_a_rayjob_select_spot() -> None:
    rayjob = load_example(CHECKOUT, "rayjob-spot")
    cluster = mapping(mapping(rayjob["spec"])["rayClusterSpec"])
    head = mapping(mapping(mapping(cluster["headGroupSpec"])["template"])["spec"])
    worker = mapping(mapping(mapping(sequence(cluster["workerGroupSpecs"])[0])["template"])["spec"])
    assert "nodeSelector" not in head
    assert worker["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}
    assert worker_count(rayjob) == 2


def test_the_helper_pod_selects_nothing() -> None:
    spec = mapping(load_example(CHECKOUT, "helper-pod")["spec"])
    assert not {"nodeSelector", "affinity", "tolerations"} & set(spec), "it shows the default pool"


def test_a_missing_example_is_named(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"examples/local/no-such\.yaml cannot be read"):
        load_example(tmp_path, "no-such")


def test_an_example_gets_the_service_account_of_its_namespace() -> None:
    jobset = load_example(CHECKOUT, "jobset-spot", cloud="gcp")
    acting = acting_as(jobset, "trainer-of-mine")
    assert '"serviceAccountName": "trainer-of-mine"' in json.dumps(acting)
    assert json.dumps(acting).replace("trainer-of-mine", "trainer-gcp-dev") == json.dumps(jobset)


def test_the_columns_of_a_table_are_as_wide_as_their_widest_cell() -> None:
    table = render_table(("scenario", "result"), [("a", "long enough"), ("much longer", "b")])
    assert table.splitlines() == [
        "scenario     result",
        "-----------  -----------",
        "a            long enough",
        "much longer  b",
    ]
