"""The network of training namespaces, on a real API server. It stores NetworkPolicies; no plugin enforces them on this machine."""

from collections.abc import Generator

import pytest
import yaml

from pulumi_holdfast.kubernetes.kubernetes_object import RBAC
from pulumi_holdfast.kubernetes.namespace_roles import (
    NamespaceRole,
    NamespaceRoles,
    NamespaceRolesArgs,
    group_of,
)
from pulumi_holdfast.kubernetes.network import API_VERSION, KIND, NAME
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders import local_stacks
from tests.support.builders.training_jobs import rayjob
from tests.support.clusters.admission import admitted, make_namespace
from tests.support.clusters.control_plane import CHECKOUT, define, read_definition
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

RAY_CLUSTERS = "components/pulumi_holdfast/kubernetes/charts/kuberay-crds/files/ray.io_rayclusters.yaml"


def policies() -> list[Json]:
    """The NetworkPolicies of the local stack."""
    found = local_stacks.stack("local").of(f":{KIND}")
    return [
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": each.inputs["metadata"],
            "spec": each.inputs["spec"],
        }
        for each in found
    ]


@pytest.fixture(scope="module")
def stored(tenant: KubeClient) -> Generator[list[Json]]:
    """The NetworkPolicies of the local stack, as the API server stores them."""
    applied: list[Json] = []
    for manifest in policies():
        namespace = str(obj(manifest["metadata"])["namespace"])
        if namespace not in {"tabular", "vision"}:
            make_namespace(tenant, namespace, {})
        applied.append(tenant.apply(manifest, field_manager="tests"))
    yield applied
    for each in applied:
        tenant.delete(API_VERSION, KIND, NAME, namespace=str(obj(each["metadata"])["namespace"]))


def test_every_namespace_of_the_platform_has_the_policy_as_it_is_written(stored: list[Json]) -> None:
    assert {str(obj(each["metadata"])["namespace"]) for each in stored} == {
        "holdfast-reservations",
        "holdfast-system",
        "jobset-system",
        "karpenter",
        "kuberay-system",
        "tabular",
        "vision",
    }
    for each, written in zip(stored, policies(), strict=True):
        assert each["spec"] == written["spec"]


@pytest.fixture(scope="module")
def _roles(tenant: KubeClient) -> None:
    recording = record(
        lambda: NamespaceRoles("roles", NamespaceRolesArgs(namespace="tabular", roles=list(NamespaceRole)))
    )
    for kind in ("Role", "RoleBinding"):
        for each in recording.of(f":{kind}"):
            tenant.apply({**each.inputs, "apiVersion": RBAC, "kind": kind}, field_manager="tests")


