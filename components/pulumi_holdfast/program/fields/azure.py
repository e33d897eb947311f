"""The fields of AKS: clusters and agent pools."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.program.fields.table import Fields

_NAMES: Final = "names, tags and notes"
_ACCESS: Final = "who reaches machines and the API server, and by which identity"
_DISK: Final = "disks: pods that request room on them are not judged"
_UPGRADES: Final = "how versions and broken machines are replaced"
_SERVED: Final = "how pods that run are served"
_ADDED: Final = "what AKS runs beside jobs"

_POOL: Final = {
    _NAMES: "tags",
    _ACCESS: "enableEncryptionAtHost=false enableNodePublicIP networkProfile nodePublicIPPrefixID podSubnetID vnetSubnetID",
    _DISK: "enableUltraSSD=false kubeletDiskType osDiskSizeGB",
    _UPGRADES: "orchestratorVersion upgradeSettings",
    _SERVED: """
        kubeletConfig(
            allowedUnsafeSysctls containerLogMaxFiles containerLogMaxSizeMB cpuCfsQuota cpuCfsQuotaPeriod cpuManagerPolicy=none
            imageGcHighThreshold imageGcLowThreshold podMaxPids topologyManagerPolicy=none|best-effort
        )
        linuxOSConfig(sysctls transparentHugePageDefrag transparentHugePageEnabled) localDNSProfile messageOfTheDay
        securityProfile
    """,
    "machines beyond a reservation are on-demand": "capacityReservationGroupID",
    "how many machines it has at least": "minCount",
    "what spot may cost: a tier of spot is left by its procurementTimeout": "spotMaxPrice",
    "what happens to machines that it no longer has": "scaleDownMode=Delete scaleSetEvictionPolicy=Delete",
    "Linux of AKS": "enableFIPS=false osSKU=Ubuntu|Ubuntu2204|Ubuntu2404|AzureLinux|AzureLinux3|CBLMariner|Mariner",
    "the kinds that are read, and the value that it has without the field": "type=VirtualMachineScaleSets|VirtualMachines workloadRuntime=OCIContainer",
}
_POOL_JUDGED: Final = """
    availabilityZones count enableAutoScaling gpuInstanceProfile gpuProfile(driver) maxCount maxPods mode
    nodeLabels nodeTaints osDiskType osType powerState(code) proximityPlacementGroupID scaleSetPriority
    virtualMachinesProfile(scale(manual(count size))) vmSize
"""
_POOL_UNJUDGED: Final = """
    creationData gatewayProfile hostGroupID kubeletConfig(failSwapOn) linuxOSConfig(swapFileSizeMB) podIPAllocationMode
    virtualMachineNodesStatus windowsProfile
"""

AGENT_POOL: Final = Fields.of(
    judged=f"agentPoolName resourceName {_POOL_JUDGED}",
    harmless={**_POOL, "where Azure has it": "resourceGroupName"},
    unjudged=_POOL_UNJUDGED,
)

PROFILE: Final = Fields.of(judged=f"name {_POOL_JUDGED}", harmless=_POOL, unjudged=_POOL_UNJUDGED)

_CLUSTER: Final = Fields.of(
    judged="""
        agentPoolProfiles networkProfile(networkPlugin networkPluginMode) nodeProvisioningProfile(defaultNodePools mode) resourceName
    """,
    harmless={
        _NAMES: "tags",
        _ACCESS: """
            aadProfile apiServerAccessProfile bootstrapProfile disableLocalAccounts diskEncryptionSetID dnsPrefix enableRBAC fqdnSubdomain
            httpProxyConfig identity identityProfile linuxProfile oidcIssuerProfile podIdentityProfile privateLinkResources
            publicNetworkAccess securityProfile servicePrincipalProfile windowsProfile
        """,
        _UPGRADES: "autoUpgradeProfile kubernetesVersion supportPlan upgradeSettings",
        _ADDED: """
            addonProfiles aiToolchainOperatorProfile azureMonitorProfile ingressProfile metricsProfile storageProfile
            workloadAutoScalerProfile(keda verticalPodAutoscaler(enabled=false))
        """,
        "the network of pods that run": """
            networkProfile(
                advancedNetworking dnsServiceIP ipFamilies loadBalancerProfile loadBalancerSku natGatewayProfile networkDataplane
                networkMode networkPolicy outboundType podCidr podCidrs serviceCidr serviceCidrs staticEgressGatewayProfile
            )
        """,
        "where Azure has it": "kind location nodeResourceGroup nodeResourceGroupProfile resourceGroupName sku",
        "how its autoscaler removes machines": """
            autoScalerProfile(
                balanceSimilarNodeGroups daemonsetEvictionForEmptyNodes daemonsetEvictionForOccupiedNodes expander
                ignoreDaemonsetsUtilization maxEmptyBulkDelete maxGracefulTerminationSec maxTotalUnreadyPercentage
                okTotalUnreadyCount scaleDownDelayAfterAdd scaleDownDelayAfterDelete scaleDownDelayAfterFailure scaleDownUnneededTime
                maxNodeProvisionTime=1?m|2?m|3?m|4?m|5?m|?h*|??m0s
                newPodScaleUpDelay=?s|??s scaleDownUnreadyTime scaleDownUtilizationThreshold scanInterval skipNodesWithLocalStorage skipNodesWithSystemPods
            )
        """,
    },
    unjudged="""
        extendedLocation serviceMeshProfile
    """,
)

TABLES: Final = {
    "azure-native:containerservice:ManagedCluster": _CLUSTER,
    "azure-native:containerservice:AgentPool": AGENT_POOL,
}
