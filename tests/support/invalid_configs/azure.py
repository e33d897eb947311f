"""Invalid documents of Azure stacks, each with one mistake and the problem that it causes."""

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders.configurations import ADMIN, DISK_ENCRYPTION_SET, EXISTING_AZURE_NETWORK, SUBNET
from tests.support.invalid_configs.everywhere import INVALID_EVERYWHERE
from tests.support.invalid_configs.mistakes import (
    ENDED,
    HOME,
    INVALID_VOLUMES,
    Mistake,
    changed,
    missing,
    reserved,
    volume,
    wrong,
)

KEY = {
    "url": "https://my-keys.vault.azure.net/keys/checkpoints",
    "identity": DISK_ENCRYPTION_SET.replace(
        "Microsoft.Compute/diskEncryptionSets", "Microsoft.ManagedIdentity/userAssignedIdentities"
    ),
}
ELSEWHERE = DISK_ENCRYPTION_SET.replace("00000000-", "00000001-", 1)


def brought(field: str, value: JsonValue, fix: str) -> Mistake:
    """A mistake in an existing network."""
    name = field.removeprefix(".network.").removesuffix("[0]")
    return wrong(field, {**EXISTING_AZURE_NETWORK, name: value}, fix, at=".network")


#: Invalid with both kinds of scaling.
def lustre(field: str, fix: str, **given: JsonValue) -> Mistake:
    """A parallel volume with a mistake."""
    return volume(
        field, fix, **{"kind": "parallel", "zone": "1", "sizeGiB": 16384, "cidr": "10.57.0.0/26", **given}
    )


