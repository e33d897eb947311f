"""The plugin as its user runs it: the real kubectl, a real API server, and the rights of one namespace."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, PROGRESS
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS
from pulumi_holdfast.rehearsal.operator_runner.training.logs import logs_of_namespace
from tests.support.clusters.operators import STACK
from tests.support.clusters.plugin import TIERS, TRAINER, PluginCluster
from tests.support.clusters.reconciler import NAMESPACE, jobset, policy, wait_until
from tests.support.json_objects import obj, objects
from tests.support.training_program import TRAINING

pytestmark = pytest.mark.cluster


@pytest.fixture
def ladder(cluster: PluginCluster) -> Generator[None]:
    """The namespace has a ladder; no job is left afterwards."""
    cluster.loop.apply(policy(*TIERS))
    yield
    cluster.loop.clear()


@pytest.fixture
def job(cluster: PluginCluster, ladder: None, request: pytest.FixtureRequest) -> str:
    """A job of two pods that runs on its first tier. Each test has a name of its own: the last one's may still be deleted."""
    name = f"job-{abs(hash(request.node.name)) % 10**6}"
    cluster.loop.apply(jobset(name))
    cluster.loop.wait_on(name, "spot-a")
    return name


def test_jobs_and_why_show_the_position_to_a_user_with_the_rights_of_one_namespace(
    cluster: PluginCluster, job: str
) -> None:
    listed = cluster.kubectl("holdfast", "jobs")
    assert listed.returncode == 0
    row = next(line for line in listed.stdout.splitlines() if line.startswith(f"jobset/{job}"))
    assert row.split()[1:7] == ["1", "of", "3", "spot-a", "Running", "0"]
    documents = json.loads(cluster.kubectl("holdfast", "jobs", "-o", "json").stdout)
    assert [each["max_failures"] for each in documents] == [3]

    cluster.loop.evict_one(job)
    wait_until(lambda: "OutageCounted" in cluster.loop.said(job), "the eviction is counted", seconds=180)
    told = cluster.kubectl("holdfast", "why", job)
    assert told.returncode == 0
    assert "OutageCounted: Failures on spot-a: 1 of 3; the last was an eviction." in told.stdout
    assert "Failures on spot-a: 1; at 3 the job moves on; the last was an eviction" in told.stdout


def test_an_event_that_a_tenant_forges_prints_one_line_without_control_characters(
    cluster: PluginCluster, job: str
) -> None:
    forged = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job}-forged", "namespace": NAMESPACE},
        "involvedObject": {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "namespace": NAMESPACE,
            "name": job,
            "uid": obj(cluster.loop.job(job)["metadata"])["uid"],
        },
        "source": {"component": "holdfast-fallback"},
        "reason": "Moved",
        "message": "first\x1b[2J\x1b]0;owned\x07\n2026-01-01 00:00:00  Completed: second\u202e",
    }
    cluster.loop.apply(forged)
    told = cluster.kubectl("holdfast", "why", job)
    assert told.returncode == 0, told.stderr
    assert "Moved: first" in told.stdout
    (line,) = [line for line in told.stdout.splitlines() if "second" in line]
    assert "first" in line
    assert all(character.isprintable() for character in told.stdout if character != "\n")


def test_stop_resume_and_move_do_what_they_say(cluster: PluginCluster, job: str) -> None:
    asked = cluster.kubectl("holdfast", "stop", f"jobset/{job}")
    assert asked.returncode == 0
    wait_until(
        lambda: cluster.loop.state(job).get("phase") == "Stopped" and not cluster.loop.pods(job),
        "it is stopped",
        seconds=180,
    )
    resumed = cluster.kubectl("holdfast", "resume", job)
    assert resumed.returncode == 0
    cluster.loop.wait_on(job, "spot-a")

    moved = cluster.kubectl("holdfast", "move", job, "on-demand", "--timeout", "3m")
    assert moved.returncode == 0
    cluster.loop.wait_on(job, "on-demand")
    assert cluster.loop.state(job)["rank"] == 2


def test_errors_name_the_fix_and_show_no_traceback(cluster: PluginCluster, job: str, tmp_path: Path) -> None:
    unlabeled = {**jobset("alone"), "metadata": {"name": "alone", "namespace": NAMESPACE}}
    cluster.loop.apply(unlabeled)
    missing = tmp_path / "no-such-kubeconfig"
    found = {
        "unknown job": cluster.kubectl("holdfast", "why", "absent"),
        "another kind": cluster.kubectl("holdfast", "stop", "pod/any"),
        "no rights there": cluster.kubectl("holdfast", "jobs", "-n", "kube-system"),
        "it follows nothing": cluster.kubectl("holdfast", "stop", "alone"),
        "no such tier": cluster.kubectl("holdfast", "move", job, "moon"),
        "it runs": cluster.kubectl("holdfast", "resume", job),
        "no kubeconfig": cluster.kubectl("holdfast", "jobs", kubeconfig=missing),
        "no such file": cluster.kubectl("holdfast", "check", "-f", str(missing)),
        "reports no progress": cluster.kubectl("holdfast", "drill", job, "--yes"),
    }
    for what, ended in found.items():
        assert ended.returncode == 1, f"{what}: {ended.stdout}{ended.stderr}"
        assert "Traceback" not in ended.stderr, f"{what}: {ended.stderr}"
        assert ended.stderr.startswith("error: "), f"{what}: {ended.stderr}"
        assert "; allowed: " in ended.stderr, f"{what} says what is allowed: {ended.stderr}"
    assert f"jobset/{job}" in found["unknown job"].stderr
    assert "holdfast-view" in found["no rights there"].stderr
    assert FOLLOWS in found["it follows nothing"].stderr
    assert "spot-a, spot-b, on-demand" in found["no such tier"].stderr
    assert PROGRESS in found["reports no progress"].stderr


