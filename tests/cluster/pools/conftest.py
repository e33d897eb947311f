"""One control plane that knows Karpenter's kinds on EC2, for all tests of what a pool is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
import yaml

from rehearsal.kube.client import KubeClient
from tests.support.control_plane import CHECKOUT, running_control_plane

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from scheduling.json import Json, JsonValue

CRDS = CHECKOUT / "components" / "charts" / "karpenter-crds" / "files"


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the CRDs of Karpenter's provider for EC2."""
    with running_control_plane(tmp_path_factory.mktemp("pools")) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        for path in sorted(CRDS.glob("*.yaml")):
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
        condition=_is_established,
        what="the API server to serve it",
    )


def _is_established(definition: Json | None) -> bool:
    status = cast("Json", (definition or {}).get("status") or {})
    conditions = cast("list[JsonValue]", status.get("conditions") or [])
    return any(
        (found["type"], found["status"]) == ("Established", "True")
        for found in cast("list[Json]", conditions)
    )
