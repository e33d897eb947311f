"""What the accounts of JobSet and KubeRay may do, with the real operators on a real API server: they still run jobs."""

from collections.abc import Callable, Generator, Sequence

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.kubernetes.operators.job_operators import jobset_values, kuberay_values
from pulumi_holdfast.kubernetes.operators.operator_access import (
    JOBSET_RULES,
    JOBSET_WEBHOOKS,
    RAY_ROLE,
    RAY_SUBJECT,
)
from pulumi_holdfast.kubernetes.operators.pod_settings import SYSTEM_PRIORITY_CLASS
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT, JOBSET_ACCOUNT, KUBERAY_ACCOUNT
from pulumi_holdfast.rehearsal.control_plane.configuration import read_cluster, render_kubeconfig
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders import local_stacks
from tests.support.builders.training_jobs import jobset, pod_template, rayjob, replicated_job, worker_group
from tests.support.clusters.admission import wait_until_enforced
from tests.support.clusters.controller_rights import rights
from tests.support.clusters.operators import OWN_CHARTS, STACK, OperatorCluster, bare_operator_cluster
from tests.support.clusters.reconciler import namespace, simulated_node
from tests.support.json_objects import obj, objects

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

_RBAC = "rbac.authorization.k8s.io/v1"
_POLICIES = {"jobset-access", "operator-writes"}
_SECONDS = 180


def manifests() -> list[Json]:
    """The ClusterRole and the policies that the local stack has for its operators."""
    recording = local_stacks.stack("local")
    policies = [
        each
        for kind in ("Policy", "PolicyBinding")
        for mode in ("Mutating", "Validating")
        for each in recording.of(f":{mode}Admission{kind}")
        if obj(each.inputs["metadata"])["name"] in _POLICIES
    ]
    return [
        recording.one(":ClusterRole", f"main-operators-{RAY_ROLE}").inputs,
        *(each.inputs for each in policies),
    ]


def training(name: str) -> tuple[Json, Json]:
    """A training namespace, and the right of KubeRay in it."""
    binding: Json = {
        "apiVersion": _RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": RAY_ROLE, "namespace": name},
        "roleRef": role_ref("ClusterRole", RAY_ROLE),
        "subjects": [RAY_SUBJECT],
    }
    return namespace(name, training=True), binding


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Generator[OperatorCluster]:
    """JobSet and KubeRay as the local stack installs them for the training namespace `vision`, installed before it exists."""
    with bare_operator_cluster(tmp_path_factory.mktemp("operators")) as found:
        found.apply(simulated_node("system-0", None), simulated_node("cpu-0", "cpu"))
        for each in ("jobset", "kuberay"):
            found.install(f"{each}-crds", OWN_CHARTS / f"{each}-crds", f"{each}-system")
        found.apply(
            *manifests(), *(namespace(each) for each in ("holdfast-system", "holdfast-reservations", "web"))
        )
        wait_until_enforced(found.client, lambda client: bool(_role(client).get("rules")))
        install(found, "jobset", jobset_values(versions.JOBSET, None, 1))
        install(found, "kuberay-operator", kuberay_values(versions.KUBERAY, None, 1, ["vision"]))
        found.apply(*training("vision"), *rights("vision"))
        yield found


def install(charts: OperatorCluster, chart: str, values: Json) -> None:
    """Install the chart of an operator in its namespace."""
    charts.install(
        chart, charts.workspace.charts_dir / chart, f"{chart.removesuffix('-operator')}-system", values
    )


def _role(client: KubeClient) -> Json:
    """The ClusterRole of JobSet as it would be made of one without rules."""
    empty: Json = {
        "apiVersion": _RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": "jobset-controller"},
        "rules": [],
    }
    return client.apply(empty, field_manager="tests", dry_run=True)


_ACCOUNTS = ("system:serviceaccounts", "system:authenticated")
_NODES = ("system:nodes", "system:authenticated")


