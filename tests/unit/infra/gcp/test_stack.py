"""The resources of GCP stacks: identities, pools, classes, checkpoints, protection, labels."""

from __future__ import annotations

import importlib
import inspect
import json
from typing import TYPE_CHECKING

import pytest

from holdfast.infra import versions
from tests.support.builders.configurations import gcp_platform
from tests.support.builders.gcp_stacks import CLASSES, PLATFORMS, composed, stack
from tests.support.fakes.gcp_project import NUMBER
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded, Recording


every_stack = pytest.mark.parametrize("name", PLATFORMS)

#: Accounts that Google keeps for all of a project: who grants them something shares nothing of a stack.
GOOGLES_OWN = (f"service-{NUMBER}@gs-project-accounts.", f"service-{NUMBER}@container-engine-robot.")


@every_stack
def test_all_nodes_use_the_stacks_own_service_account(name: str) -> None:
    recording = stack(name)
    account = recording.one(":Account")
    email = f"{text(account, 'accountId')}@{text(account, 'project')}.iam.gserviceaccount.com"
    nodes = [*recording.of(":Cluster"), *recording.of(":NodePool")]
    assert len(nodes) == len(PLATFORMS[name]().pools) + 2, (
        "GKE's first pool, the system pool, and those that are written"
    )
    for found in nodes:
        assert text(found, "nodeConfig", "serviceAccount") == email, (
            f"{found.name}: Compute Engine's own account may edit the project, or is disabled"
        )


def test_releases_have_the_versions_of_infra_versions() -> None:
    releases = stack("gcp-prod").of(":Release")
    assert {text(release, "name"): text(release, "version") for release in releases} == {
        "jobset": versions.JOBSET,
        "jobset-crds": versions.JOBSET,
        "kuberay-operator": versions.KUBERAY,
        "kuberay-crds": versions.KUBERAY,
    }, "an upgrade is one line; GKE brings the plugin of GPUs itself, and scales pools itself"


@every_stack
def test_operators_run_with_two_replicas(name: str) -> None:
    for release, path in (
        ("operators-jobset-controller", ("controller", "replicas")),
        ("operators-kuberay-controller", ("replicas",)),
    ):
        assert value(stack(name).one(":Release", release), "values", *path) == 2, f"{release} outlives a zone"


@pytest.mark.parametrize("namespace", ["vision", "tabular"])
def test_jobs_have_the_checkpoint_address_and_write_access(namespace: str) -> None:
    recording = stack("gcp-prod")
    address = text(
        recording.one(":ConfigMap", f"namespace-{namespace}-checkpoints"), "data", "CHECKPOINT_URI"
    )
    assert address == f"gs://checkpoints-bucket-0a1b2c3/{namespace}", "each in its own place"
    account = recording.one(":ServiceAccount", f"namespace-{namespace}-trainer")
    assert text(account, "metadata", "name") == "trainer-gcp-prod", "the environment is in it"
    grant = recording.one(":ManagedFolderIamMember", f"checkpoint-access-of-{namespace}-trainers")
    assert text(grant, "member").endswith(f"/subject/ns/{namespace}/sa/trainer-gcp-prod"), (
        "the service account that jobs use, in this namespace only"
    )
    assert text(grant, "bucket") == "checkpoints-bucket-0a1b2c3", "the stack's own bucket"
    assert text(grant, "managedFolder") == f"{namespace}/", "the very folder"


def identities(recording: Recording) -> set[str]:
    """The principals that a stack grants something to."""
    members = {text(found, "member") for found in recording if value(found, "member") is not None}
    return {member for member in members if not any(agent in member for agent in GOOGLES_OWN)}


@pytest.mark.parametrize(
    ("one", "other"), [("dev", "prod"), ("team-a", "team.a"), ("a" * 60 + "1", "a" * 60 + "2")]
)
def test_two_stacks_in_a_project_share_no_identity_and_no_name(one: str, other: str) -> None:
    first, second = (composed(gcp_platform(), name=name) for name in (one, other))
    assert len(identities(first)) == 3, "the nodes, and the jobs of two namespaces"
    assert not identities(first) & identities(second), "the one could read the other's checkpoints"
    for kind, field in ((":Cluster", "name"), (":Account", "accountId"), (":Network", "name")):
        assert value(first.one(kind), field) != value(second.one(kind), field), (
            f"the second of one {kind} in a project is refused"
        )


