"""The control plane of AKS: what it is made of, what comes before it, and how it is let go."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.aks.access import PODS_CIDR, SERVICES_CIDR, dns_service_ip
from holdfast.components.cluster.aks.control_plane import Maintenance, NoUpgrades, SystemNodesArgs, Upgrades
from holdfast.components.network.azure import ExistingAzureNetwork
from tests.support.aks_component import DISKS, MAINTENANCE, SUBNET, recorded_cluster
from tests.support.inputs import mapping, objects, text, value

_CLUSTER = ":ManagedCluster"
_GRANT = ":RoleAssignment"
_MAINTENANCE = ":MaintenanceConfiguration"


# --- the network ----------------------------------------------------------------------------------


def test_pods_have_an_overlay_of_their_own_on_cilium() -> None:
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
    }, (
        "what node auto-provisioning can be had with; AKS does not take IPv4 for granted then (Azure/AKS #4759)"
    )


def test_a_network_with_a_route_table_is_left_by_it() -> None:
    network = ExistingAzureNetwork(subnet_id=SUBNET, outbound="userDefinedRouting")
    cluster = recorded_cluster(lambda args: replace(args, network=network)).one(_CLUSTER)
    assert value(cluster, "networkProfile", "outboundType") == "userDefinedRouting", "it is fixed at creation"
    assert value(cluster, "apiServerAccessProfile", "authorizedIPRanges") == ["203.0.113.0/24"], (
        "nobody knows from where nodes behind a firewall call; the user names it"
    )


@given(st.ip_addresses(v=4, network="10.0.0.0/8"), st.integers(min_value=12, max_value=27))
def test_the_dns_is_the_tenth_address_of_the_services(address: object, prefix: int) -> None:
    services = IPv4Network(f"{address}/{prefix}", strict=False)
    found = IPv4Address(dns_service_ip(str(services)))
    assert found in services, "AKS refuses an address that is none of the Services'"
    assert found not in (services[0], services[1]), "the first is the range's, the second the API server's"


def test_the_ranges_that_nobody_chose_are_none_of_akss_own() -> None:
    reserved = [
        IPv4Network(one) for one in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
    ]
    pods, services = IPv4Network(PODS_CIDR), IPv4Network(SERVICES_CIDR)
    assert not any(one.overlaps(other) for one in (pods, services) for other in reserved), "AKS refuses them"
    assert not pods.overlaps(services), "an address would be two things"
    assert 2 ** (24 - pods.prefixlen) >= 1024, "each node takes a /24, and AKS's default ends at 256 nodes"


# --- who makes nodes ------------------------------------------------------------------------------


def test_node_auto_provisioning_is_on_from_the_beginning_and_without_pools_of_akss() -> None:
    assert mapping(recorded_cluster().one(_CLUSTER), "nodeProvisioningProfile") == {
        "mode": "Auto",
        "defaultNodePools": "None",
    }, "AKS's own NodePools know no limits; switched off later, all their nodes are drained"


def test_with_scale_sets_node_auto_provisioning_is_off() -> None:
    cluster = recorded_cluster(lambda args: replace(args, scaling="fixed")).one(_CLUSTER)
    assert mapping(cluster, "nodeProvisioningProfile") == {"mode": "Manual"}, (
        "AKS forbids pools that grow by themselves beside it"
    )


def test_the_system_pool_is_fixed_on_demand_and_for_operators_alone() -> None:
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
    }, (
        "no autoscaling, no spot, and the version of the control plane, which nodes do not follow by themselves"
    )


def test_without_zones_aks_places_the_system_nodes() -> None:
    (pool,) = objects(recorded_cluster().one(_CLUSTER), "agentPoolProfiles")
    assert "availabilityZones" not in pool, "an empty list is a difference for ever"


def test_one_system_node_is_refused() -> None:
    with pytest.raises(ValueError, match="2 nodes or more"):
        SystemNodesArgs(vm_size="Standard_D4s_v5", count=1)


def test_nothing_of_the_cluster_is_ignored() -> None:
    assert not recorded_cluster().one(_CLUSTER).ignore_changes, (
        "an ignored list of pools is written back with the next change, and AKS refuses those that are gone by then"
    )


# --- what it is -----------------------------------------------------------------------------------


def test_the_cluster_is_somebody_who_may_put_machines_in_the_subnet_before_it_is_made() -> None:
    recording = recorded_cluster()
    cluster, grant = recording.one(_CLUSTER), recording.one(_GRANT, "cluster-identity-subnet-assignment")
    assert mapping(cluster, "identity") == {
        "type": "UserAssigned",
        "userAssignedIdentities": ["cluster-identity-identity-id"],
    }, "an identity that comes with the cluster can be given nothing before it is there"
    assert (grant.inputs["scope"], grant.inputs["principalType"]) == (SUBNET, "ServicePrincipal"), (
        "on the subnet alone; and Azure need not look up somebody whom it has only just got to know"
    )
    assert text(grant, "roleDefinitionId").endswith("/4d97b98b-1d4f-4787-a291-c67834d212e7"), (
        "Network Contributor"
    )
    assert grant.name in recording.everything_before(cluster), (
        "without it node auto-provisioning makes no node in a network of ours"
    )


def test_pods_have_identities_of_their_own() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert value(cluster, "oidcIssuerProfile", "enabled") is True, "their tokens can be checked"
    assert value(cluster, "securityProfile", "workloadIdentity", "enabled") is True, "and are put into pods"


def test_without_a_key_of_the_users_azure_encrypts_by_itself() -> None:
    recording = recorded_cluster()
    assert value(recording.one(_CLUSTER), "diskEncryptionSetID") is None, "none was given"
    assert not [one.name for one in recording.of(_GRANT) if one.name.startswith("cluster-identity-disks")], (
        "nothing is granted"
    )


def test_a_key_of_the_users_may_be_read_before_the_cluster_needs_it() -> None:
    recording = recorded_cluster(lambda args: replace(args, disk_encryption_set_id=DISKS))
    cluster, grant = recording.one(_CLUSTER), recording.one(_GRANT, "cluster-identity-disks-assignment")
    assert value(cluster, "diskEncryptionSetID") == DISKS, "another set"
    assert text(grant, "roleDefinitionId").endswith("/acdd72a7-3385-48ef-bd42-f606fba81ae7"), (
        "Reader: no more"
    )
    assert grant.inputs["scope"] == DISKS, "on the set alone"
    assert grant.name in recording.everything_before(cluster), (
        "AKS makes no cluster with a set it cannot read"
    )


def test_a_long_name_is_cut_where_azure_takes_no_longer_one() -> None:
    name = f"holdfast-{'x' * 44}-yy"
    cluster = recorded_cluster(lambda args: replace(args, cluster_name=name)).one(_CLUSTER)
    assert text(cluster, "dnsPrefix") == f"holdfast-{'x' * 44}", "54 characters, and no hyphen at the end"
    assert text(cluster, "resourceName") == name, "the cluster keeps its own"


# --- upgrades -------------------------------------------------------------------------------------


def test_kubernetes_is_upgraded_when_the_stack_says_so_and_nodes_are_patched_without_draining() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert mapping(cluster, "autoUpgradeProfile") == {
        "upgradeChannel": "none",
        "nodeOSUpgradeChannel": "SecurityPatch",
    }, "AKS's own default drains every node each week, and with it every job"
    chosen = Upgrades(cluster="patch", node_os="NodeImage")
    cluster = recorded_cluster(lambda args: replace(args, upgrades=chosen)).one(_CLUSTER)
    assert mapping(cluster, "autoUpgradeProfile") == {
        "upgradeChannel": "patch",
        "nodeOSUpgradeChannel": "NodeImage",
    }, "who wants it is given it"


def test_one_window_holds_for_all_that_aks_does_unasked() -> None:
    recording = recorded_cluster()
    assert {text(one, "configName") for one in recording.of(_MAINTENANCE)} == {
        "aksManagedAutoUpgradeSchedule",
        "aksManagedNodeOSUpgradeSchedule",
        "default",
    }, "versions, nodes, and AKS's weekly releases of the control plane and its add-ons"
    for one in recording.of(_MAINTENANCE):
        assert mapping(one, "maintenanceWindow") == {
            "schedule": {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}},
            "startTime": "02:00",
            "utcOffset": "+00:00",
            "durationHours": 8,
            "startDate": "2026-01-03",
        }, "in UTC, and from a day that is written down: AKS takes today otherwise, another one at each `up`"
        assert "cluster-control-plane-aks" in recording.everything_before(one), "it is the cluster's"


def test_days_without_upgrades_are_left_out_of_the_window() -> None:
    frozen = replace(
        MAINTENANCE, every_weeks=2, exclusions=[NoUpgrades(start="2026-12-20", end="2027-01-06")]
    )
    recording = recorded_cluster(lambda args: replace(args, maintenance=frozen))
    for one in recording.of(_MAINTENANCE):
        window = mapping(one, "maintenanceWindow")
        assert window["notAllowedDates"] == [{"start": "2026-12-20", "end": "2027-01-06"}], (
            "they are days of rest"
        )
        assert value(window, "schedule", "weekly", "intervalWeeks") == 2, "every other week"


@pytest.mark.parametrize("hours", [0, 3, 25])
def test_a_window_that_aks_does_not_take_is_refused_before_there_is_a_cluster(hours: int) -> None:
    with pytest.raises(ValueError, match="AKS allows 4 to 24"):
        Maintenance(day="Saturday", start="02:00", hours=hours, start_date="2026-01-03")


# --- the end --------------------------------------------------------------------------------------


def test_a_protected_cluster_is_not_deleted_by_pulumi() -> None:
    recording = recorded_cluster(lambda args: replace(args, protected=True))
    assert [one.name for one in recording if one.protect] == ["cluster-control-plane-aks"], (
        "with it everything it needs stays, because it is needed"
    )


def test_an_unprotected_cluster_goes_without_further_ado() -> None:
    assert not [one.name for one in recorded_cluster() if one.protect], "nothing is in the way of a destroy"
