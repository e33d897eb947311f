"""What a pod of a training namespace may be, whichever account creates it, on a real API server."""

from collections.abc import Callable, Mapping

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, sequence
from pulumi_holdfast.ladder.labels import HIGHEST_PRIORITY, OF_LADDER, POOL
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    container,
    expression,
    pod,
    preferred_affinity,
    required_affinity,
)
from tests.support.clusters.admission import admitted, refusal, required_expressions, tolerations_of
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

RESERVATION: Json = {"key": "holdfast.dev/reserved-for", "value": "another-job", "effect": "NoSchedule"}
EVERYWHERE: Json = {
    "topologyKey": "topology.kubernetes.io/zone",
    "labelSelector": {},
    "namespaceSelector": {},
}


def of_pods(kind: str, term: Json, *, preferred: bool = False) -> Json:
    """The fields of a pod with one affinity to pods."""
    weighed = [{"weight": 1, "podAffinityTerm": term}]
    name = "preferred" if preferred else "required"
    return {
        "affinity": {
            kind: {f"{name}DuringSchedulingIgnoredDuringExecution": weighed if preferred else [term]}
        }
    }


def of_nodes(*terms: Json) -> Json:
    """An affinity with these terms on nodes."""
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    }


SPREAD: Json = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
}


def toleration(**fields: str) -> Json:
    """The fields of a pod with one toleration."""
    return {"tolerations": [fields]}


def volume(**source: Json) -> Json:
    """The fields of a pod with one volume."""
    return {"volumes": [{"name": "data", **source}]}


ATTACKS: Mapping[str, tuple[str, Json]] = {
    "a pool of another ladder": ("training-pools", {"nodeSelector": {POOL: "a100"}}),
    "a pool of no ladder": ("training-pools", {"nodeSelector": {POOL: "of-no-tier"}}),
    "a priority class of the system": ("training-pods", {"priorityClassName": "system-node-critical"}),
    "the other priority class of the system": (
        "training-pods",
        {"priorityClassName": "system-cluster-critical"},
    ),
    "a priority class above the namespace's": ("training-pods", {"priorityClassName": "urgent"}),
    "a node": ("training-pods", {"nodeName": "system-1"}),
    "another scheduler": ("training-pods", {"schedulerName": "own"}),
    "a toleration of every taint": ("training-pods", toleration(operator="Exists")),
    "a toleration of every taint of an effect": (
        "training-pods",
        toleration(operator="Exists", effect="NoSchedule"),
    ),
    "a toleration of system nodes": (
        "training-pods",
        toleration(key="CriticalAddonsOnly", operator="Exists"),
    ),
    "a toleration of system nodes by value": (
        "training-pods",
        toleration(key="CriticalAddonsOnly", value="true", effect="NoSchedule"),
    ),
    "a toleration of control planes": (
        "training-pods",
        toleration(key="node-role.kubernetes.io/control-plane", operator="Exists"),
    ),
    "a toleration of nodes without their network policies": (
        "training-pods",
        toleration(key="node.cilium.io/agent-not-ready", operator="Exists"),
    ),
    "a toleration of nodes that Karpenter has not set up": (
        "training-pods",
        toleration(key="karpenter.sh/unregistered", operator="Exists"),
    ),
    "a toleration of every reservation": (
        "training-pods",
        toleration(key="holdfast.dev/reserved-for", operator="Exists"),
    ),
    "a toleration of a reservation": ("training-pods", {"tolerations": [RESERVATION]}),
    "a folder of the node": ("training-pods", volume(hostPath={"path": "/"})),
    "a volume of another's file server": ("training-pods", volume(nfs={"server": "10.0.0.1", "path": "/"})),
    "a file system of another namespace, without a claim": (
        "training-pods",
        volume(csi={"driver": "file.csi.azure.com", "volumeAttributes": {"shareName": "home"}}),
    ),
    "a disk of another": ("training-pods", volume(awsElasticBlockStore={"volumeID": "vol-1"})),
    "a network disk of another": (
        "training-pods",
        volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
    ),
    "an anti-affinity that keeps all namespaces out of a zone": (
        "training-pods",
        of_pods("podAntiAffinity", {**EVERYWHERE, "namespaces": ["web"]}),
    ),
    "a preferred anti-affinity against all namespaces": (
        "training-pods",
        of_pods("podAntiAffinity", EVERYWHERE, preferred=True),
    ),
    "an affinity to pods of another namespace": (
        "training-pods",
        of_pods("podAffinity", {"topologyKey": "kubernetes.io/hostname", "namespaces": ["vision"]}),
    ),
}