def may(
    client: KubeClient,
    user: str,
    verb: str,
    what: str,
    within: str,
    name: str = "",
    groups: Sequence[str] = _ACCOUNTS,
) -> bool:
    """Whether a user is authorized to do this: what `kubectl auth can-i --as` asks."""
    resource, _, group = what.partition(".")
    resource, _, subresource = resource.partition("/")
    asked: Json = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": within,
        "name": name,
    }
    review: Json = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {"name": ""},
        "spec": {"user": user, "groups": list(groups), "resourceAttributes": asked},
    }
    return obj(client.create(review)["status"]).get("allowed") is True


ACCOUNTS = {"controller": CONTROLLER_ACCOUNT, "JobSet": JOBSET_ACCOUNT, "KubeRay": KUBERAY_ACCOUNT}
_RBAC_KINDS = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")


@pytest.mark.parametrize("holder", ACCOUNTS)
def test_no_account_reads_secrets_of_others_or_grants_rights(charts: OperatorCluster, holder: str) -> None:
    account = ACCOUNTS[holder]
    refused = [
        *(
            (verb, "secrets", within)
            for verb in ("get", "list")
            for within in ("kube-system", "holdfast-system", "web", "")
        ),
        *(
            (verb, f"{kind}.rbac.authorization.k8s.io", within)
            for verb in ("create", "update", "patch", "bind", "escalate")
            for kind in _RBAC_KINDS
            for within in ("kube-system", "holdfast-system", "web", "")
        ),
        *(
            ("create", what, "kube-system")
            for what in ("pods", "pods/exec", "serviceaccounts/token", "pods/eviction")
        ),
        *(("create", what, "holdfast-system") for what in ("pods", "pods/exec", "serviceaccounts/token")),
        ("create", "nodes/proxy", ""),
        ("impersonate", "users", ""),
        ("update", "mutatingwebhookconfigurations.admissionregistration.k8s.io", ""),
        ("create", "mutatingwebhookconfigurations.admissionregistration.k8s.io", ""),
        ("update", "validatingadmissionpolicies.admissionregistration.k8s.io", ""),
        ("update", "namespaces", "vision"),
        ("update", "fallbackpolicies.holdfast.dev", "vision"),
        ("update", "resourcequotas", "vision"),
    ]
    assert [each for each in refused if may(charts.client, account, *each)] == []


def test_kuberay_may_do_nothing_outside_training_namespaces(charts: OperatorCluster) -> None:
    kinds = ("pods", "services", "secrets", "jobs.batch", "rayjobs.ray.io", "rayclusters.ray.io")
    for what in kinds:
        assert may(charts.client, KUBERAY_ACCOUNT, "create", what, "vision")
        for within in ("web", "holdfast-system", "kube-system", "jobset-system", ""):
            for verb in ("get", "list", "create", "delete"):
                assert not may(charts.client, KUBERAY_ACCOUNT, verb, what, within), (
                    f"{verb} {what} in {within}"
                )


def test_the_controller_writes_jobs_in_training_namespaces_alone(charts: OperatorCluster) -> None:
    for verb, what in (
        ("create", "rayjobs.ray.io"),
        ("patch", "jobsets.jobset.x-k8s.io"),
        ("create", "pods"),
        ("delete", "pods"),
        ("delete", "jobs.batch"),
    ):
        assert may(charts.client, CONTROLLER_ACCOUNT, verb, what, "vision")
        for within in ("web", "kube-system", "holdfast-system", "kuberay-system", ""):
            assert not may(charts.client, CONTROLLER_ACCOUNT, verb, what, within), (
                f"{verb} {what} in {within}"
            )


