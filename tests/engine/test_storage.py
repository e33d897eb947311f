"""Stacks with every kind of volume, protected, on the real engine and the real plugin of Kubernetes."""

from contextlib import closing
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.checks import FIELD, PLATFORM, names, protected
from pulumi_holdfast.rehearsal.lifecycle.run import LifecycleRun, StepReport, create, read_back
from pulumi_holdfast.rehearsal.scenarios.manifests import load_example
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.support.clusters.cloud_workspaces import cloud_workspace
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.json_objects import obj

# Seven minutes each.
pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.soak, pytest.mark.timeout(900)]

#: Each cloud with what of its volumes `pulumi destroy` refuses to delete: all but `scratch`, which has `deleteWithStack`.
KEPT = {
    "aws": {"main-volume-datasets-data-bucket", "main-volume-home-system"},
    "azure": {"main-volume-datasets-account", "main-volume-home-share"},
    "gcp": {"main-volume-datasets-bucket", "main-volume-home-system"},
}


def _protected(settings: Json) -> Json:
    config = mapping(settings["config"])
    return {**settings, "config": {**config, PLATFORM: {**mapping(config[PLATFORM]), FIELD: True}}}


@pytest.mark.parametrize("cloud", KEPT)
def test_its_volumes_are_made_once_its_job_is_admitted_and_its_data_stays(cloud: str, tmp_path: Path) -> None:
    stack = Stack.named(f"{cloud}-data", cloud_workspace(tmp_path), report=lambda _: None)
    report = StepReport(announce=lambda _: None)
    run = LifecycleRun(stack=stack, report=report, show_plan=lambda _: None, say=lambda _: None)
    run.configure(_protected(stack.subject.settings))
    try:
        stack.environment.start()
        with closing(KubeClient.from_kubeconfig(stack.kubeconfig)) as client:
            create(run.stack, report, run.show_plan)
            claims = client.list("v1", "PersistentVolumeClaim", namespace="vision")
            assert {str(obj(each["metadata"])["name"]) for each in claims} == {"datasets", "home", "scratch"}
            stack.environment.wait_until_jobs_are_admitted(stack.kubeconfig)
            job = load_example(CHECKOUT, "jobset-data", cloud=cloud)
            metadata = {**obj(job["metadata"]), "namespace": "vision"}
            client.apply({**job, "metadata": metadata}, field_manager="tests", dry_run=True)
            read_back(run.stack, report)
            kept = {each for each in names(protected(run.stack.checkpoint())) if "volume" in each}
            assert kept >= KEPT[cloud]
            assert not [each for each in kept if "scratch" in each]
            run.end(client)
    finally:
        stack.environment.remove()
    results = {step.name: step.result for step in report.steps}
    assert results["a second up"] == "nothing changed"
    assert results["refresh"] == "no drift"
    assert "nothing was deleted" in results["destroy while protected"]