@pytest.fixture(autouse=True, scope="module")
def _a_class(tenant: KubeClient) -> None:
    tenant.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        },
        field_manager="tests",
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_pod_with_it_is_refused(tenant: KubeClient, attack: str) -> None:
    policy, spec = ATTACKS[attack]
    assert f"'{policy}'" in refusal(tenant, pod(namespace="tabular", spec=spec))


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_pod_with_it_is_left_alone_in_other_namespaces(tenant: KubeClient, attack: str) -> None:
    assert "training-" not in refusal(tenant, pod(namespace="web", spec=ATTACKS[attack][1]))


# The controller gives jobs the toleration of their reservation.
@pytest.mark.parametrize("attack", sorted(ATTACKS.keys() - {"a toleration of a reservation"}))
def test_a_pod_that_an_operator_makes_of_a_tenants_job_is_refused_alike(
    tenant: KubeClient, account: Callable[[str, str], KubeClient], attack: str
) -> None:
    policy, spec = ATTACKS[attack]
    job_controller = account("kube-system", "job-controller")
    assert f"'{policy}'" in refusal(job_controller, pod(namespace="tabular", spec=spec))


def test_the_pods_of_a_job_may_tolerate_its_reservation(account: Callable[[str, str], KubeClient]) -> None:
    held = pod(namespace="tabular", spec={"tolerations": [RESERVATION]})
    for namespace, name in (("kube-system", "job-controller"), ("kuberay-system", "kuberay-operator")):
        assert not refusal(account(namespace, name), held)
    assert "'training-pods'" in refusal(account("kube-system", "replicaset-controller"), held)


def bounds(admitted_pod: Json) -> list[list[tuple[str, list[str]]]]:
    """The operator and the pools of each expression on pools, in each term of the required node affinity."""
    required = obj(obj(obj(obj(admitted_pod["spec"])["affinity"])["nodeAffinity"]))
    terms = objects(obj(required["requiredDuringSchedulingIgnoredDuringExecution"])["nodeSelectorTerms"])
    return [
        [
            (str(each["operator"]), [str(value) for value in sequence(each.get("values"))])
            for each in objects(term["matchExpressions"])
            if each["key"] == POOL
        ]
        for term in terms
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"affinity": {}},
        {"affinity": preferred_affinity(expression(POOL, "In", "a100"))},
        {"affinity": of_pods("podAntiAffinity", {"topologyKey": "kubernetes.io/hostname"})["affinity"]},
        {"affinity": required_affinity([expression("kubernetes.io/arch", "In", "amd64")])},
        {"affinity": required_affinity([expression(POOL, "In", "a100")], [expression(POOL, "Exists")])},
        {"affinity": required_affinity([expression(POOL, "NotIn", "cpu")], [expression("a", "Exists")])},
        {"nodeSelector": {"kubernetes.io/hostname": "node-of-another"}},
        {"nodeSelector": {"holdfast.dev/system": "true"}},
        {"nodeSelector": {POOL: OF_LADDER}},
        {"affinity": required_affinity([])},
        {"affinity": of_nodes({"matchFields": [expression("metadata.name", "In", "system-1")]})},
        {"schedulingGates": [{"name": "example.com/wait"}]},
        {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["of-another"]}]},
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "of-another"}]},
        {"topologySpreadConstraints": [SPREAD], "shareProcessNamespace": True},
        volume(projected={"sources": [{"serviceAccountToken": {"path": "token", "audience": "of-another"}}]}),
    ],
)
def test_every_pod_needs_a_pool_of_its_ladder(tenant: KubeClient, spec: Json) -> None:
    for term in bounds(admitted(tenant, pod(namespace="tabular", spec=spec))):
        allowed = [set(pools) for operator, pools in term if operator == "In"]
        assert {"cpu-spot", "cpu", OF_LADDER} in allowed


