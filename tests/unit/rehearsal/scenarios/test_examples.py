"""The examples say what their users were promised they may write."""

import json
from pathlib import Path

import pytest

from holdfast.rehearsal.output import render_table
from holdfast.rehearsal.scenarios.manifests import acting_as, load_example, pod_count
from holdfast.rehearsal.scenarios.pod_placement import worker_count
from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

CHECKOUT = Path(__file__).resolve().parents[4]


def job_of(jobset: Json) -> Json:
    replicated = mapping(sequence(mapping(jobset["spec"])["replicatedJobs"])[0])
    return mapping(mapping(replicated["template"])["spec"])


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_on_spot_needs_one_selector_and_five_restarts(name: str) -> None:
    jobset = load_example(CHECKOUT, name)
    job = job_of(jobset)
    pod = mapping(mapping(job["template"])["spec"])
    assert pod["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}, "the selector alone asks for spot"
    assert "tolerations" not in pod, "admission adds them: users need not know the taints"
    assert mapping(mapping(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "the restart limit"
    assert job["backoffLimit"] == 0, "a pod that is lost restarts the whole set, not itself alone"
    assert pod_count(jobset) == 2, "two pods, so that losing one concerns another"


def test_a_rayjobs_workers_alone_select_spot() -> None:
    rayjob = load_example(CHECKOUT, "rayjob-spot")
    cluster = mapping(mapping(rayjob["spec"])["rayClusterSpec"])
    head = mapping(mapping(mapping(cluster["headGroupSpec"])["template"])["spec"])
    worker = mapping(mapping(mapping(sequence(cluster["workerGroupSpecs"])[0])["template"])["spec"])
    assert "nodeSelector" not in head, "a head on spot takes the whole job with it when it goes"
    assert worker["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}, "workers can be replaced"
    assert worker_count(rayjob) == 2, "as many as its group has replicas"


def test_the_helper_pod_selects_nothing() -> None:
    spec = mapping(load_example(CHECKOUT, "helper-pod")["spec"])
    assert not {"nodeSelector", "affinity", "tolerations"} & set(spec), "it is there to show the default"


def test_an_example_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"examples/local/no-such\.yaml cannot be read"):
        load_example(tmp_path, "no-such")


def test_an_examples_pods_act_as_the_account_of_their_namespace() -> None:
    jobset = load_example(CHECKOUT, "jobset-spot", cloud="gcp")
    acting = acting_as(jobset, "trainer-of-mine")
    assert '"serviceAccountName": "trainer-of-mine"' in json.dumps(acting), "it acts as that of another stack"
    assert json.dumps(acting).replace("trainer-of-mine", "trainer-gcp-dev") == json.dumps(jobset), (
        "more than the account was changed"
    )


def test_a_tables_columns_are_as_wide_as_their_widest_cell() -> None:
    table = render_table(("scene", "seen"), [("a", "long enough"), ("much longer", "b")])
    assert table.splitlines() == [
        "scene        seen",
        "-----------  -----------",
        "a            long enough",
        "much longer  b",
    ], "columns line up and no line ends in spaces"