def may(
    tenant: KubeClient, role: NamespaceRole, verb: str, group: str, resource: str, within: str = "tabular"
) -> bool:
    """Whether the API server lets a user with a role in `tabular` do this."""
    resource, _, subresource = resource.partition("/")
    attributes = {
        "namespace": within,
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
    }
    review: Json = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "ada",
            "groups": [group_of("tabular", role), "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }
    return bool(obj(tenant.create(review)["status"])["allowed"])


@pytest.mark.usefixtures("_roles")
@pytest.mark.parametrize("role", NamespaceRole)
@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_no_role_of_a_namespace_writes_network_policies(
    tenant: KubeClient, role: NamespaceRole, verb: str
) -> None:
    assert may(tenant, role, "list", "jobset.x-k8s.io", "jobsets")
    assert not may(tenant, role, verb, "networking.k8s.io", "networkpolicies")
    assert not may(tenant, role, verb, "", "namespaces"), "their labels are what policies select by"


#: What would leave the namespace, or the bounds of its jobs, and belongs to no role.
BEYOND: tuple[tuple[str, str, str], ...] = (
    *(
        ("create", "", f"pods{subresource}")
        for subresource in (
            "",
            "/exec",
            "/attach",
            "/portforward",
            "/proxy",
            "/ephemeralcontainers",
            "/binding",
            "/eviction",
        )
    ),
    ("patch", "", "pods"),
    ("patch", "", "pods/status"),
    ("patch", "", "pods/resize"),
    ("deletecollection", "", "pods"),
    *(
        ("create", "", each)
        for each in ("services", "endpoints", "events", "persistentvolumeclaims", "podtemplates", "secrets")
    ),
    ("get", "", "secrets"),
    ("get", "", "services/proxy"),
    ("create", "", "serviceaccounts/token"),
    *(("patch", "", each) for each in ("resourcequotas", "limitranges", "serviceaccounts")),
    *(("create", "apps", each) for each in ("deployments", "daemonsets", "statefulsets", "replicasets")),
    *(("create", "batch", each) for each in ("jobs", "cronjobs")),
    *(("create", "ray.io", each) for each in ("rayclusters", "rayservices", "raycronjobs")),
    *(("patch", "ray.io", f"rayjobs/{each}") for each in ("status", "finalizers")),
    *(("patch", "jobset.x-k8s.io", f"jobsets/{each}") for each in ("status", "finalizers")),
    *(("patch", "holdfast.dev", each) for each in ("fallbackpolicies", "fallbackpolicies/status")),
    ("create", "coordination.k8s.io", "leases"),
    ("create", "discovery.k8s.io", "endpointslices"),
    ("create", "policy", "poddisruptionbudgets"),
    ("create", "resource.k8s.io", "resourceclaims"),
    ("create", "networking.k8s.io", "ingresses"),
    *(("create", "rbac.authorization.k8s.io", each) for each in ("roles", "rolebindings")),
)


@pytest.mark.usefixtures("_roles")
@pytest.mark.parametrize("role", NamespaceRole)
def test_no_role_of_a_namespace_has_rights_beyond_its_jobs(tenant: KubeClient, role: NamespaceRole) -> None:
    assert [each for each in BEYOND if may(tenant, role, *each)] == []
    elsewhere = [
        (verb, group, resource, within)
        for verb in ("create", "patch", "delete", "get")
        for group, resource in (
            ("jobset.x-k8s.io", "jobsets"),
            ("ray.io", "rayjobs"),
            ("", "configmaps"),
            ("", "pods"),
            ("", "persistentvolumeclaims"),
            ("coordination.k8s.io", "leases"),
            ("", "events"),
        )
        for within in ("vision", "holdfast-system", "kube-system", "")
        if may(tenant, role, verb, group, resource, within)
    ]
    assert elsewhere == []
    for group, resource in (
        ("scheduling.k8s.io", "priorityclasses"),
        ("node.k8s.io", "runtimeclasses"),
        ("karpenter.sh", "nodepools"),
        ("", "nodes"),
        ("", "persistentvolumes"),
        ("", "namespaces"),
    ):
        assert not any(
            may(tenant, role, verb, group, resource, "")
            for verb in ("create", "patch", "delete", "get", "list")
        )


@pytest.fixture(autouse=True, scope="module")
def _ray_clusters(tenant: KubeClient) -> None:
    define(tenant, read_definition(CHECKOUT / RAY_CLUSTERS))


def ray(kind: str, cluster: Json) -> Json:
    """A RayJob or a RayCluster that no ladder has."""
    job = rayjob(labels={"holdfast.dev/fallback": "false"})
    whole = {**obj(obj(job["spec"])["rayClusterSpec"]), **cluster}
    metadata = {**obj(job["metadata"]), "namespace": "tabular"}
    spec = {**obj(job["spec"]), "rayClusterSpec": whole} if kind == "RayJob" else whole
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def tokens(tenant: KubeClient, kind: str, cluster: Json) -> JsonValue:
    """The field `authOptions` of what is admitted."""
    spec = obj(admitted(tenant, ray(kind, cluster))["spec"])
    return (obj(spec["rayClusterSpec"]) if kind == "RayJob" else spec).get("authOptions")


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster"])
@pytest.mark.parametrize("version", ["2.52.0", "2.52", "2.100.1", "3.0.0", "v2.60.0", "10.1"])
def test_a_ray_of_a_version_with_tokens_asks_for_one(tenant: KubeClient, kind: str, version: str) -> None:
    assert tokens(tenant, kind, {"rayVersion": version}) == {"mode": "token"}


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster"])
@pytest.mark.parametrize(
    "cluster",
    [{}, {"rayVersion": ""}, {"rayVersion": "2.51.9"}, {"rayVersion": "2.9.0"}, {"rayVersion": "nightly"}],
)
def test_a_ray_of_another_version_stays_as_it_is(tenant: KubeClient, kind: str, cluster: Json) -> None:
    assert tokens(tenant, kind, cluster) is None, "KubeRay would refuse it"


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster"])
@pytest.mark.parametrize("chosen", [{"mode": "disabled"}, {"mode": "token", "secretName": "own"}])
def test_an_author_decides_about_tokens(tenant: KubeClient, kind: str, chosen: Json) -> None:
    assert tokens(tenant, kind, {"rayVersion": "2.52.0", "authOptions": chosen}) == chosen


def test_ray_outside_of_training_namespaces_stays_as_it_is(tenant: KubeClient) -> None:
    job = ray("RayJob", {"rayVersion": "2.52.0"})
    elsewhere = {**job, "metadata": {**obj(job["metadata"]), "namespace": "web"}}
    assert "authOptions" not in obj(obj(admitted(tenant, elsewhere)["spec"])["rayClusterSpec"])


def test_the_example_for_ray_asks_for_a_token(tenant: KubeClient) -> None:
    written = obj(yaml.safe_load((CHECKOUT / "examples/local/rayjob-spot.yaml").read_text()))
    job = admitted(tenant, {**written, "metadata": {**obj(written["metadata"]), "namespace": "tabular"}})
    assert obj(obj(job["spec"])["rayClusterSpec"])["authOptions"] == {"mode": "token"}