def test_a_node_reads_what_its_own_pods_use_and_creates_no_job(charts: OperatorCluster) -> None:
    def may_node(verb: str, what: str, within: str, name: str = "") -> bool:
        return may(charts.client, "system:node:cpu-0", verb, what, within, name, _NODES)

    assert may_node("patch", "nodes/status", "", "cpu-0")
    assert not may_node("get", "secrets", "vision", "of-a-pod-elsewhere")
    refused = (
        ("list", "secrets", "vision"),
        ("create", "rayjobs.ray.io", "vision"),
        ("patch", "jobsets.jobset.x-k8s.io", "vision"),
        ("create", "jobs.batch", "vision"),
        ("create", "pods/exec", "vision"),
        ("update", "fallbackpolicies.holdfast.dev", "vision"),
        ("create", "roles.rbac.authorization.k8s.io", "vision"),
    )
    assert [each for each in refused if may_node(*each)] == []


def test_jobset_has_the_rights_that_it_uses_and_no_more(charts: OperatorCluster) -> None:
    role = charts.client.get(_RBAC, "ClusterRole", "jobset-controller")
    assert obj(role)["rules"] == [dict(each) for each in JOBSET_RULES]
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        what = f"{kind}.admissionregistration.k8s.io"
        allowed = [
            name
            for name in (*JOBSET_WEBHOOKS, "of-another", "")
            if may(charts.client, JOBSET_ACCOUNT, "update", what, "", name)
        ]
        assert allowed == list(JOBSET_WEBHOOKS)


@pytest.fixture
def token_of(charts: OperatorCluster) -> Generator[Callable[[str], KubeClient]]:
    """A client with the token of an operator, by its chart's name: what its holder can do."""
    made: list[KubeClient] = []

    def client_of(chart: str, account: str) -> KubeClient:
        kubeconfig = charts.workspace.kubeconfig(STACK)
        token = charts.client.service_account_token(f"{chart}-system", account, 3600)
        own = kubeconfig.with_name(f"{account}-token")
        own.write_text(render_kubeconfig(account, read_cluster(kubeconfig), {"token": token}))
        made.append(KubeClient.from_kubeconfig(own))
        return made[-1]

    accounts = {"jobset": "jobset-controller", "kuberay": "kuberay-operator"}
    yield lambda chart: client_of(chart, accounts[chart])
    for client in made:
        client.close()


def a_job(within: str) -> Json:
    """A Job of one pod."""
    template = pod_template(spec={"restartPolicy": "Never"})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "stolen", "namespace": within},
        "spec": {"template": template},
    }


def test_the_pods_of_both_operators_have_a_priority_that_no_training_pod_reaches(
    charts: OperatorCluster,
) -> None:
    for within in ("jobset-system", "kuberay-system"):
        pods = charts.client.list("v1", "Pod", namespace=within)
        assert [obj(each["spec"])["priorityClassName"] for each in pods] == [SYSTEM_PRIORITY_CLASS]


@pytest.mark.parametrize("within", ["kube-system", "holdfast-system", "web"])
def test_the_holder_of_jobsets_token_starts_nothing_outside_training_namespaces(
    charts: OperatorCluster, token_of: Callable[[str], KubeClient], within: str
) -> None:
    with pytest.raises(ApiError, match="operator-writes"):
        token_of("jobset").create(a_job(within))
    charts.client.apply(a_job(within), field_manager="tests")
    holder = token_of("jobset")
    with pytest.raises(ApiError, match="operator-writes"):
        holder.delete("batch/v1", "Job", "stolen", namespace=within)


def test_the_holder_of_kuberays_token_makes_only_roles_of_autoscalers(
    token_of: Callable[[str], KubeClient],
) -> None:
    holder = token_of("kuberay")
    role: Json = {"apiVersion": _RBAC, "kind": "Role", "metadata": {"name": "stolen", "namespace": "vision"}}
    secrets: Json = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    with pytest.raises(ApiError, match="operator-writes"):
        holder.create({**role, "rules": [secrets]}, dry_run=True)
    holder.create({**role, "rules": [{**secrets, "resources": ["pods"]}]}, dry_run=True)
    binding: Json = {
        **role,
        "kind": "RoleBinding",
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    }
    for reference in (role_ref("ClusterRole", "cluster-admin"), role_ref("ClusterRole", RAY_ROLE)):
        with pytest.raises(ApiError):
            holder.create({**binding, "roleRef": reference}, dry_run=True)