INVALID_CONFIGS: dict[str, Mistake] = {
    **INVALID_EVERYWHERE,
    "a budget of nothing": wrong(".budget", 0, "for example, `budget: 400`"),
    "a location in the document": wrong(".location", "eastus2", "azure-native:location"),
    "a subscription in the document": wrong(".subscription", "mine", "azure-native:subscriptionId"),
    "an existing resource group": wrong(".resourceGroup", "mine", "the stack creates one"),
    "scaling outside cluster": wrong(".scaling", "nap", "Move it to cluster."),
    "resourcePools of Determined": wrong(".resourcePools", [], "Write pools"),
    "a taint": wrong(".pools[2].taints", [{"key": "gpu"}], "follow from its capacity and its GPUs"),
    "an eviction policy": wrong(".pools[1].evictionPolicy", "Deallocate", "count against the quota"),
    "a minimum number of nodes": wrong(".pools[1].minCount", 1, "down to zero"),
    "priority instead of capacity": wrong(".pools[1].priority", "Spot", "Write capacity: spot"),
    "a disk that is too large": wrong(".pools[1].diskGiB", 4096, "`diskGiB: 128`"),
    "a zone of a pool that does not exist": wrong(".pools[1].zones[1]", [1, 5], "such as 1"),
    "a zone of a pool twice": wrong(".pools[1].zones[1]", ["2", 2], "Remove one"),
    "a default pool on spot": wrong(".pools[1].default", True, "Write it on cpu instead.", without=[".pools[0].default"]),
    "a default pool with GPUs": wrong(".pools[3].default", True, "Write it on cpu instead.", without=[".pools[0].default"]),
    # checkpoints
    "checkpoints kept for longer than a year": wrong(".checkpoints.retainDays", 366, "`retainDays: 30`"),
    "copies in another region": wrong(".checkpoints.redundancy", "Standard_GRS", "`redundancy: Standard_LRS`"),
    "a bucket's name": wrong(".checkpoints.bucket", "mine", "and names it"),
    "a key of checkpoints": wrong(".checkpoints.kmsKey", "mine", "Write key: {url: …, identity: …}."),
    "kms as on AWS": wrong(".checkpoints.kms", True, "Write key"),
    "a key with a version": wrong(".checkpoints.key.url", {**KEY, "url": f"{KEY['url']}/0a1b"}, "without the version", at=".checkpoints.key"),
    "an identity by name": wrong(".checkpoints.key.identity", {**KEY, "identity": "mine"}, "az identity show", at=".checkpoints.key"),
    "a private block for checkpoints": wrong(".checkpoints.allowedCidrs[0]", ["10.0.0.0/8"], "clients in the nodes' subnet have access already", at=".checkpoints.allowedCidrs"),
    "a block for checkpoints twice": wrong(".checkpoints.allowedCidrs[1]", ["198.51.100.0/24", "198.51.100.0/24"], "Remove", at=".checkpoints.allowedCidrs"),

    # the rest
    "a registry with its scheme": wrong(".mirror.images", "https://holdfast.azurecr.io/mirror", 'Write "holdfast.azurecr.io/mirror".'),
    "a namespace too short for a container": wrong(".namespaces[0].name", "ml", '"ml-training"'),
    "a namespace with hyphens side by side": wrong(".namespaces[0].name", "ml--vision", '"ml-vision"'),
    "a namespace of AKS": wrong(".namespaces[0].name", "aks-command", '"training-aks-command"'),
    # the cluster
    "no cluster": missing(".cluster", "Add `cluster: {access: "),
    "a version without MutatingAdmissionPolicy": wrong(".cluster.version", "1.35", "{key: karpenter.sh/capacity-type, operator: Equal,"),
    "a version with a patch": wrong(".cluster.version", f"{versions.KUBERNETES}.3", f'Write "{versions.KUBERNETES}".'),
    "no access": wrong(".cluster.access", {}, "`public: {cidrs: [203.0.113.7/32]}`"),
    "public and private access": wrong(".cluster.access", {"public": {"cidrs": ["203.0.113.0/24"]}, "private": True}, "Remove one of the two."),
    "private access set to false": wrong(".cluster.access", {"private": False}, "or `private: true`"),
    "the whole internet": wrong(".cluster.access.public.cidrs", ["0.0.0.0/0"], "Write your own addresses"),
    "the whole internet in two halves": wrong(".cluster.access.public.cidrs", ["0.0.0.0/1", "128.0.0.0/1"], "or `private: true` instead of public"),
    "an empty list of addresses": wrong(".cluster.access.public.cidrs", [], "[203.0.113.0/24]"),
    "an address without a prefix length": wrong(".cluster.access.public.cidrs[0]", ["203.0.113.7"], 'Write "203.0.113.7/32".'),
    "a private block for a public endpoint": wrong(".cluster.access.public.cidrs[0]", ["10.0.0.0/8"], "the public address of its NAT gateway"),
    "a block twice": wrong(".cluster.access.public.cidrs[1]", ["203.0.113.0/24", "203.0.113.0/24"], "Remove one"),
    "a public name for a public endpoint": wrong(".cluster.access.publicName", True, "Leave it out."),
    "publicAccessCidrs instead of access": wrong(".cluster.publicAccessCidrs", ["203.0.113.0/24"], "access: {public: {cidrs: […]}}"),
    "authorizedIPRanges instead of access": wrong(".cluster.access.authorizedIPRanges", [], "public: {cidrs: […]}"),
    "a login by a stored token": wrong(".cluster.login", "devicecode", "`login: azurecli`"),
    "an administrator by name": wrong(".cluster.admins[0]", ["me@example.com"], "az ad user show --id NAME --query id"),
    "an administrator twice": wrong(".cluster.admins[1]", [ADMIN, ADMIN.upper()], "Remove one"),
    "a kubeconfig": wrong(".cluster.kubeconfig", "~/.kube/config", "gets a token from kubelogin"),
    # system nodes
    "one system node": wrong(".cluster.systemNodes.count", 1, "`count: 2`"),
    "system nodes of several sizes": wrong(".cluster.systemNodes.vmSizes", ["Standard_D4ds_v5"], "Write vmSize, a single one"),
    "system nodes with GPUs": wrong(".cluster.systemNodes.vmSize", "Standard_NC24ads_A100_v4", "Standard_D4ds_v5"),
    "system nodes that are too small": wrong(".cluster.systemNodes.vmSize", "Standard_D2ds_v5", "Standard_D4ds_v5"),
    "system nodes with a typo": wrong(".cluster.systemNodes.vmSize", "Standard_D4ds_v55", 'Write "Standard_D4ds_v5".'),
    "a zone that does not exist": wrong(".cluster.systemNodes.zones[0]", [4], "such as 1"),
    "a zone as in a node label": wrong(".cluster.systemNodes.zones[0]", ["eastus2-1"], "Write 1:"),
    "a zone of the system nodes twice": wrong(".cluster.systemNodes.zones[1]", [1, "1"], "Remove one"),
    # disks
    "a disk encryption set by name": wrong(".cluster.diskEncryptionSet", "holdfast", "az disk-encryption-set show"),
    "a registry by its address": wrong(".cluster.registry", "images.azurecr.io", "az acr show --name NAME"),
    "a disk encryption set of another subscription": wrong(".cluster.diskEncryptionSet", ELSEWHERE, "or change azure-native:subscriptionId"),
    # upgrades and maintenance
    "a channel that moves to the next minor version": wrong(".cluster.upgrades.cluster", "stable", "the next `pulumi up` would try to downgrade, which AKS rejects"),
    "an unknown channel": wrong(".cluster.upgrades.cluster", "weekly", "`cluster: patch`"),
    "a channel of the nodes with a typo": wrong(".cluster.upgrades.nodeOs", "SecurityPatches", 'Write "SecurityPatch".'),
    "two days of maintenance": wrong(".cluster.maintenance.window.days", ["saturday", "sunday"], "Write day"),
    "a window that is too short": wrong(".cluster.maintenance.window.hours", 2, "`hours: 8`"),
    "a window every five weeks": wrong(".cluster.maintenance.window.everyWeeks", 5, "`everyWeeks: 2`"),
    "a relative start date": wrong(".cluster.maintenance.window.startDate", "today", "a relative one would change with every update"),
    "a time without quotes": wrong(".cluster.maintenance.window.start", 1320, 'Put it in quotes: "22:00".'),
    "an exclusion that ends before it begins": wrong(".cluster.maintenance.exclusions[0].end", "2026-12-19", "Write a later date."),
    "exclusions of the same days": wrong(".cluster.maintenance.exclusions[1]", [{"start": "2026-12-20", "end": "2027-01-06"}, {"start": "2027-01-06", "end": "2027-01-10"}], "Write one instead: 2026-12-20 to 2027-01-10."),
    "an exclusion without an end": missing(".cluster.maintenance.exclusions[0].end", "Add `end: "),
    # the network
    "a public node range": wrong(".network.cidr", "8.8.0.0/16", "Leave it out"),
    "a node range that is neither public nor private": wrong(".network.cidr", "198.18.0.0/16", "Leave it out"),
    "a range that AKS reserves": wrong(".network.podsCidr", "172.28.0.0/14", "Leave it out"),
    "a pod range within the node range": wrong(".network.podsCidr", "10.40.0.0/16", "Write another"),
    "a service range within the node range": wrong(".network.servicesCidr", "10.40.1.0/24", "Write another"),
    "a node range smaller than maxNodes": wrong(".network.cidr", "10.40.0.0/27", "Write a larger block, or smaller maxNodes."),
    "a pod range smaller than maxNodes": wrong(".network.podsCidr", "10.244.0.0/20", "Write a larger block, or smaller maxNodes."),
    "a service range that is too large": wrong(".network.servicesCidr", "10.96.0.0/11", 'Write "10.96.0.0/20"'),
    "a network with host bits": wrong(".network.cidr", "10.40.0.1/16", 'Write "10.40.0.0/16".'),
    "a subnet by name": brought(".network.subnetId", "training", "az network vnet subnet show"),
    "an existing subnet with a node range": brought(".network.cidr", "10.40.0.0/16", "without subnetId the stack creates a network"),
    "an existing subnet without egressCidrs": wrong(".network.egressCidrs", {"subnetId": SUBNET}, "`egressCidrs: [198.51.100.7/32]`", at=".network"),
    "an existing subnet with private egressCidrs": brought(".network.egressCidrs[0]", ["10.0.0.4/32"], "of the NAT gateway or the firewall"),
    "outbound without a subnet": wrong(".network.subnetId", {"outbound": "userDefinedRouting"}, "Add `subnetId: ", at=".network"),
    "an unsupported outbound type": brought(".network.outbound", "loadBalancer", "`outbound: userAssignedNATGateway`"),
    "jobs for a namespace with a typo": wrong(".acceptsFrom[0].namespaces[0]", [{**HOME, "namespaces": ["vison"]}], 'Write "vision".', at=".acceptsFrom"),
    "one cluster twice": wrong(".acceptsFrom[1].issuer", [HOME, {**HOME, "name": "us-west-1", "namespaces": ["tabular"]}], "in one entry", at=".acceptsFrom"),
    # volumes
    **INVALID_VOLUMES,
    "Lustre without a size": lustre("sizeGiB", "the smallest", sizeGiB=None),
    "Lustre without a zone": lustre("zone", "Write ", zone=None),
    "a share without a size": volume("sizeGiB", "Write 100", kind="shared"),
    "Lustre of a size of another throughput": lustre("sizeGiB", "Write 8192", throughput=250, sizeGiB=4096),
    "Lustre without a block": lustre("cidr", "Add it.", cidr=None),
    "Lustre in a block of the nodes": lustre("cidr", "Write another private block", cidr="10.40.0.0/26"),
    "Lustre in a block that is too small": lustre("cidr", "Write another private block", cidr="10.57.0.0/28"),
    "Lustre in a subnet beside a block": lustre("subnetId", "Leave it out.", subnetId="/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/net/subnets/lustre"),
    "a container with a short name": volume("name", "Write a longer name.", name="ml"),
}  # fmt: skip

