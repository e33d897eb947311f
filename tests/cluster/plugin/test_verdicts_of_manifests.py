"""`kubectl holdfast check`, with the real kubectl and the admission policies of a real API server.

The last file of its folder: policies that were deleted are enforced for some seconds more.
"""

import subprocess

import pytest
import yaml

from holdfast.components.admission.job_admission import capacity_selections
from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.support.builders.training_jobs import RULES
from tests.support.clusters.admission import wait_until_enforced
from tests.support.clusters.job_admission import validation_objects
from tests.support.clusters.plugin import TIERS, PluginCluster
from tests.support.clusters.reconciler import JOBSET, NAMESPACE, jobset, policy

pytestmark = pytest.mark.cluster


def test_check_is_judged_by_the_api_server_and_names_the_tiers(cluster: PluginCluster) -> None:
    cluster.loop.apply(policy(*TIERS))
    admitted = check(cluster, jobset("small"))
    assert admitted.returncode == 0, admitted.stderr
    assert admitted.stdout.splitlines() == [
        "jobset/small: admission accepts it, and it starts on spot-a.",
        "  tier 1 → pool spot-a: takes it",
        "  tier 2 → pool spot-b: takes it",
        "  tier 3 → pool on-demand: takes it",
        "  It reaches on-demand capacity.",
    ], "every tier has room for it"

    cluster.loop.apply(*validation_objects(capacity_selections(RULES)))
    large = jobset("large", pods=100)

    def is_judged(client: KubeClient) -> bool:
        del client
        return check(cluster, large).returncode == 1 and "can-fall-back" in check(cluster, large).stderr

    wait_until_enforced(cluster.loop.client, is_judged)
    refused = check(cluster, large)
    assert "denied request" in refused.stderr, "the API server's own message"
    assert "Traceback" not in refused.stderr, "as an error"
    assert cluster.loop.client.list(JOBSET, "JobSet", namespace=NAMESPACE) == [], "nothing is created"


def check(cluster: PluginCluster, manifest: Json) -> subprocess.CompletedProcess[str]:
    """`kubectl holdfast check` of a manifest on its standard input."""
    return cluster.kubectl("holdfast", "check", "-f", "-", stdin=yaml.safe_dump(manifest))
