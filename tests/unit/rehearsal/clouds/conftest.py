"""Served simulated providers, with an empty cloud for each test."""

from collections.abc import Generator
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds import CloudProvider
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import serve
from tests.support.clusters.provider_calls import Provider, calling


@pytest.fixture
def state_file(tmp_path: Path) -> Path:
    return tmp_path / "cloud.json"


def _provider(package: str, state_file: Path) -> Generator[Provider]:
    with serve(CloudProvider(package, state_file, Faults())) as served, calling(served.port) as provider:
        yield provider


@pytest.fixture
def aws(state_file: Path) -> Generator[Provider]:
    yield from _provider("aws", state_file)


@pytest.fixture
def gcp(state_file: Path) -> Generator[Provider]:
    yield from _provider("gcp", state_file)


@pytest.fixture
def azure(state_file: Path) -> Generator[Provider]:
    yield from _provider("azure-native", state_file)
