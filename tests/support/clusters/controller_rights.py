"""The fallback controller's service account on a test cluster, with its permissions and the policy on its writes."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.loop.settings import PLACEHOLDER_IMAGE
from pulumi_holdfast.kubernetes.fallback_controller.access import (
    CLUSTER_RULES,
    JOB_RULES,
    JOBS_ROLE,
    LEASE_RULES,
    PLACEHOLDER_RULES,
    SUBJECT,
)
from pulumi_holdfast.kubernetes.fallback_controller.write_policy import (
    NAME,
    binding_spec,
    policy_spec,
    predecessor_specs,
)
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE
from pulumi_holdfast.rehearsal.control_plane.configuration import read_cluster, render_kubeconfig
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.admission import wait_until_enforced

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_TOKEN_SECONDS: Final = 24 * 3600


def rights(*training: str) -> Sequence[Json]:
    """The roles as the components make them, and their bindings; without `training` the whole cluster is for training."""
    return [
        _role("ClusterRole", CONTROLLER, CLUSTER_RULES),
        _role("ClusterRole", JOBS_ROLE, JOB_RULES),
        _binding("ClusterRole", CONTROLLER),
        *(_binding("ClusterRole", JOBS_ROLE, each) for each in training),
        *([] if training else [_binding("ClusterRole", JOBS_ROLE)]),
        _role("Role", CONTROLLER, LEASE_RULES, CONTROLLER_NAMESPACE),
        _binding("Role", CONTROLLER, CONTROLLER_NAMESPACE),
        _role("Role", CONTROLLER, PLACEHOLDER_RULES, RESERVATION_NAMESPACE),
        _binding("Role", CONTROLLER, RESERVATION_NAMESPACE),
    ]


def _role(kind: str, name: str, rules: Sequence[Json], namespace: str | None = None) -> Json:
    return {"apiVersion": _RBAC, "kind": kind, "metadata": _metadata(name, namespace), "rules": list(rules)}


def _binding(kind: str, name: str, namespace: str | None = None) -> Json:
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding" if namespace is None else "RoleBinding",
        "metadata": _metadata(name, namespace),
        "roleRef": role_ref(kind, name),
        "subjects": [SUBJECT],
    }


def _metadata(name: str, namespace: str | None) -> Json:
    return {"name": name} if namespace is None else {"name": name, "namespace": namespace}


def limit_controller(client: KubeClient, *, transfers: bool = False) -> None:
    """Create the controller's account and permissions, and enforce the policy on its writes.

    Its namespaces must exist, and the kinds of jobs: the policy names them.
    """
    account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(_account())}
    policy: Json = {"metadata": {"name": NAME}, "spec": policy_spec(PLACEHOLDER_IMAGE, transfers=transfers)}
    binding: Json = {"metadata": {"name": NAME}, "spec": binding_spec()}
    for manifest in (
        account,
        *rights(),
        {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicy", **policy},
        {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", **binding},
        *(
            {"apiVersion": _ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
            for name, (patch, bound) in predecessor_specs().items()
            for kind, spec in (
                ("MutatingAdmissionPolicy", patch),
                ("MutatingAdmissionPolicyBinding", {"policyName": name, **bound}),
            )
        ),
    ):
        client.apply(manifest, field_manager="test")


def _account() -> Json:
    return {"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE}


def controller_kubeconfig(client: KubeClient, administrator: Path) -> Path:
    """Write a kubeconfig with a token of the controller's account beside the administrator's, and return its path."""
    token = client.service_account_token(CONTROLLER_NAMESPACE, CONTROLLER, _TOKEN_SECONDS)
    path = administrator.with_name(f"{administrator.name}.{CONTROLLER}")
    path.write_text(render_kubeconfig(CONTROLLER, read_cluster(administrator), {"token": token}))
    return path


def wait_until_limited(controller: KubeClient, node: str) -> None:
    """Wait until the API server enforces the policy on the client of the controller's account."""

    values = itertools.count()

    def is_enforced(client: KubeClient) -> bool:
        # Another value each time: a patch that changes nothing is admitted, too.
        planted = {"example.com/planted": str(next(values))}
        try:
            client.merge_patch("v1", "Node", node, {"metadata": {"labels": planted}})
        except ApiError as error:
            return NAME in str(error)
        return False

    wait_until_enforced(controller, is_enforced)
