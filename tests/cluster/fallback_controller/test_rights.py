"""The RBAC rules of the fallback controller on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from holdfast.components.fallback_controller.access import (
    CLUSTER_RULES,
    JOB_RULES,
    JOBS_ROLE,
    LEASE_RULES,
    PLACEHOLDER_RULES,
    SUBJECT,
    role_ref,
)
from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE, LEASE, RESERVATION_NAMESPACE
from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.support.clusters.admission import make_namespace
from tests.support.clusters.control_plane import running_control_plane
from tests.support.controller_calls import CALLS, Place
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from holdfast.scheduling.json import Json

pytestmark = pytest.mark.cluster

TRAINING: Final = "vision"
ELSEWHERE: Final = "web"
RBAC: Final = "rbac.authorization.k8s.io/v1"
ACCOUNT: Final = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"

#: In which namespaces what is allowed at a place is allowed.
REACH: Final = {
    Place.EVERYWHERE: (TRAINING, ELSEWHERE, CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE),
    Place.TRAINING: (TRAINING,),
    Place.OWN: (CONTROLLER_NAMESPACE,),
    Place.RESERVING: (RESERVATION_NAMESPACE,),
}
#: What would be worth having.
COVETED: Final = (
    ("", "configmaps"),
    ("", "nodes/proxy"),
    ("", "pods/exec"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("apps", "deployments"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)
VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the controller's account and rights, a training namespace and one that is none."""
    with running_control_plane(tmp_path_factory.mktemp("rights")) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        for namespace in (TRAINING, ELSEWHERE, CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE):
            make_namespace(client, namespace, {})
        for manifest in rights():
            client.apply(manifest, field_manager="tests")
        yield client
        client.close()


def rights() -> Sequence[Json]:
    """The roles as the components make them, and their bindings."""
    return [
        role("ClusterRole", CONTROLLER, CLUSTER_RULES),
        role("ClusterRole", JOBS_ROLE, JOB_RULES),
        binding("ClusterRole", CONTROLLER),
        binding("ClusterRole", JOBS_ROLE, TRAINING),
        role("Role", CONTROLLER, LEASE_RULES, CONTROLLER_NAMESPACE),
        binding("Role", CONTROLLER, CONTROLLER_NAMESPACE),
        role("Role", CONTROLLER, PLACEHOLDER_RULES, RESERVATION_NAMESPACE),
        binding("Role", CONTROLLER, RESERVATION_NAMESPACE),
    ]


def role(kind: str, name: str, rules: Sequence[Json], namespace: str | None = None) -> Json:
    return {"apiVersion": RBAC, "kind": kind, "metadata": metadata(name, namespace), "rules": list(rules)}


def binding(kind: str, name: str, namespace: str | None = None) -> Json:
    return {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding" if namespace is None else "RoleBinding",
        "metadata": metadata(name, namespace),
        "roleRef": role_ref(kind, name),
        "subjects": [SUBJECT],
    }


def metadata(name: str, namespace: str | None) -> Json:
    return {"name": name} if namespace is None else {"name": name, "namespace": namespace}


def may(cluster: KubeClient, verb: str, group: str, resource: str, namespace: str, name: str = "") -> bool:
    """Whether the API server would let the controller."""
    kind, _, subresource = resource.partition("/")
    asked: Json = {
        "verb": verb,
        "group": group,
        "resource": kind,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review: Json = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "resourceAttributes": asked},
    }
    return obj(cluster.create(review)["status"])["allowed"] is True


def name_in(resource: str) -> str:
    return LEASE if resource == "leases" else ""


def test_every_call_of_the_controller_is_allowed(cluster: KubeClient) -> None:
    refused = [
        (call, namespace)
        for call in CALLS
        for namespace in REACH[call.place]
        if not may(
            cluster,
            call.verb,
            call.group,
            call.resource,
            namespace,
            "" if call.verb == "create" else name_in(call.resource),
        )
    ]
    assert refused == [], "the controller would stand still before these"


def test_nothing_else_is_allowed(cluster: KubeClient) -> None:
    expected = {
        (namespace, call.group, call.resource, call.verb) for call in CALLS for namespace in REACH[call.place]
    }
    looked_at = {(call.group, call.resource) for call in CALLS} | {*COVETED}
    allowed = {
        (namespace, group, resource, verb)
        for namespace in REACH[Place.EVERYWHERE]
        for group, resource in looked_at
        for verb in VERBS
        if may(cluster, verb, group, resource, namespace, name_in(resource))
    }
    assert allowed <= expected, "the role holds a right that the controller does not use"


def test_other_leases_of_its_namespace_are_not_accessible(cluster: KubeClient) -> None:
    for verb in ("get", "update"):
        assert not may(
            cluster, verb, "coordination.k8s.io", "leases", CONTROLLER_NAMESPACE, "somebody-elses"
        ), f"{verb}: it stands in one election"
