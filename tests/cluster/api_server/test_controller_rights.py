"""The RBAC rules of the fallback controller on a real API server."""

from typing import Final

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, LEASE, RESERVATION_NAMESPACE
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.admission import make_namespace
from tests.support.clusters.controller_rights import rights
from tests.support.controller_calls import CALLS, Place
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

TRAINING: Final = "vision"
ELSEWHERE: Final = "web"

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
def cluster(client: KubeClient) -> KubeClient:
    """The cluster with the controller's account and rights, a training namespace and one that is none."""
    for namespace in (TRAINING, ELSEWHERE, CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE):
        make_namespace(client, namespace, {})
    for manifest in rights(TRAINING):
        client.apply(manifest, field_manager="tests")
    return client


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
        "spec": {"user": CONTROLLER_ACCOUNT, "resourceAttributes": asked},
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
    assert allowed <= expected


def test_other_leases_of_its_namespace_are_not_accessible(cluster: KubeClient) -> None:
    for verb in ("get", "update"):
        assert not may(
            cluster, verb, "coordination.k8s.io", "leases", CONTROLLER_NAMESPACE, "somebody-elses"
        ), f"{verb}: it stands in one election"
