"""One control plane for all tests of admission."""

from collections.abc import Generator

import pytest

from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.job_admission import Judging, running_job_validation


@pytest.fixture(scope="package")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Generator[Judging]:
    """A cluster that mutates and validates jobs, with ladders whose pools have known facts."""
    with running_job_validation(tmp_path_factory.mktemp("judging")) as found:
        yield found


@pytest.fixture(scope="package")
def cluster(judging: Judging) -> KubeClient:
    """The same cluster, with policies beside ours that change pods."""
    return judging.client


@pytest.fixture(scope="package")
def unvalidated(judging: Judging) -> KubeClient:
    """The same cluster for an account whose jobs are mutated and not validated."""
    return judging.as_controller
