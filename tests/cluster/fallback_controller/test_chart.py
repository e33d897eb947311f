"""The chart of the fallback controller on a real control plane: the controller that it installs moves a job."""

from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.cli.controller_chart import PREREQUISITES, write_chart
from pulumi_holdfast.config import versions
from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.kubernetes.operators.job_operators import jobset_values
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from tests.support.clusters.admission import wait_until_enforced
from tests.support.clusters.control_plane import KIND, wait_until_served
from tests.support.clusters.operators import OWN_CHARTS, STACK, bare_operator_cluster
from tests.support.clusters.reconciler import LoopCluster, simulated_node
from tests.support.doc_pages import ROOT
from tests.support.json_objects import obj

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

EXAMPLE = ROOT / "examples/parts/controller"


def manifests(path: Path) -> list[Json]:
    return [obj(each) for each in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader)]


def is_adjusted(client: KubeClient, job: Json) -> bool:
    """Whether admission, which comes into force a moment after its policies exist, makes the job movable."""
    admitted = client.apply(job, field_manager="test", dry_run=True)
    return bool(obj(admitted["metadata"]).get("annotations"))


def test_an_installed_chart_moves_a_job_down_a_ladder_written_by_hand(tmp_path: Path) -> None:
    write_chart(tmp_path / "chart")
    with bare_operator_cluster(tmp_path / "cluster") as charts:
        charts.apply(simulated_node("system-0", None))
        charts.apply(*(simulated_node(f"{pool}-0", pool) for pool in ("spot-a", "on-demand")))
        charts.install("jobset-crds", OWN_CHARTS / "jobset-crds", "jobset-system")
        charts.install(
            "jobset",
            charts.workspace.charts_dir / "jobset",
            "jobset-system",
            jobset_values(versions.JOBSET, None, 1),
        )
        for each in manifests(tmp_path / "chart" / PREREQUISITES):
            charts.apply(each)
            if each["kind"] == KIND:
                wait_until_served(charts.client, str(obj(each["metadata"])["name"]))
        # Helm waits until the controller, which runs from the archives that its pod mounts, says that it is ready.
        values: Json = {"replicas": 1, "namespaces": ["vision"]}
        charts.apply(*manifests(EXAMPLE / "ladder.yaml"))
        charts.install(CONTROLLER, tmp_path / "chart" / CONTROLLER, CONTROLLER_NAMESPACE, values)
        runner = OperatorRunner(charts.workspace, STACK, report=lambda _: None)
        cluster = LoopCluster(
            client=charts.client, workspace=charts.workspace, host=runner, kinds=[JobSetKind()]
        )
        (job,) = manifests(EXAMPLE / "job.yaml")
        wait_until_enforced(charts.client, lambda client: is_adjusted(client, job))
        charts.apply(job)
        cluster.wait_on("resnet", "spot-a")
        cluster.evict_one("resnet")
        cluster.wait_on("resnet", "on-demand")
        assert cluster.state("resnet")["moves"] == 1