#: Of a stack on node auto-provisioning.
INVALID_NAP_CONFIGS: dict[str, Mistake] = {
    "a reserved pool of node auto-provisioning": (changed(".pools[2]", capacity="reserved"), ".pools[2].capacity", "Write `scaling: fixed` under cluster"),
    "a way of scaling with a typo": wrong(".cluster.scaling", "karpenter", "`scaling: nap`"),
    "a price cap": wrong(".pools[1].spotMaxPrice", 0.5, "`scaling: fixed` under cluster, where spot pools have spotMaxPrice"),
    "a price cap as in Determined": wrong(".pools[1].spot_max_price", "0.5", "on spot pools with `scaling: fixed`"),
    "one VM size": wrong(".pools[1].vmSize", "Standard_D16ds_v5", 'Write "vmSizes".'),
    "instance types": wrong(".pools[0].instanceTypes", ["m7i.xlarge"], "Write vmSizes."),
    "no VM size": missing(".pools[0].vmSizes", "Add `vmSizes: "),
    "an empty list of VM sizes": wrong(".pools[0].vmSizes", [], "`vmSizes: [Standard_D4ds_v5"),
    "VM sizes and families": wrong(".pools[0].families", ["Dds_v5"], "Remove one of the two."),
    "families without vcpus": missing(".pools[1].vcpus", "Add `vcpus: ["),
    "vcpus without families": missing(".pools[1].families", "Add `families: ["),
    "a VM size with a typo": wrong(".pools[0].vmSizes[0]", ["Standard_D4ds_v55"], 'Write "Standard_D4ds_v5".'),
    "a VM size in small letters": wrong(".pools[0].vmSizes[0]", ["standard_d4ds_v5"], 'Write "Standard_D4ds_v5".'),
    "a VM size without its first word": wrong(".pools[0].vmSizes[0]", ["D4ds_v5"], 'Write "Standard_D4ds_v5".'),
    "a machine type of another cloud": wrong(".pools[0].vmSizes[0]", ["p4d.24xlarge"], "az vm list-skus --location eastus2"),
    "a VM size twice": wrong(".pools[0].vmSizes[1]", ["Standard_D4ds_v5", "Standard_D4ds_v5"], "Remove one"),
    "machines with and without GPUs": wrong(".pools[0].vmSizes", ["Standard_D4ds_v5", "Standard_NC24ads_A100_v4"], "Write two pools"),
    "a family with a typo": wrong(".pools[1].families[0]", ["Ddss_v5", "Dads_v5"], 'Write "D'),
    "a number of vCPUs that no family has": wrong(".pools[1].vcpus[1]", [16, 17], "Write one of them, or remove it."),
    "a number of vCPUs in quotes": wrong(".pools[1].vcpus[0]", ["16"], "`vcpus: [4, 8]`"),
    "machines of two architectures": wrong(".pools[0]", ["Standard_D4ds_v5", "Standard_D4pds_v5"], "Write two pools", at=".pools[0].vmSizes"),
}  # fmt: skip

