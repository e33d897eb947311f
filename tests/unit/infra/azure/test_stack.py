"""What every Azure stack has, whichever way it is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.components.checkpoints.blob import CLIENT_ID
from holdfast.components.iam.azure import (
    AKS_RBAC_CLUSTER_ADMIN,
    NETWORK_CONTRIBUTOR,
    STORAGE_BLOB_DATA_CONTRIBUTOR,
)
from holdfast.infra import versions
from holdfast.infra.azure.config.stack import FixedPlatform, NapPlatform
from tests.support.aks_component import DEPLOYER, TENANT
from tests.support.azure_documents import LOCATION, fixed_platform, nap_platform
from tests.support.azure_outputs import CLIENT
from tests.support.azure_stacks import PLATFORMS, composed, stack
from tests.support.builders.configurations import list_of
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document
    from tests.support.recorder import Recorded, Recording

every_stack = pytest.mark.parametrize("name", PLATFORMS)
NAP = [name for name, read in PLATFORMS.items() if isinstance(read(), NapPlatform)]
FIXED = [name for name in PLATFORMS if name not in NAP]


@every_stack
def test_a_preview_registers_what_an_up_registers(name: str) -> None:
    planned = {resource.urn for resource in stack(name, preview=True)}
    made = {resource.urn for resource in stack(name)}
    assert planned == made, "nothing may hang on a value that only an up knows"


@every_stack
def test_every_resource_has_a_name_of_its_own(name: str) -> None:
    # The storage account is called as its component is: Azure's name for it begins so, and has no room for more.
    names = [resource.name for resource in stack(name) if resource.custom]
    assert len(set(names)) == len(names), "two of one name are hard to tell apart in a plan"


@every_stack
def test_versions_come_from_one_place(name: str) -> None:
    releases = stack(name).of(":Release")
    assert {text(release, "name"): text(release, "version") for release in releases} == {
        "jobset": versions.JOBSET,
        "jobset-crds": versions.JOBSET,
        "kuberay-operator": versions.KUBERAY,
        "kuberay-crds": versions.KUBERAY,
        "nvidia-device-plugin": versions.NVIDIA_DEVICE_PLUGIN,
    }, "an upgrade is one line; Karpenter, where there is one, is AKS's own"


@pytest.mark.parametrize("name", NAP)
def test_on_node_auto_provisioning_each_pool_is_a_node_pool_of_karpenters(name: str) -> None:
    recording, platform = stack(name), PLATFORMS[name]()
    assert isinstance(platform, NapPlatform), "it is such a stack"
    assert value(recording.one(":ManagedCluster"), "nodeProvisioningProfile") == {
        "mode": "Auto",
        "defaultNodePools": "None",
    }, "on from the beginning, with no NodePools but ours"
    assert not recording.of(":AgentPool"), "AKS takes no scale sets that grow beside it"
    pools = {text(found, "metadata", "name"): found for found in recording.of(":NodePool")}
    assert pools.keys() == {pool.name for pool in platform.pools}, "one for each pool, under its name"
    assert {text(found, "metadata", "name") for found in recording.of(":AKSNodeClass")} == pools.keys(), (
        "with a node class of its own"
    )
    for pool in platform.pools:
        asked = {
            text(found, "key"): value(found, "values")
            for found in objects(pools[pool.name], "spec", "template", "spec", "requirements")
        }
        assert asked["karpenter.sh/capacity-type"] == [pool.capacity.value], "one capacity type"
        sizes = asked["node.kubernetes.io/instance-type"]
        assert isinstance(sizes, list), "it keeps to some"
        assert set(map(str, sizes)) == {machine.name for machine in pool.machines(platform.location)}, (
            "and the VM sizes that are written, or meant"
        )


@pytest.mark.parametrize("name", FIXED)
def test_fixed_each_pool_is_a_scale_set_of_its_own(name: str) -> None:
    recording, platform = stack(name), PLATFORMS[name]()
    assert isinstance(platform, FixedPlatform), "it is such a stack"
    assert not recording.of(":NodePool"), "there is no Karpenter"
    assert value(recording.one(":ManagedCluster"), "nodeProvisioningProfile") == {"mode": "Manual"}, (
        "nor AKS's"
    )
    for pool in platform.pools:
        found = recording.one(":AgentPool", f"pool-{pool.name}-agent-pool")
        assert text(found, "agentPoolName") == pool.name.replace("-", ""), "AKS takes no hyphens"
        assert text(found, "vmSize") == pool.vm_size, "one VM size"
        is_spot = pool.capacity.value == "spot"
        assert value(found, "spotMaxPrice") == (pool.price_cap if is_spot else None), (
            "the cap that is written"
        )
        assert (value(found, "minCount"), value(found, "maxCount")) == (0, pool.max_nodes), "from none"


@pytest.mark.parametrize("name", ["azure-dev", "azure-prod"])
def test_both_ways_of_scaling_are_the_same_to_a_job(name: str) -> None:
    rules = {found.name for found in stack(name).of(":MutatingAdmissionPolicy")}
    assert rules == {found.name for found in stack("azure-dev").of(":MutatingAdmissionPolicy")}, (
        "a manifest that runs on the one runs on the other"
    )


def let_in(recording: Recording) -> set[tuple[str, str]]:
    """Who is given which role."""
    return {
        (text(found, "principalId"), text(found, "roleDefinitionId").rpartition("/")[2])
        for found in recording.of(":RoleAssignment")
    }


@every_stack
def test_whoever_makes_the_stack_and_its_administrators_are_let_in_and_nobody_else(name: str) -> None:
    admins = {who for who, role in let_in(stack(name)) if role == AKS_RBAC_CLUSTER_ADMIN}
    assert admins == {DEPLOYER, *PLATFORMS[name]().cluster.admins}, "there are no local accounts beside them"
    assert value(stack(name).one(":ManagedCluster"), "disableLocalAccounts") is True, "of AKS's either"


@every_stack
def test_the_cluster_may_put_machines_into_the_subnet(name: str) -> None:
    assert NETWORK_CONTRIBUTOR in {role for _, role in let_in(stack(name))}, (
        "node auto-provisioning makes none in a network of one's own otherwise"
    )


@pytest.mark.parametrize("name", ["azure-dev", "azure-prod"])
def test_jobs_learn_where_to_checkpoint_and_may_write_there(name: str) -> None:
    recording = stack(name)
    for asked in PLATFORMS[name]().namespaces:
        namespace = asked.name
        config = recording.one(":ConfigMap", f"namespace-{namespace}-checkpoints")
        assert text(config, "data", "CHECKPOINT_URI").startswith(f"abfss://{namespace}@"), (
            "each in its own container"
        )
        account = recording.one(":ServiceAccount", f"namespace-{namespace}-trainer")
        assert text(account, "metadata", "annotations", CLIENT_ID) == CLIENT, "its pods are somebody"
        credential = recording.one(
            ":FederatedIdentityCredential", f"checkpoint-access-of-{namespace}-credential"
        )
        assert text(credential, "subject") == f"system:serviceaccount:{namespace}:trainer", (
            "the pods that jobs are told to use, of this namespace alone"
        )
        grant = recording.one(":RoleAssignment", f"checkpoint-access-of-{namespace}-checkpoints-assignment")
        assert text(grant, "roleDefinitionId").endswith(STORAGE_BLOB_DATA_CONTRIBUTOR), "to write blobs"
        assert text(grant, "scope") == f"checkpoints-{namespace}-id", "in this container and in no other"


@every_stack
def test_the_cluster_is_reached_by_asking_kubelogin_and_holds_no_token(name: str) -> None:
    provider = stack(name).one("providers:kubernetes")
    (user,) = objects(json.loads(text(provider, "kubeconfig")), "users")
    assert mapping(user, "user").keys() == {"exec"}, "a token would expire, and show as a change"
    assert text(user, "user", "exec", "command") == "kubelogin", "Azure's own"
    arguments = value(user, "user", "exec", "args")
    assert isinstance(arguments, list), "it has some"
    assert PLATFORMS[name]().cluster.login.value in arguments, "as whom the stack's file says"
    assert TENANT in arguments, "in the tenant that the cluster asks"


def test_two_stacks_in_one_subscription_share_no_name() -> None:
    first, second = (composed(nap_platform(), name=name) for name in ("dev", "prod"))
    for kind, field in (
        (":ManagedCluster", "resourceName"),
        (":ManagedCluster", "nodeResourceGroup"),
        (":VirtualNetwork", "virtualNetworkName"),
    ):
        assert value(first.one(kind), field) != value(second.one(kind), field), (
            f"the second of one {kind} would take the first for its own"
        )


def pools_added(document: Document) -> None:
    """A pool and a training namespace more, before the others."""
    first = list_of(document, "pools")[0]
    assert isinstance(first, dict), "a pool is a mapping"
    list_of(document, "pools").insert(0, {**first, "name": "more", "default": False})
    list_of(document, "namespaces").insert(0, {"name": "speech", "ladder": [{"pool": "cpu"}]})


def test_a_pool_and_a_namespace_added_change_no_other_name() -> None:
    grown = {resource.urn for resource in composed(fixed_platform(pools_added))}
    assert {resource.urn for resource in composed(fixed_platform())} < grown, (
        "or adding one would replace others"
    )


def test_a_stack_without_training_namespaces_is_a_stack() -> None:
    recording = composed(nap_platform(lambda d: d.update(namespaces=[])))
    assert not recording.of("TrainingNamespace"), "teams may come later"
    assert len(recording.of(":NodePool")) == 4, "the pools are there for them"


def zones_of(pool: Recorded) -> JsonValue:
    """The zones that a NodePool keeps to."""
    found = objects(pool, "spec", "template", "spec", "requirements")
    return next((value(one, "values") for one in found if text(one, "key").endswith("/zone")), None)


def test_zones_are_called_as_nodes_are_labelled() -> None:
    def change(document: Document) -> None:
        first = list_of(document, "pools")[0]
        assert isinstance(first, dict), "a pool is a mapping"
        first.update(zones=[2, 1])

    pools = {
        text(found, "metadata", "name"): found for found in composed(nap_platform(change)).of(":NodePool")
    }
    zones = zones_of(pools["cpu"])
    assert isinstance(zones, list), "it has some"
    assert set(map(str, zones)) == {f"{LOCATION}-1", f"{LOCATION}-2"}, (
        "Karpenter finds no machine in a zone of another name"
    )
    assert zones_of(pools["a100"]) is None, "who names none takes any"
