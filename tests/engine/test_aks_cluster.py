"""An AKS cluster on the real engine: created in a valid order, unchanged by a second up, protected, deleted completely."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.azure.control_plane.access import PrivateAccess, PublicAccess
from pulumi_holdfast.azure.control_plane.component import AksCluster, AksClusterArgs
from pulumi_holdfast.azure.network import AzureNetwork, AzureNetworkArgs
from pulumi_holdfast.azure.training_cluster import StackResourceGroup, StackResourceGroupArgs
from pulumi_holdfast.rehearsal.clouds.azure.names import CALLER
from pulumi_holdfast.rehearsal.engine import EngineFailure
from tests.support.builders.aks_components import ADMINS, CONFIG, DISKS, LOCATION, SUBSCRIPTION, cluster_args
from tests.support.clusters.cloud_program import CloudProgram, create_once, destroy_once_released
from tests.support.inputs import mapping, objects, text, value

pytestmark = [
    pytest.mark.engine,
    # Importing an SDK module imports the deprecated types in it as well.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_"),
]

_CLUSTER = "azure-native:containerservice:ManagedCluster"
_POOL = "azure-native:containerservice:AgentPool"
_GRANT = "azure-native:authorization:RoleAssignment"
_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path, packages=("azure-native", "kubernetes"), config=CONFIG)


def program(
    change: Callable[[AksClusterArgs], AksClusterArgs] = replace, *, pool: str | None = None
) -> Callable[[], None]:
    """A resource group, a network, a cluster in it, and something inside; `pool`: the name of a scale set beside."""

    def run() -> None:
        from pulumi_azure_native.containerservice import AgentPool
        from pulumi_kubernetes.core.v1 import ConfigMap

        group = StackResourceGroup(
            "group", StackResourceGroupArgs(group_name="holdfast-dev", location=LOCATION, protected=False)
        )
        network = AzureNetwork(
            "network",
            AzureNetworkArgs(
                location=LOCATION, resource_group=group.group_name, cidr="10.40.0.0/16", label="holdfast-dev"
            ),
        )
        args = replace(cluster_args(), resource_group=group.group_name, network=network, deployer=CALLER)
        cluster = AksCluster("cluster", change(args))
        if pool is not None:
            AgentPool(
                pool,
                agent_pool_name=pool,
                resource_group_name=cluster.resource_group,
                resource_name_=cluster.cluster_reference,
                vm_size="Standard_D4s_v5",
                count=1,
                mode="User",
                vnet_subnet_id=cluster.subnet_id,
            )
        ConfigMap("inside", opts=pulumi.ResourceOptions(provider=cluster.kubernetes))
        pulumi.export("issuer", cluster.workload_identity_issuer)
        pulumi.export("nodes", cluster.node_principal_id)

    return run


def fixed(args: AksClusterArgs) -> AksClusterArgs:
    return replace(args, scaling="fixed")


@pytest.mark.parametrize("change", [replace, fixed], ids=["nap", "fixed"])
def test_a_cluster_is_created_once_and_destroyed_only_without_protection(
    stack: CloudProgram, change: Callable[[AksClusterArgs], AksClusterArgs]
) -> None:
    protected = program(lambda args: replace(change(args), protected=True))
    made = create_once(stack, protected)
    (cluster,) = stack.objects(_CLUSTER)
    assert cluster.id == (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/holdfast-dev/providers/"
        "Microsoft.ContainerService/managedClusters/holdfast-dev"
    )
    assert str(made.outputs["issuer"]).startswith("https://westeurope.oic.prod-aks.azure.com/")
    assert made.outputs["nodes"] == text(cluster.outputs, "identityProfile", "kubeletidentity", "objectId")
    destroy_once_released(stack, protected, program(change))


def test_nodes_call_the_api_server_from_an_address_that_it_lets_in(stack: CloudProgram) -> None:
    stack.up(program())
    (cluster,) = stack.objects(_CLUSTER)
    (address,) = stack.objects("azure-native:network:PublicIPAddress")
    ranges = value(cluster.inputs, "apiServerAccessProfile", "authorizedIPRanges")
    assert ranges == ["203.0.113.0/24", f"{address.computed['ipAddress']}/32"]


def test_a_cluster_is_opened_upgraded_and_given_system_nodes_in_place(stack: CloudProgram) -> None:
    stack.up(program())

    def changed(args: AksClusterArgs) -> AksClusterArgs:
        return replace(
            args,
            version="1.37",
            access=PublicAccess(cidrs=["203.0.113.0/24", "192.0.2.0/24"]),
            admins=ADMINS,
            login="spn",
            system_nodes=replace(args.system_nodes, count=3),
        )

    planned = stack.preview(program(changed))
    assert "replace" not in planned.changes
    outcome = stack.up(program(changed))
    assert "replace" not in outcome.changes, "the cluster would be lost, or what is in it"
    (cluster,) = stack.objects(_CLUSTER)
    (system,) = objects(cluster.inputs, "agentPoolProfiles")
    assert (cluster.computed["currentKubernetesVersion"], system["orchestratorVersion"]) == ("1.37.0", "1.37")
    assert stack.up(program(changed)).changed == 0


def test_another_deployer_replaces_no_access_entry(stack: CloudProgram) -> None:
    stack.up(program())

    def by_another(args: AksClusterArgs) -> AksClusterArgs:
        return replace(args, deployer=ADMINS[0])

    assert stack.up(program(by_another)).changed == 0


def test_the_deployers_role_outlives_the_cluster_and_its_objects(stack: CloudProgram) -> None:
    stack.up(program())
    kinds = [
        "admin" if str(one.inputs.get("roleDefinitionId")).endswith(_ADMIN) else one.type
        for one in stack.everything()
    ]
    assert kinds.index("admin") < kinds.index(_CLUSTER)


def test_access_to_the_disk_key_is_granted_before_the_cluster_is_created(stack: CloudProgram) -> None:
    def with_key(args: AksClusterArgs) -> AksClusterArgs:
        return replace(args, disk_encryption_set_id=DISKS)

    stack.up(program(with_key))
    assert stack.up(program(with_key)).changed == 0
    stack.destroy(program(with_key))
    assert stack.everything() == []


def test_a_change_of_the_cluster_keeps_its_other_pools(stack: CloudProgram) -> None:
    stack.up(program(fixed, pool="spot"))
    with stack.cloud("azure-native").changing() as inventory:
        (cluster,) = inventory.of_type(_CLUSTER)
        # What AKS shows of a cluster once it has another pool: every pool, in the cluster's own list.
        shown = [*objects(cluster.inputs, "agentPoolProfiles"), {"name": "spot", "count": 7, "mode": "User"}]
        inventory.put(replace(cluster, inputs={**cluster.inputs, "agentPoolProfiles": shown}))
    stack.refresh(program(fixed, pool="spot"))
    outcome = stack.up(program(fixed, pool="spot"))
    assert "replace" not in outcome.changes, "the cluster would go with everything in it"
    assert "delete" not in outcome.changes
    assert [one.inputs["agentPoolName"] for one in stack.objects(_POOL)] == ["spot"]

    def opened(args: AksClusterArgs) -> AksClusterArgs:
        return replace(fixed(args), access=PublicAccess(cidrs=["203.0.113.0/24", "192.0.2.0/24"]))

    stack.up(program(fixed))
    stack.refresh(program(fixed))
    assert stack.up(program(opened)).changes.get("update")


def test_a_private_cluster_names_the_network_that_reaches_it(stack: CloudProgram) -> None:
    def private(args: AksClusterArgs) -> AksClusterArgs:
        return replace(args, access=PrivateAccess(public_name=True))

    stack.up(program(private))
    (cluster,) = stack.objects(_CLUSTER)
    profile = mapping(cluster.inputs, "apiServerAccessProfile")
    assert "authorizedIPRanges" not in profile
    assert stack.up(program(private)).changed == 0
    with pytest.raises(EngineFailure, match="enablePrivateCluster' is not allowed"):
        stack.up(program())