#: Of a stack of scale sets.
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/capacity/providers/Microsoft.Compute/capacityReservationGroups/h100"

INVALID_FIXED_CONFIGS: dict[str, Mistake] = {
    "a reserved pool without a group": reserved(".pools[2]", "", "Add `reservation: {group: ID}`.", {}),
    "a group on a spot pool": (changed(".pools[2]", reservation={"group": GROUP}), ".pools[2].reservation", "Write capacity: reserved, or remove reservation."),
    "a reservation instead of its group": reserved(".pools[2]", "reservation.group", "az capacity reservation group show", {"reservation": {"group": f"{GROUP}/capacityReservations/h100"}}),
    "a group whose reservations have ended": reserved(".pools[2]", "reservation.ends", "the reservation that follows it", {"reservation": {"group": GROUP, **ENDED}}),
    "several VM sizes": wrong(".pools[1].vmSizes", ["Standard_D16ds_v5", "Standard_D16ads_v5"], "If it is often out of capacity, add a pool for each size"),
    "a VM size that is not in a list": wrong(".pools[1].vmSizes", "Standard_D16ds_v5", "`vmSizes: [Standard_D4ds_v5"),
    "families": wrong(".pools[1].families", ["Dds_v5"], "Write vmSizes, with one size for each pool"),
    "no VM size": missing(".pools[1].vmSizes", "Add `vmSizes: "),
    "a VM size with a typo": wrong(".pools[1].vmSizes[0]", ["Standard_D16ds_v55"], 'Write "Standard_D16ds_v5".'),
    "a price cap on demand": wrong(".pools[0].spotMaxPrice", 1.5, "Leave it out."),
    "a price cap of nothing": wrong(".pools[1].spotMaxPrice", 0, "Leave it out for"),
    "a negative price cap": wrong(".pools[1].spotMaxPrice", -2.5, "Leave it out for"),
    "a price cap that is too precise": wrong(".pools[1].spotMaxPrice", 0.1234567, "`spotMaxPrice: 0.12346`"),
    "a price cap in quotes": wrong(".pools[1].spotMaxPrice", "0.5", "`spotMaxPrice: 1.5`"),
    "machines that are rolled out": wrong(".pools[1].rollOut", True, "AKS upgrades the nodes of a scale set"),
    "pools of one name to AKS": wrong(".pools[2].name", "cpuspot", "Rename one of the two", without=[".namespaces"]),
}  # fmt: skip
