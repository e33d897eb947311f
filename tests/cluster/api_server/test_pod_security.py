"""The policy pack names the pods that a Pod Security standard rejects as a real API server does."""

from itertools import product

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.program.jobs.pod_security import rejected_by_standard
from pulumi_holdfast.program.resources import Value
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from tests.support.builders.gang_pods import pod
from tests.support.builders.stack_resources import resource
from tests.support.clusters.admission import is_refused, make_namespace

pytestmark = pytest.mark.cluster

CAREFUL: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINERS: tuple[Json, ...] = (
    CAREFUL,
    {"privileged": True},
    {"capabilities": {"add": ["IPC_LOCK"]}},
    {"capabilities": {"add": ["CHOWN"]}},
    *({key: value for key, value in CAREFUL.items() if key != left_out} for left_out in CAREFUL),
    {**CAREFUL, "runAsNonRoot": False},
)
PODS: tuple[Json, ...] = (
    {},
    {"hostIPC": True},
    {"volumes": [{"name": "shm", "hostPath": {"path": "/dev/shm"}}]},
    {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}},
)


@pytest.mark.parametrize("standard", ["privileged", "baseline", "restricted"])
def test_the_pack_names_the_pods_that_the_api_server_rejects(client: KubeClient, standard: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": standard}
    make_namespace(client, standard, labels)
    metadata: Value = {"name": standard, "labels": labels}
    namespace = resource("kubernetes:core/v1:Namespace", standard, {"metadata": metadata})
    for own, of_pod in product(CONTAINERS, PODS):
        spec: Json = {"containers": [{"name": "train", "image": "train:1", "securityContext": own}], **of_pod}
        named = [*rejected_by_standard(spec, namespace, standard, [namespace])]
        refused = is_refused(client, pod("train", standard, spec), "violates PodSecurity")
        assert bool(named) is refused, f"{spec}: {named}"
