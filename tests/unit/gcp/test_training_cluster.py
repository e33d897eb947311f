"""The resources of GCP stacks: identities, pools, classes, checkpoints, protection, labels."""

import json
import re
from typing import cast

import pytest

from tests.support.builders.configurations import HOMES, Document, gcp_platform
from tests.support.builders.gcp_stacks import CLASSES, PLATFORMS, composed, stack
from tests.support.fakes.cloud_outputs import unique_id
from tests.support.fakes.gcp_project import NUMBER
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import Recording
from tests.support.inputs import objects, text, value
from tests.support.json_objects import obj
from tests.support.published import Published

every_stack = pytest.mark.parametrize("name", PLATFORMS)

#: Accounts that Google keeps for all of a project: who grants them something shares nothing of a stack.
GOOGLES_OWN = (f"service-{NUMBER}@gs-project-accounts.", f"service-{NUMBER}@container-engine-robot.")


@every_stack
def test_all_nodes_use_the_stacks_own_service_account(name: str) -> None:
    recording = stack(name)
    account = recording.one(":Account", "main-cluster-node-account")
    email = f"{text(account, 'accountId')}@{text(account, 'project')}.iam.gserviceaccount.com"
    nodes = [*recording.of(":Cluster"), *recording.of(":NodePool")]
    assert len(nodes) == len(PLATFORMS[name]().pools) + 2
    for found in nodes:
        assert text(found, "nodeConfig", "serviceAccount") == email, f"{found.name}: not the default account"


@pytest.mark.parametrize("namespace", ["vision", "tabular"])
def test_jobs_have_the_checkpoint_address_and_write_access(namespace: str) -> None:
    recording = stack("gcp-prod")
    address = text(
        recording.one(":ConfigMap", f"main-namespace-{namespace}-checkpoints"), "data", "CHECKPOINT_URI"
    )
    assert address == f"gs://main-checkpoints-bucket-0a1b2c3/{namespace}", "each in its own place"
    account = recording.one(":ServiceAccount", f"main-namespace-{namespace}-trainer")
    assert text(account, "metadata", "name") == "trainer-gcp-prod", "the environment is in it"
    grant = recording.one(":ManagedFolderIamMember", f"main-checkpoint-access-of-{namespace}-trainers")
    assert text(grant, "member").endswith(f"/subject/ns/{namespace}/sa/trainer-gcp-prod"), "the trainer only"
    assert text(grant, "bucket") == "main-checkpoints-bucket-0a1b2c3", "the stack's own bucket"
    assert text(grant, "managedFolder") == f"{namespace}/", "the very folder"


def identities(recording: Recording) -> set[str]:
    """The principals that a stack grants something to."""
    members = {text(found, "member") for found in recording if value(found, "member") is not None}
    return {member for member in members if not any(agent in member for agent in GOOGLES_OWN)}


def test_two_stacks_in_a_project_share_no_identity_and_no_name() -> None:
    # They differ in a character that Google's names do not have, and otherwise beyond their lengths.
    one, other = f"Team.{'a' * 60}1", f"Team-{'a' * 60}2"
    first, second = (composed(gcp_platform(), name=name) for name in (one, other))
    assert len(identities(first)) == 3
    assert not identities(first) & identities(second), "the one could read the other's checkpoints"
    for kind, field in ((":Cluster", "name"), (":Account", "accountId"), (":Network", "name")):
        assert value(first.one(kind), field) != value(second.one(kind), field), f"{kind}: the second fails"
    name = text(first.one(":Cluster"), "name")
    assert len(name) <= 40
    assert name.startswith("holdfast-team-a")
    assert text(stack("gcp-dev").one(":Cluster"), "name") == "holdfast-gcp-dev"


def declared_taints(recording: Recording, pool: str) -> dict[str, str]:
    """The taints that a pool is made with, key → value."""
    found = recording.one(":NodePool", f"main-pool-{pool}-node-pool")
    return {text(taint, "key"): text(taint, "value") for taint in objects(found, "nodeConfig", "taints")}


def test_the_program_taints_spot_nodes_and_gke_taints_gpu_nodes() -> None:
    recording = stack("gcp-prod")
    for pool in PLATFORMS["gcp-prod"]().pools:
        is_spot = pool.name.endswith("-spot")
        wanted = {"cloud.google.com/gke-spot": "true"} if is_spot else {}
        assert declared_taints(recording, pool.name) == wanted, f"{pool.name}: GKE taints GPU nodes"
        node_pool = recording.one(":NodePool", f"main-pool-{pool.name}-node-pool")
        assert value(node_pool, "nodeConfig", "spot") is is_spot, "it is what it is called"
        assert text(node_pool, "name") == pool.name, "under the user's own name"


def test_a_compute_class_allows_only_its_pools() -> None:
    recording = stack("with-classes")
    for name, pool in zip(CLASSES, ("a100-spot", "a100"), strict=True):
        found = recording.one(":ComputeClass", f"main-class-{name}-compute-class")
        assert value(found, "spec", "priorities") == [{"nodepools": [pool]}], "by the name of its node pool"
        assert value(found, "spec", "whenUnsatisfiable") == "DoNotScaleUp", "no machine of GKE's choice"
        assert declared_taints(recording, pool).get("cloud.google.com/compute-class") == name, (
            "only pods that select the class tolerate its nodes"
        )
        node_pool = recording.one(":NodePool", f"main-pool-{pool}-node-pool")
        assert value(node_pool, "nodeConfig", "labels", "cloud.google.com/compute-class") == name, (
            "nodes without it are none of the class"
        )