def test_drill_needs_the_right_to_take_a_node_and_finds_what_train_py_lost(
    cluster: PluginCluster, ladder: None, tmp_path: Path
) -> None:
    cluster.loop.apply(training_jobset(tmp_path / "checkpoints"))
    cluster.loop.wait_on("drilled", "spot-a")
    wait_until(lambda: progress(cluster) > 10, "it trains beyond its first checkpoint", seconds=180)
    refused = cluster.kubectl("holdfast", "drill", "drilled", "--yes")
    assert refused.returncode == 1
    assert "no right to get nodes; patch nodes" in refused.stderr

    words = (
        "holdfast",
        "drill",
        "jobset/drilled",
        "-n",
        NAMESPACE,
        "--yes",
        "--timeout",
        "10m",
        "-o",
        "json",
    )
    ended = cluster.kubectl(*words, kubeconfig=cluster.administrator, seconds=700)
    logs = first_workers_logs(cluster)
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}{[log[-500:] for log in logs]}"
    found = json.loads(ended.stdout)
    killed, continued = logs
    last = numbers_after("step ", killed)[-1]
    (resumed,) = numbers_after("continues from step ", continued)
    assert resumed == found["progressAfter"]
    # The program was killed: between its last report and its end are the steps between two reports at most.
    assert 0 <= (last - resumed) - found["stepsLost"] <= 4
    assert found["recovered"], "it was followed until the progress was past the old value"
    assert list(found["seconds"]) == ["lost", "replaced", "placed", "started", "reported", "recovered"]
    assert sorted(found["seconds"].values()) == list(found["seconds"].values())
    assert cluster.loop.state("drilled")["evictions"] == 1
    nodes = cluster.loop.client.list("v1", "Node")
    assert not [each for each in nodes if obj(each.get("spec")).get("unschedulable")]


def training_jobset(checkpoints: Path) -> Json:
    """A JobSet that trains in processes; a shell in front of the program ignores SIGTERM, so it is killed."""
    job = jobset("drilled")
    spec = obj(job["spec"])
    (first,) = objects(spec["replicatedJobs"])
    template = obj(first["template"])
    child = obj(template["spec"])
    pods = obj(child["template"])
    (container,) = objects(obj(pods["spec"])["containers"])
    variables = {
        "CHECKPOINT_URI": checkpoints.as_uri(),
        "STEPS": "100000",
        "STEPS_BETWEEN_CHECKPOINTS": "8",
        "SECONDS_PER_STEP": "1",
        # Longer than one look of the drill, also on a busy machine.
        "SECONDS_BETWEEN_REPORTS": "3",
    }
    env: list[Json] = [{"name": name, "value": value} for name, value in variables.items()]
    env.append({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    program = f"python {TRAINING / 'train.py'}; exit $?"
    runs: Json = {**container, "image": "python:3.13-slim", "command": ["sh", "-c", program], "env": env}
    metadata = obj(pods["metadata"])
    labeled: Json = {
        "metadata": {**metadata, "labels": {**obj(metadata.get("labels") or {}), RUNS.key: RUNS.value}},
        "spec": {
            **obj(pods["spec"]),
            "containers": [runs],
            "serviceAccountName": TRAINER,
            "terminationGracePeriodSeconds": 1,
        },
    }
    trains: Json = {**first, "template": {**template, "spec": {**child, "template": labeled}}}
    return {**job, "spec": {**spec, "replicatedJobs": [trains]}}


def first_workers_logs(cluster: PluginCluster) -> list[str]:
    """What the first worker of each gang has printed, first gang first."""
    folder = cluster.loop.workspace.logs_dir(STACK)
    logs = [log for _, log in logs_of_namespace(folder, NAMESPACE) if "-0-0-" in log.parts[-3]]
    return [log.read_text() for log in sorted(logs, key=lambda log: log.stat().st_mtime)]


def numbers_after(words: str, log: str) -> list[int]:
    """The numbers that a log has after these words."""
    return [int(line.removeprefix(words)) for line in log.splitlines() if line.startswith(words)]


def progress(cluster: PluginCluster) -> int:
    """The steps that the pods of the job report."""
    notes = [
        obj(obj(pod["metadata"]).get("annotations")).get(PROGRESS) for pod in cluster.loop.pods("drilled")
    ]
    return max((int(str(each).partition("/")[0]) for each in notes if each), default=0)