def test_a_pod_of_a_gpu_ladder_may_use_the_default_pool_too(tenant: KubeClient) -> None:
    (term,) = bounds(admitted(tenant, pod(namespace="vision")))
    assert "cpu" in term[0][1]
    assert not {"cpu-spot"} & set(term[0][1])
    assert not refusal(tenant, pod(namespace="vision", spec={"nodeSelector": {POOL: "cpu"}}))


def test_the_affinity_gives_no_pod_a_toleration(tenant: KubeClient) -> None:
    assert tolerations_of(admitted(tenant, pod(namespace="tabular"))) == []
    assert tolerations_of(admitted(tenant, pod(namespace="vision"))) == []


def test_a_pod_that_brings_the_affinity_of_admission_keeps_one(tenant: KubeClient) -> None:
    once = admitted(tenant, pod(namespace="tabular"))
    again = pod(namespace="tabular", spec={"affinity": obj(once["spec"])["affinity"]})
    assert len(list(required_expressions(obj(admitted(tenant, again)["spec"])))) == 1


def test_the_exclusive_topology_of_a_jobset_counts_within_its_namespace(tenant: KubeClient) -> None:
    selector = {"matchExpressions": [expression("jobset.sigs.k8s.io/job-key", "Exists")]}
    term = {**EVERYWHERE, "labelSelector": selector}
    found = obj(admitted(tenant, pod(namespace="tabular", spec=of_pods("podAntiAffinity", term)))["spec"])
    (kept,) = objects(
        obj(obj(found["affinity"])["podAntiAffinity"])["requiredDuringSchedulingIgnoredDuringExecution"]
    )
    assert kept == {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}


def test_an_update_adds_no_toleration_that_creation_refuses(tenant: KubeClient) -> None:
    gated = pod(namespace="tabular", name="gated", spec={"schedulingGates": [{"name": "example.com/wait"}]})
    made = tenant.create(gated)
    tolerations = [*objects(obj(made["spec"])["tolerations"]), {"operator": "Exists"}]
    with pytest.raises(ApiError, match="training-pods"):
        tenant.merge_patch("v1", "Pod", "gated", {"spec": {"tolerations": tolerations}}, namespace="tabular")
    tenant.merge_patch("v1", "Pod", "gated", {"metadata": {"labels": {"a": "b"}}}, namespace="tabular")


def test_a_namespace_may_have_a_priority_of_its_own(tenant: KubeClient) -> None:
    urgent = pod(namespace="vision", spec={"priorityClassName": "urgent"})
    assert "priority" in refusal(tenant, urgent)
    tenant.merge_patch("v1", "Namespace", "vision", {"metadata": {"annotations": {HIGHEST_PRIORITY: "1000"}}})
    try:
        assert not refusal(tenant, urgent)
    finally:
        tenant.merge_patch(
            "v1", "Namespace", "vision", {"metadata": {"annotations": {HIGHEST_PRIORITY: None}}}
        )


def test_volumes_that_pod_security_allows_are_admitted(tenant: KubeClient) -> None:
    sources: tuple[Json, ...] = (
        {"emptyDir": {}},
        {"configMap": {"name": "program"}},
        {"secret": {"secretName": "token"}},
        {"persistentVolumeClaim": {"claimName": "checkpoints"}},
    )
    for source in sources:
        assert not refusal(tenant, pod(namespace="tabular", spec=volume(**source)))


def test_the_scheduler_binds_a_pod_to_its_pools_alone(tenant: KubeClient) -> None:
    for name, pool in (("foreign", "a100"), ("own", "cpu")):
        tenant.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {POOL: pool},
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
                "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
            },
            field_manager="tests",
        )
    tenant.create(pod(namespace="tabular", name="bound", containers=[container()]))
    found = tenant.wait_for(
        "v1",
        "Pod",
        "bound",
        namespace="tabular",
        timeout_seconds=180,
        condition=lambda each: bool(obj((each or {}).get("spec")).get("nodeName")),
        what="the pod is bound",
    )
    assert found is not None
    assert obj(found["spec"])["nodeName"] == "own"


def test_a_pod_in_a_namespace_without_a_ladder_is_refused(tenant: KubeClient) -> None:
    tenant.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "bare", "labels": {"holdfast.dev/training": "true"}},
        },
        field_manager="tests",
    )
    assert refusal(tenant, pod(namespace="bare"))
