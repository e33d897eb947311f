"""One control plane for all tests of it, running at the start of each."""

from collections.abc import Generator

import pytest

from tests.support.clusters.control_plane import Watched


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    found = Watched(tmp_path_factory.mktemp("control-plane"))
    yield found
    found.control_plane.delete()


@pytest.fixture
def watched(control_plane: Watched) -> Watched:
    """The control plane, up whatever the test before did to it."""
    control_plane.control_plane.start()
    return control_plane