def test_the_kubeconfig_uses_the_credential_plugin_and_has_no_token() -> None:
    provider = composed(gcp_platform()).one("providers:kubernetes")
    (user,) = objects(json.loads(text(provider, "kubeconfig")), "users")
    assert mapping(user, "user").keys() == {"exec"}, "a token would expire, and show as a change"
    assert text(user, "user", "exec", "command") == "gke-gcloud-auth-plugin", "Google's own"


def declared_taints(recording: Recording, pool: str) -> dict[str, str]:
    """The taints that a pool is made with, key → value."""
    found = recording.one(":NodePool", f"pool-{pool}-node-pool")
    return {text(taint, "key"): text(taint, "value") for taint in objects(found, "nodeConfig", "taints")}


def test_the_program_taints_spot_nodes_and_gke_taints_gpu_nodes() -> None:
    recording = stack("gcp-prod")
    for pool in PLATFORMS["gcp-prod"]().pools:
        is_spot = pool.name.endswith("-spot")
        wanted = {"cloud.google.com/gke-spot": "true"} if is_spot else {}
        assert declared_taints(recording, pool.name) == wanted, (
            f"{pool.name}: GKE taints no spot pool, and refuses a second taint for GPUs"
        )
        node_pool = recording.one(":NodePool", f"pool-{pool.name}-node-pool")
        assert value(node_pool, "nodeConfig", "spot") is is_spot, "it is what it is called"
        assert text(node_pool, "name") == pool.name, "under the user's own name"


def test_a_compute_class_allows_only_its_pools() -> None:
    recording = stack("with-classes")
    for name, pool in zip(CLASSES, ("a100-spot", "a100"), strict=True):
        found = recording.one(":ComputeClass", f"class-{name}-compute-class")
        assert value(found, "spec", "priorities") == [{"nodepools": [pool]}], "by the name of its node pool"
        assert value(found, "spec", "whenUnsatisfiable") == "DoNotScaleUp", "no machine of GKE's choice"
        assert declared_taints(recording, pool).get("cloud.google.com/compute-class") == name, (
            "only pods that select the class tolerate its nodes"
        )
        node_pool = recording.one(":NodePool", f"pool-{pool}-node-pool")
        assert value(node_pool, "nodeConfig", "labels", "cloud.google.com/compute-class") == name, (
            "nodes without it are none of the class"
        )


def test_a_job_tolerates_each_class_of_its_ladder() -> None:
    rules = stack("with-classes").of(":MutatingAdmissionPolicy")
    names = {text(rule, "metadata", "name") for rule in rules}
    assert {"training-class-gpus-on-spot-pods", "training-class-gpus-kept-pods"} <= names, (
        "GKE lets in those that select the class; a job on a ladder names its pool"
    )
    for rule in rules:
        if text(rule, "metadata", "name") == "training-spot-pods":
            assert "a100" not in json.dumps(rule.inputs), (
                "nodes of a class have its taint and no other of ours"
            )


def test_without_compute_classes_no_resource_is_registered() -> None:
    assert not stack("gcp-dev").of(":ComputeClass"), "no pool names a class"


def test_any_stack_name_makes_a_valid_gke_cluster_name() -> None:
    long = composed(gcp_platform(), name="Team_A.experiments-with-large-models")
    name = text(long.one(":Cluster"), "name")
    assert len(name) <= 40, f"{name}: GKE takes 40 characters"
    assert name.startswith("holdfast-team-a-"), "and the name still shows the stack"
    assert text(stack("gcp-dev").one(":Cluster"), "name") == "holdfast-gcp-dev", "a short one stays as it is"


#: They serve every cluster and every bucket of the project that has the key.
GRANTS = {"cluster-key-grant", "checkpoints-key-use"}


def test_production_protects_what_cannot_be_restored_and_nothing_else() -> None:
    protected = {found.name for found in stack("gcp-prod") if found.protect}
    assert protected == {"cluster-control-plane-gke", "checkpoints-bucket"}, "the cluster, and checkpoints"


def test_production_checkpoints_are_retained_after_protection_is_removed() -> None:
    kept = {found.name for found in stack("gcp-prod") if found.retain_on_delete}
    assert kept == {"checkpoints-bucket", *GRANTS}, "with the grants that are needed to read them"
    assert value(stack("gcp-prod").one(":Bucket"), "forceDestroy") is False, (
        "Cloud Storage refuses to delete it as well"
    )