def test_a_job_tolerates_each_class_of_its_ladder() -> None:
    rules = stack("with-classes").of(":MutatingAdmissionPolicy")
    names = {text(rule, "metadata", "name") for rule in rules}
    assert {"training-class-gpus-on-spot-pods", "training-class-gpus-kept-pods"} <= names
    for rule in rules:
        if text(rule, "metadata", "name") == "training-spot-pods":
            assert "a100" not in json.dumps(rule.inputs)


def test_without_compute_classes_no_resource_is_registered() -> None:
    assert not stack("gcp-dev").of(":ComputeClass")


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
    ]


@every_stack
def test_every_resource_is_what_the_cloud_publishes_about_its_api(name: str) -> None:
    wrong = Published.of("gcp").complaints_of("gcp", stack(name))
    assert wrong == [], "Google would reject the request, or the field is misspelled"


def test_a_stack_accepts_the_jobs_of_the_clusters_that_it_names_and_no_other_identity() -> None:
    recording = stack("accepting")
    for home in HOMES:
        name, issuer = f"main-issuer-of-{home['name']}", home["issuer"]
        account = recording.one(":Account", f"{name}-account")
        email = f"{text(account, 'accountId')}@my-project.iam.gserviceaccount.com"
        pool = text(recording.one(":WorkloadIdentityPool", f"{name}-pool"), "workloadIdentityPoolId")
        assert re.fullmatch("(?!gcp-)[a-z0-9-]{4,32}", pool)
        provider = recording.one(":WorkloadIdentityPoolProvider", f"{name}-provider")
        assert text(provider, "workloadIdentityPoolId") == pool
        assert value(provider, "oidc") == {"issuerUri": issuer}
        subject = "system:serviceaccount:holdfast-system:fallback-controller"
        assert text(provider, "attributeCondition") == f'assertion.sub == "{subject}"'
        granted = recording.one(":IAMMember", f"{name}-impersonation")
        principals = (
            f"principal://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools"
        )
        assert text(granted, "member") == f"{principals}/{pool}/subject/{subject}"
        assert text(granted, "serviceAccountId").endswith(f"/{email}")
        entry = recording.one(":IAMMember", f"{name}-entry")
        role = recording.one(":IAMCustomRole", f"{name}-role")
        assert text(entry, "role").endswith(text(role, "roleId"))
        assert value(role, "permissions") == ["container.clusters.connect", "container.clusters.get"]
        for namespace in ("vision", "tabular"):
            bound = recording.one(":RoleBinding", f"main-namespace-{namespace}-fallback-copies")
            users = [each["name"] for each in objects(bound, "subjects")]
            assert (email in users) is (namespace in cast("list[str]", home["namespaces"])), (
                "where it is named"
            )
            assert (unique_id(email) in users) is (email in users), "also for a token without the email"
        policy = recording.one(
            ":ValidatingAdmissionPolicy", "main-fallback-controller-transfers-fallback-copies"
        )
        assert email in str(policy.inputs), "what it writes is judged"
    assert len({text(one, "workloadIdentityPoolId") for one in recording.of(":WorkloadIdentityPool")}) == 2, (
        "the token of one home is nothing to the other"
    )


def test_a_stack_exports_what_each_home_needs_and_nothing_secret() -> None:
    recording = stack("accepting")
    found = obj(recording.outputs["tokenExchanges"])
    assert found.keys() == {str(home["issuer"]) for home in HOMES}
    exchange = obj(found[str(HOMES[0]["issuer"])])
    pool = text(
        recording.one(":WorkloadIdentityPool", "main-issuer-of-us-east-1-pool"), "workloadIdentityPoolId"
    )
    provider = (
        f"iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/{pool}/providers/home"
    )
    assert exchange["tokenAudience"] == f"https://{provider}"
    assert obj(exchange["google"])["audience"] == f"//{provider}"
    assert stack("gcp-dev").outputs["tokenExchanges"] == {}


def test_accepted_jobs_use_the_folder_of_their_home_and_no_other() -> None:
    # Home keeps these checkpoints in the bucket of its own home.
    home = OtherStack(
        {"checkpoints": "bucket-of-another", "checkpointUris": {"vision": "gs://bucket-of-home/vision"}}
    )
    accepted: Document = {**HOMES[0], "checkpoints": "acme/holdfast/home"}
    recording = composed(gcp_platform(lambda document: document.update(acceptsFrom=[accepted])), other=home)
    address = recording.one(":ConfigMap", "main-namespace-vision-checkpoints")
    assert text(address, "data", "CHECKPOINT_URI") == "gs://bucket-of-home/vision", (
        "the address that home has"
    )
    grants = {
        name: recording.one(":ManagedFolderIamMember", f"main-checkpoint-access-of-{name}-trainers")
        for name in ("vision", "tabular")
    }
    assert [text(each, "bucket") for each in grants.values()] == [
        "bucket-of-home",
        "main-checkpoints-bucket-0a1b2c3",
    ], "the bucket in the address, for the named namespace alone"
    assert text(grants["vision"], "managedFolder") == "vision/", "the folder that home's stack has made"
    assert text(grants["vision"], "member").endswith("/subject/ns/vision/sa/trainer-gcp-test"), (
        "the jobs of this cluster"
    )
    assert [one.name for one in recording.of(":ManagedFolder")] == [
        "main-checkpoint-access-of-tabular-folder"
    ], "another one of the same name would be refused, and its deletion would end home's grant"
    assert home.read == ["acme/holdfast/home"], "it is read by its full name"
