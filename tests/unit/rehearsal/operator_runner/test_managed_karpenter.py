"""The managed Karpenter of AKS runs only for a cluster with node auto-provisioning."""

import asyncio
import contextlib
import logging
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.azure.cluster import provisioned_cluster
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.operator_runner.managed_karpenter import ManagedKarpenter
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.builders.aks_objects import aks_cluster


def cloud_with(folder: Path, *objects: CloudObject) -> CloudState:
    cloud = CloudState(folder / "azure-native.json")
    with cloud.changing() as console:
        for one in objects:
            console.put(one)
    return cloud


def karpenter(folder: Path, cloud: CloudState) -> ManagedKarpenter:
    """A managed Karpenter without program and CRDs."""

    def find_nothing(tool: str) -> Path:
        raise AssertionError(f"{tool} must not be searched")

    layout = RunnerLayout.of("test", Workspace(project_root=folder))
    return ManagedKarpenter(cloud=cloud, layout=layout, find_program=find_nothing, crds=folder / "none")


def run_briefly(managed: ManagedKarpenter) -> None:
    async def briefly() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(managed.run(), timeout=1)

    asyncio.run(briefly())


def test_only_a_cluster_with_node_auto_provisioning_is_found(tmp_path: Path) -> None:
    assert provisioned_cluster(CloudState(tmp_path / "azure-native.json")) is None
    assert list(tmp_path.iterdir()) == []
    fixed = cloud_with(tmp_path, aks_cluster())
    assert provisioned_cluster(fixed) is None
    provisioned = aks_cluster(provisions_nodes=True)
    assert provisioned_cluster(cloud_with(tmp_path, provisioned)) == provisioned


def test_nothing_runs_without_such_a_cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run_briefly(karpenter(tmp_path, cloud_with(tmp_path, aks_cluster())))
    assert caplog.messages == []


def test_failure_is_logged_and_retried(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cloud = cloud_with(tmp_path, aks_cluster(provisions_nodes=True))
    with caplog.at_level(logging.INFO):
        run_briefly(karpenter(tmp_path, cloud))
    assert caplog.messages, "the log must show why no pod gets a node"
    assert f"{tmp_path / 'none'} contains no CRDs; run `make tools`; next attempt in" in caplog.messages[0]
