"""`kubectl holdfast check`, with the real kubectl and the dry runs of a real API server."""

import subprocess

import pytest
import yaml

from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, role_ref
from pulumi_holdfast.ladder.json import Json
from tests.support.clusters.plugin import TIERS, PluginCluster
from tests.support.clusters.reconciler import JOBSET, NAMESPACE, jobset, policy, with_pods

pytestmark = pytest.mark.cluster


def test_check_is_judged_by_the_api_server_and_names_the_tiers(cluster: PluginCluster) -> None:
    cluster.loop.apply(policy(*TIERS))
    admitted = check(cluster, jobset("small"))
    assert admitted.returncode == 0
    *walk, _, _ = lines = admitted.stdout.splitlines()
    assert walk == [
        "jobset/small: admission accepts it, and it starts on spot-a.",
        "  tier 1 → pool spot-a: takes it",
        "  tier 2 → pool spot-b: takes it",
        "  tier 3 → pool on-demand: takes it",
        "  It reaches on-demand capacity.",
    ]
    assert all("not judged: " in each and "cannot create resource" in each for each in lines[-2:])

    cluster.loop.apply(*may_create("scientist", "jobs.batch", "pods"))
    assert check(cluster, jobset("small")).stdout.splitlines() == walk

    large = check(cluster, jobset("large", pods=100))
    assert large.returncode == 1
    assert "of the 100 pods that have to run together" in large.stdout

    refused = check(cluster, with_pods(jobset("refused"), serviceAccountName="absent"))
    assert refused.returncode == 1
    assert "The API server refuses a pod of worker: " in refused.stdout
    assert 'serviceaccount "absent" not found' in refused.stdout
    assert "Traceback" not in refused.stderr
    for kind in ("Job", "Pod"):
        version = "batch/v1" if kind == "Job" else "v1"
        assert cluster.loop.client.list(version, kind, namespace=NAMESPACE) == []
    assert cluster.loop.client.list(JOBSET, "JobSet", namespace=NAMESPACE) == []


def may_create(account: str, *resources: str) -> tuple[Json, Json]:
    """A Role for creating these resources, and its binding to a service account."""
    metadata: Json = {"name": "asks", "namespace": NAMESPACE}
    kinds = [each.partition(".") for each in resources]
    rules = [{"apiGroups": [group], "resources": [kind], "verbs": ["create"]} for kind, _, group in kinds]
    return (
        {"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": role_ref("Role", "asks"),
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
        },
    )


def check(cluster: PluginCluster, manifest: Json) -> subprocess.CompletedProcess[str]:
    """`kubectl holdfast check` of a manifest on its standard input."""
    return cluster.kubectl("holdfast", "check", "-f", "-", stdin=yaml.safe_dump(manifest))
