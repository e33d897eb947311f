"""The control plane of AKS: network, nodes, identity, encryption, upgrades and deletion."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.azure.config.sections import PODS_CIDR, SERVICES_CIDR
from pulumi_holdfast.azure.control_plane.access import dns_service_ip
from pulumi_holdfast.azure.control_plane.control_plane import (
    Maintenance,
    NoUpgrades,
    SystemNodesArgs,
    Upgrades,
)
from pulumi_holdfast.azure.network import ExistingAzureNetwork
from tests.support.builders.aks_components import DISKS, MAINTENANCE, SUBNET, recorded_cluster
from tests.support.inputs import mapping, objects, text, value

_CLUSTER = ":ManagedCluster"
_GRANT = ":RoleAssignment"
_MAINTENANCE = ":MaintenanceConfiguration"


def test_pods_use_a_cilium_overlay_and_a_route_table_sets_the_outbound_type() -> None:
    assert mapping(recorded_cluster().one(_CLUSTER), "networkProfile") == {
        "networkPlugin": "azure",
        "networkPluginMode": "overlay",
        "networkDataplane": "cilium",
        "networkPolicy": "cilium",
        "ipFamilies": ["IPv4"],
        "loadBalancerSku": "standard",
        "outboundType": "userAssignedNATGateway",
        "podCidr": "10.244.0.0/14",
        "serviceCidr": "172.20.0.0/16",
        "dnsServiceIP": "172.20.0.10",
    }
    network = ExistingAzureNetwork(subnet_id=SUBNET, outbound="userDefinedRouting")
    cluster = recorded_cluster(lambda args: replace(args, network=network)).one(_CLUSTER)
    assert value(cluster, "networkProfile", "outboundType") == "userDefinedRouting"
    assert value(cluster, "apiServerAccessProfile", "authorizedIPRanges") == ["203.0.113.0/24"]


@given(st.ip_addresses(v=4, network="10.0.0.0/8"), st.integers(min_value=12, max_value=27))
def test_the_dns_has_the_tenth_address_of_the_service_range(address: object, prefix: int) -> None:
    services = IPv4Network(f"{address}/{prefix}", strict=False)
    found = IPv4Address(dns_service_ip(str(services)))
    assert found in services
    assert found not in (services[0], services[1])


def test_the_default_ranges_do_not_overlap_akss_reserved_ones() -> None:
    reserved = [
        IPv4Network(one) for one in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
    ]
    pods, services = IPv4Network(PODS_CIDR), IPv4Network(SERVICES_CIDR)
    assert not any(one.overlaps(other) for one in (pods, services) for other in reserved)
    assert not pods.overlaps(services)
    assert 2 ** (24 - pods.prefixlen) >= 1024, "each node takes a /24, and AKS's default has only 256"


def test_node_auto_provisioning_has_no_default_pools_and_is_off_with_scale_sets() -> None:
    assert mapping(recorded_cluster().one(_CLUSTER), "nodeProvisioningProfile") == {
        "mode": "Auto",
        "defaultNodePools": "None",
    }
    cluster = recorded_cluster(lambda args: replace(args, scaling="fixed")).one(_CLUSTER)
    assert mapping(cluster, "nodeProvisioningProfile") == {"mode": "Manual"}


def test_the_system_pool_is_fixed_on_demand_and_for_operators_only() -> None:
    nodes = SystemNodesArgs(vm_size="Standard_D8s_v5", count=3, zones=["1", "2", "3"], disk_gib=64)
    cluster = recorded_cluster(lambda args: replace(args, system_nodes=nodes)).one(_CLUSTER)
    (pool,) = objects(cluster, "agentPoolProfiles")
    assert pool == {
        "name": "system",
        "mode": "System",
        "type": "VirtualMachineScaleSets",
        "osType": "Linux",
        "vmSize": "Standard_D8s_v5",
        "count": 3,
        "orchestratorVersion": "1.36",
        "osDiskSizeGB": 64,
        "availabilityZones": ["1", "2", "3"],
        "vnetSubnetID": SUBNET,
        "nodeLabels": {"holdfast.dev/system": "true"},
        "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"],
        "upgradeSettings": {"maxSurge": "1"},
    }
    with pytest.raises(ValueError, match="2 nodes or more"):
        SystemNodesArgs(vm_size="Standard_D4s_v5", count=1)


def test_the_cluster_identity_may_use_the_subnet_before_the_cluster_is_created() -> None:
    recording = recorded_cluster()
    cluster, grant = recording.one(_CLUSTER), recording.one(_GRANT, "cluster-identity-subnet-assignment")
    assert mapping(cluster, "identity") == {
        "type": "UserAssigned",
        "userAssignedIdentities": ["cluster-identity-identity-id"],
    }
    assert (grant.inputs["scope"], grant.inputs["principalType"]) == (SUBNET, "ServicePrincipal")
    assert text(grant, "roleDefinitionId").endswith("/4d97b98b-1d4f-4787-a291-c67834d212e7")
    assert grant.name in recording.everything_before(cluster)


def test_the_cluster_has_workload_identities_and_no_zones_or_key_by_default() -> None:
    recording = recorded_cluster()
    cluster = recording.one(_CLUSTER)
    assert value(cluster, "oidcIssuerProfile", "enabled") is True
    assert value(cluster, "securityProfile", "workloadIdentity", "enabled") is True
    (pool,) = objects(cluster, "agentPoolProfiles")
    assert "availabilityZones" not in pool, "an empty list would always show a difference"
    assert not cluster.ignore_changes, "an ignored list of pools would restore deleted ones"
    assert value(cluster, "diskEncryptionSetID") is None
    assert not [one.name for one in recording.of(_GRANT) if one.name.startswith("cluster-identity-disks")]


def test_the_disk_encryption_set_is_readable_before_the_cluster_is_created() -> None:
    recording = recorded_cluster(lambda args: replace(args, disk_encryption_set_id=DISKS))
    cluster, grant = recording.one(_CLUSTER), recording.one(_GRANT, "cluster-identity-disks-assignment")
    assert value(cluster, "diskEncryptionSetID") == DISKS
    assert text(grant, "roleDefinitionId").endswith("/acdd72a7-3385-48ef-bd42-f606fba81ae7")
    assert grant.inputs["scope"] == DISKS
    assert grant.name in recording.everything_before(cluster), "AKS must read the set on creation"


@pytest.mark.parametrize(
    ("scaling", "of_nodes"), [("nap", "karpenter-events"), ("fixed", "cluster-autoscaler")]
)
def test_the_logs_of_the_control_plane_go_to_a_named_workspace_only(
    scaling: Literal["nap", "fixed"], of_nodes: str
) -> None:
    workspace = DISKS.replace(
        "Microsoft.Compute/diskEncryptionSets", "Microsoft.OperationalInsights/workspaces"
    )
    recording = recorded_cluster(lambda args: replace(args, scaling=scaling, log_workspace_id=workspace))
    setting = recording.one(":DiagnosticSetting")
    assert setting.inputs["workspaceId"] == workspace
    enabled = {str(log["category"]) for log in objects(setting, "logs") if log["enabled"]}
    assert {"kube-apiserver", "kube-scheduler", "kube-audit-admin", of_nodes} <= enabled
    assert "kube-audit" not in enabled, "every read as well would cost far more"
    assert recording.one(_CLUSTER).name in setting.depends_on | {
        urn.rpartition("::")[2] for urn in setting.made_of["resourceUri"]
    }
    assert not recorded_cluster().of(":DiagnosticSetting")


def test_a_long_name_is_cut_for_the_dns_prefix() -> None:
    name = f"holdfast-{'x' * 44}-yy"
    cluster = recorded_cluster(lambda args: replace(args, cluster_name=name)).one(_CLUSTER)
    assert text(cluster, "dnsPrefix") == f"holdfast-{'x' * 44}"
    assert text(cluster, "resourceName") == name


def test_kubernetes_upgrades_follow_the_stack_and_node_patches_do_not_drain() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert mapping(cluster, "autoUpgradeProfile") == {
        "upgradeChannel": "none",
        "nodeOSUpgradeChannel": "SecurityPatch",
    }
    chosen = Upgrades(cluster="patch", node_os="NodeImage")
    cluster = recorded_cluster(lambda args: replace(args, upgrades=chosen)).one(_CLUSTER)
    assert mapping(cluster, "autoUpgradeProfile") == {
        "upgradeChannel": "patch",
        "nodeOSUpgradeChannel": "NodeImage",
    }


def test_one_window_applies_to_all_automatic_upgrades() -> None:
    recording = recorded_cluster()
    assert {text(one, "configName") for one in recording.of(_MAINTENANCE)} == {
        "aksManagedAutoUpgradeSchedule",
        "aksManagedNodeOSUpgradeSchedule",
        "default",
    }
    for one in recording.of(_MAINTENANCE):
        assert mapping(one, "maintenanceWindow") == {
            "schedule": {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}},
            "startTime": "02:00",
            "utcOffset": "+00:00",
            "durationHours": 8,
            "startDate": "2026-01-03",
        }
        assert "cluster-control-plane-aks" in recording.everything_before(one)
    frozen = replace(
        MAINTENANCE, every_weeks=2, exclusions=[NoUpgrades(start="2026-12-20", end="2027-01-06")]
    )
    recording = recorded_cluster(lambda args: replace(args, maintenance=frozen))
    for one in recording.of(_MAINTENANCE):
        window = mapping(one, "maintenanceWindow")
        assert window["notAllowedDates"] == [{"start": "2026-12-20", "end": "2027-01-06"}]
        assert value(window, "schedule", "weekly", "intervalWeeks") == 2


@pytest.mark.parametrize("hours", [0, 3, 25])
def test_a_window_of_an_invalid_length_is_rejected(hours: int) -> None:
    with pytest.raises(ValueError, match="AKS allows 4 to 24"):
        Maintenance(day="Saturday", start="02:00", hours=hours, start_date="2026-01-03")
