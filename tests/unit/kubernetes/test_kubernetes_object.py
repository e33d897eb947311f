"""What `KubernetesObject` and `HelmRelease` register, beside what the SDK's own classes do."""

from importlib import import_module

import pytest
from pulumi import ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from pulumi_holdfast.kubernetes.kubernetes_object import HelmRelease, KubernetesObject
from pulumi_holdfast.ladder.json import Json
from tests.support.builders import aws_stacks, gcp_stacks
from tests.support.fakes.pulumi_engine import record

METADATA = {"name": "trainer", "namespace": "vision", "labels": {"a_label": "of_mine"}}
OPTIONS = ResourceOptions(retain_on_delete=True, ignore_changes=["metadata"])

#: API version, kind, and fields by their names in a manifest and in the SDK.
KINDS: list[tuple[str, str, Json, Json]] = [
    ("v1", "ConfigMap", {"binaryData": {"a_file": "AA=="}}, {"binary_data": {"a_file": "AA=="}}),
    ("v1", "Namespace", {}, {}),
    ("v1", "Node", {"spec": {"podCIDR": "10.0.0.0/24"}}, {"spec": {"pod_cidr": "10.0.0.0/24"}}),
    ("v1", "PersistentVolume", {"spec": {"storageClassName": ""}}, {"spec": {"storage_class_name": ""}}),
    ("v1", "PersistentVolumeClaim", {"spec": {"volumeName": "v"}}, {"spec": {"volume_name": "v"}}),
    (
        "v1",
        "LimitRange",
        {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "10m"}}]}},
        {"spec": {"limits": [{"type": "Container", "default_request": {"cpu": "10m"}}]}},
    ),
    ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "4"}}}, {"spec": {"hard": {"pods": "4"}}}),
    ("v1", "Service", {"spec": {"clusterIP": "None"}}, {"spec": {"cluster_ip": "None"}}),
    (
        "v1",
        "ServiceAccount",
        {"automountServiceAccountToken": False},
        {"automount_service_account_token": False},
    ),
    ("apps/v1", "Deployment", {"spec": {"minReadySeconds": 1}}, {"spec": {"min_ready_seconds": 1}}),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": 1}}, {"spec": {"min_available": 1}}),
    (
        "networking.k8s.io/v1",
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
        {"spec": {"pod_selector": {}, "policy_types": ["Ingress"]}},
    ),
    (
        "scheduling.k8s.io/v1",
        "PriorityClass",
        {"value": -10, "preemptionPolicy": "Never"},
        {"value": -10, "preemption_policy": "Never"},
    ),
    (
        "storage.k8s.io/v1",
        "StorageClass",
        {"provisioner": "ebs.csi.aws.com", "allowVolumeExpansion": True},
        {"provisioner": "ebs.csi.aws.com", "allow_volume_expansion": True},
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema",
        {"spec": {"matchingPrecedence": 200}},
        {"spec": {"matching_precedence": 200}},
    ),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        {"spec": {"group": "x"}},
        {"spec": {"group": "x"}},
    ),
    *(
        (
            "rbac.authorization.k8s.io/v1",
            kind,
            {"rules": [{"apiGroups": ["*"]}]},
            {"rules": [{"api_groups": ["*"]}]},
        )
        for kind in ("Role", "ClusterRole")
    ),
    *(
        (
            "rbac.authorization.k8s.io/v1",
            kind,
            {"roleRef": {"apiGroup": "g", "kind": "Role", "name": "n"}},
            {"role_ref": {"api_group": "g", "kind": "Role", "name": "n"}},
        )
        for kind in ("RoleBinding", "ClusterRoleBinding")
    ),
    *(
        (
            "admissionregistration.k8s.io/v1",
            kind,
            {"spec": {"policyName": "p"}}
            if kind.endswith("Binding")
            else {"spec": {"failurePolicy": "Fail"}},
            {"spec": {"policy_name": "p"}}
            if kind.endswith("Binding")
            else {"spec": {"failure_policy": "Fail"}},
        )
        for kind in (
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        )
    ),
]


@pytest.mark.parametrize(("api_version", "kind", "fields", "of_sdk"), KINDS, ids=[each[1] for each in KINDS])
def test_an_object_is_registered_as_by_the_class_of_the_sdk(
    api_version: str, kind: str, fields: Json, of_sdk: Json
) -> None:
    group, _, version = api_version.rpartition("/")
    made = getattr(import_module(f"pulumi_kubernetes.{group.partition('.')[0] or 'core'}.{version}"), kind)
    ours = record(
        lambda: KubernetesObject("one", api_version, kind, {"metadata": METADATA, **fields}, opts=OPTIONS)
    )
    theirs = record(lambda: made("one", metadata=METADATA, **of_sdk, opts=OPTIONS))
    assert ours == theirs


def test_a_custom_resource_is_registered_as_by_the_class_of_the_sdk() -> None:
    spec = {"weight": 10, "template": {"spec": {"snake_case": ["kept"]}}}
    ours = record(
        lambda: KubernetesObject("one", "karpenter.sh/v1", "NodePool", {"metadata": METADATA, "spec": spec})
    )
    theirs = record(
        lambda: CustomResource(
            "one",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={"name": "trainer", "namespace": "vision", "labels": {"a_label": "of_mine"}},
            spec=spec,
        )
    )
    assert ours == theirs


def test_a_release_is_registered_as_by_the_class_of_the_sdk() -> None:
    values = {"some_value": 1, "controller": {"replicas": 2}}
    ours = record(
        lambda: HelmRelease(
            "one",
            {
                "name": "jobset",
                "namespace": "system",
                "chart": "jobset",
                "repositoryOpts": {"repo": "https://charts.example.com"},
                "version": "1.2.3",
                "values": values,
                "skipCrds": True,
                "timeout": 600,
            },
        )
    )
    theirs = record(
        lambda: Release(
            "one",
            name="jobset",
            namespace="system",
            chart="jobset",
            repository_opts=RepositoryOptsArgs(repo="https://charts.example.com"),
            version="1.2.3",
            values=values,
            skip_crds=True,
            timeout=600,
        )
    )
    assert ours == theirs


def test_every_kind_of_the_api_that_a_stack_registers_is_compared_with_the_sdk() -> None:
    compared = {f"{version if '/' in version else f'core/{version}'}:{kind}" for version, kind, *_ in KINDS}
    registered = {
        each.type.removeprefix("kubernetes:")
        for recording in (aws_stacks.stack("aws-prod"), gcp_stacks.stack("gcp-dev"))
        for each in recording
        if each.type.startswith("kubernetes:")
    }
    custom = {each for each in registered if each.startswith(("holdfast.", "karpenter", "helm.sh/"))}
    assert registered - custom <= compared