def pods_of(client: KubeClient, within: str, label: str, count: int) -> list[Json]:
    """The pods with a label, once so many run."""

    def run(pods: list[Json]) -> bool:
        return sum(obj(pod.get("status")).get("phase") == "Running" for pod in pods) >= count

    return client.wait_list(
        "v1",
        "Pod",
        namespace=within,
        label_selector=label,
        timeout_seconds=_SECONDS,
        condition=run,
        what=label,
    )


def a_jobset(within: str) -> Json:
    return jobset(replicated_job(pod_template(spec={"restartPolicy": "Never"})), namespace=within)


def a_rayjob(within: str, *, scales: bool = False) -> Json:
    """A RayJob of a head and a worker."""
    found = rayjob(worker_group(pod_template()), spec={"submissionMode": "HTTPMode"})
    spec = obj(found["spec"])
    cluster: Json = {
        **obj(spec["rayClusterSpec"]),
        "rayVersion": "2.52.0",
        **({"enableInTreeAutoscaling": True} if scales else {}),
    }
    return {
        **found,
        "metadata": {"name": "train", "namespace": within},
        "spec": {**spec, "rayClusterSpec": cluster},
    }


def test_a_jobset_runs_and_its_webhook_has_a_certificate(charts: OperatorCluster) -> None:
    charts.apply(a_jobset("vision"))
    assert pods_of(charts.client, "vision", "jobset.sigs.k8s.io/jobset-name=train", 1)
    for kind, name in zip(
        ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"), JOBSET_WEBHOOKS, strict=True
    ):
        found = obj(charts.client.get("admissionregistration.k8s.io/v1", kind, name))
        assert all(obj(each["clientConfig"]).get("caBundle") for each in objects(found["webhooks"]))


def test_a_rayjob_runs(charts: OperatorCluster) -> None:
    charts.apply(a_rayjob("vision"))
    assert pods_of(charts.client, "vision", "ray.io/is-ray-node=yes", 2)
    charts.client.delete("ray.io/v1", "RayJob", "train", namespace="vision")
    charts.client.wait_until_gone(
        "ray.io/v1", "RayJob", "train", namespace="vision", timeout_seconds=_SECONDS
    )


def test_a_namespace_that_is_added_to_the_stack_gets_kuberay(charts: OperatorCluster) -> None:
    charts.apply(*training("speech"))
    install(charts, "kuberay-operator", kuberay_values(versions.KUBERAY, None, 1, ["vision", "speech"]))
    charts.apply(a_rayjob("speech", scales=True))
    assert pods_of(charts.client, "speech", "ray.io/is-ray-node=yes", 1)
    # The autoscaler of a RayCluster has a role of its own, which KubeRay makes.
    roles = charts.client.list(_RBAC, "Role", namespace="speech")
    assert [str(obj(each["metadata"])["name"]).startswith("train") for each in roles] == [True]


def test_jobs_outside_training_namespaces_do_not_start(charts: OperatorCluster) -> None:
    charts.apply(a_jobset("web"), a_rayjob("web"))

    def said(events: list[Json]) -> bool:
        return any("operator-writes" in str(each.get("message")) for each in events)

    charts.client.wait_list(
        "v1", "Event", namespace="web", timeout_seconds=_SECONDS, condition=said, what="the reason"
    )
    pods = charts.client.list("v1", "Pod", namespace="web", label_selector="jobset.sigs.k8s.io/jobset-name")
    assert pods == []
    assert charts.client.list("ray.io/v1", "RayCluster", namespace="web") == []
