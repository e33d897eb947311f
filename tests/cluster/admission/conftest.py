"""One control plane for all tests of admission."""

from collections.abc import Generator

import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.support.builders.training_jobs import RULES
from tests.support.clusters.admission import in_force, rewriting_objects
from tests.support.clusters.job_admission import Judging, running_job_admission, running_job_validation


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster where pods and jobs are admitted, with policies beside ours that change pods."""
    folder = tmp_path_factory.mktemp("admission")
    with running_job_admission(folder, RULES, in_force, beside=rewriting_objects()) as client:
        yield client


@pytest.fixture(scope="package")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Generator[Judging]:
    """A cluster that mutates and validates jobs, with ladders whose pools have known facts."""
    with running_job_validation(tmp_path_factory.mktemp("judging")) as found:
        yield found
