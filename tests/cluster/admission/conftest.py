"""One control plane for all tests of what the API server lets in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.admission_cluster import running_admission

if TYPE_CHECKING:
    from collections.abc import Generator

    from rehearsal.kube.client import KubeClient


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster where admission is in force and FallbackPolicy is known."""
    with running_admission(tmp_path_factory.mktemp("admission")) as client:
        yield client
