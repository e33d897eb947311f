"""One control plane with the admission and the ladders of the local stack, for all attacks of a tenant."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.builders.training_jobs import pod
from tests.support.clusters.admission import make_namespace, refusal, wait_until_enforced
from tests.support.clusters.admitted_examples import running_for_examples, walking
from tests.support.json_objects import obj, objects


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the control plane."""
    return tmp_path_factory.mktemp("tenancy")


@pytest.fixture(scope="package")
def tenant(folder: Path) -> Generator[KubeClient]:
    """A client that RBAC allows everything: only the bounds of the namespaces `tabular` and `vision` stop it."""
    with running_for_examples(folder, "local") as client, walking("local", client) as walk:
        make_namespace(client, "web", {})
        wait_until_enforced(client, _is_bounded)
        yield walk.client


def _is_bounded(client: KubeClient) -> bool:
    """Whether each policy for pods has been taken up."""
    bound = pod(namespace="tabular", spec={"tolerations": [{"operator": "Exists"}]})
    foreign = pod(namespace="tabular", spec={"nodeSelector": {"holdfast.dev/pool": "a100"}})
    outside: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "namespace": "tabular"}}
    return all(
        refusal(client, manifest)
        for manifest in (bound, foreign, {**outside, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    )


@pytest.fixture(scope="package")
def account(folder: Path, tenant: KubeClient) -> Generator[Callable[[str, str], KubeClient]]:
    """A client of a service account, by its namespace and name, that RBAC allows everything."""
    made: list[KubeClient] = []

    def client_of(namespace: str, name: str) -> KubeClient:
        if namespace != "kube-system":
            make_namespace(tenant, namespace, {})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        for manifest in (
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace},
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": role_ref("ClusterRole", "cluster-admin"),
                "subjects": [subject],
            },
        ):
            tenant.apply(manifest, field_manager="tests")
        kubeconfig = Workspace(project_root=folder).kubeconfig("local")
        config = obj(yaml.safe_load(kubeconfig.read_text()))
        token = tenant.service_account_token(namespace, name, 3600)
        users = [{**each, "user": {"token": token}} for each in objects(config["users"])]
        own = kubeconfig.with_name(f"{name}-kubeconfig")
        own.write_text(yaml.safe_dump({**config, "users": users}))
        made.append(KubeClient.from_kubeconfig(own))
        return made[-1]

    yield client_of
    for client in made:
        client.close()