def test_the_production_cluster_has_deletion_protection_in_the_cloud() -> None:
    assert value(stack("gcp-prod").one(":Cluster"), "deletionProtection") is True, (
        "removal of Pulumi's protection alone is not enough"
    )


def test_a_development_stack_is_destroyed_completely() -> None:
    recording = stack("gcp-dev")
    assert not [found.name for found in recording if found.protect], "nothing is protected"
    assert not [found.name for found in recording if found.retain_on_delete], "and nothing stays"
    assert value(recording.one(":Bucket"), "forceDestroy") is True, "its checkpoints go with it"
    assert value(recording.one(":Cluster"), "deletionProtection") is False, "nor does the provider protect it"


def test_production_has_no_access_from_the_internet() -> None:
    cluster = stack("gcp-prod").one(":Cluster")
    assert value(cluster, "privateClusterConfig", "enablePrivateEndpoint") is True, "no public address"
    assert (
        value(cluster, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic") is False
    ), "and no name that answers"
    assert value(cluster, "masterAuthorizedNetworksConfig", "cidrBlocks") == [
        {"cidrBlock": "10.48.0.0/20"}
    ], "except for the configured blocks"


def test_development_allows_access_only_from_configured_addresses() -> None:
    cluster = stack("gcp-dev").one(":Cluster")
    assert value(cluster, "masterAuthorizedNetworksConfig", "cidrBlocks") == [
        {"cidrBlock": "203.0.113.0/24"}
    ], "not from everywhere"
    assert value(cluster, "masterAuthorizedNetworksConfig", "gcpPublicCidrsAccessEnabled") is False, (
        "nor from every machine on Google Cloud"
    )


def test_production_spans_zones_and_development_uses_one() -> None:
    assert value(stack("gcp-prod").one(":Cluster"), "location") == "us-central1", "a control plane in each"
    assert value(stack("gcp-dev").one(":Cluster"), "location") == "us-central1-a", "one is free of charge"


def test_production_is_encrypted_with_the_users_keys() -> None:
    keys = "projects/holdfast-prod/locations/us-central1/keyRings/holdfast/cryptoKeys"
    assert value(stack("gcp-prod").one(":Cluster"), "databaseEncryption") == {
        "state": "ENCRYPTED",
        "keyName": f"{keys}/cluster",
    }, "as it is written"
    assert (
        value(stack("gcp-prod").one(":Bucket"), "encryption", "defaultKmsKeyName") == f"{keys}/checkpoints"
    ), "each its own"


def test_production_nodes_are_upgraded_only_on_demand() -> None:
    policy = value(stack("gcp-prod").one(":Cluster"), "maintenancePolicy", "maintenanceExclusions")
    assert policy == [
        {
            "exclusionName": "training",
            "startTime": "2026-12-01T00:00:00Z",
            "exclusionOptions": {
                "scope": "NO_MINOR_OR_NODE_UPGRADES",
                "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
            },
        }
    ], "a fixed day: one that moves would be a change in every plan"


FIELDS = {"resource_labels": "resourceLabels", "labels": "labels"}


def field_of_labels(resource: Recorded) -> str | None:
    """Where the SDK's class of a GCP resource takes labels, by its constructor; None: it takes none."""
    _, module, name = resource.type.split(":")
    found = getattr(importlib.import_module(f"pulumi_gcp.{module.split('/')[0]}"), name)
    known = inspect.signature(found._internal_init).parameters
    return next((FIELDS[field] for field in FIELDS if field in known), None)


@every_stack
def test_every_google_cloud_resource_with_labels_has_those_of_the_stack(name: str) -> None:
    fields = {
        resource.name: (resource, field)
        for resource in stack(name)
        if resource.type.startswith("gcp:")
        for field in [field_of_labels(resource)]
        if field is not None
    }
    assert fields.keys() == {"cluster-control-plane-gke", "checkpoints-bucket"}, (
        "the two that take some: GKE puts the cluster's on its machines and disks"
    )
    for resource, field in fields.values():
        assert (
            mapping(resource, field).items() >= {"managed-by": "holdfast", "holdfast-stack": name}.items()
        ), f"{resource.name} is found, and paid for, by it"


@every_stack
def test_every_kubernetes_object_has_the_labels_of_the_stack(name: str) -> None:
    marks = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": name}
    for resource in stack(name):
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release"):
            assert mapping(resource, "metadata", "labels").items() >= marks.items(), (
                f"{resource.name} is found by it"
            )
