"""One control plane that knows Karpenter's kinds on Azure, for all tests of what a pool is made of there."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
import yaml

from rehearsal.kube.client import KubeClient
from rehearsal.paths import Workspace
from tests.support.admission_cluster import is_established
from tests.support.control_plane import running_control_plane

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from scheduling.json import Json


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the CRDs that AKS brings with node auto-provisioning."""
    crds = Workspace.find().charts_dir / "karpenter-azure" / "crds"
    with running_control_plane(tmp_path_factory.mktemp("aks-pools")) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        for path in sorted(crds.glob("*.yaml")):
            _establish(client, path)
        yield client
        client.close()


def _establish(client: KubeClient, path: Path) -> None:
    definition = cast("Json", yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
    client.apply(definition, field_manager="tests")
    client.wait_for(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        str(cast("Json", definition["metadata"])["name"]),
        timeout_seconds=30,
        condition=is_established,
        what="the API server to serve it",
    )
