"""The fields of GKE: clusters and node pools."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.program.fields.table import Fields

_NAMES: Final = "names, labels of Google Cloud, and notes"
_ACCESS: Final = "who reaches machines and the API server, and by which identity"
_DISK: Final = "disks: pods that request room on them are not judged"
_UPGRADES: Final = "how versions and broken machines are replaced"
_PROVIDER: Final = "what the provider alone uses"
_SERVED: Final = "how pods that run are served"
_ADDED: Final = "what GKE runs beside jobs"

_NODE_CONFIG: Final = Fields.of(
    judged="""
        flexStart labels machineType preemptible spot taints
        guestAccelerators(count gpuDriverInstallationConfig(gpuDriverVersion) gpuPartitionSize gpuSharingConfig type)
        bootDisk(diskType) confidentialNodes(enabled) diskType imageType reservationAffinity(consumeReservationType) sandboxConfig taintConfig(architectureTaintBehavior)
        workloadMetadataConfig(mode)
    """,
    harmless={
        _NAMES: "effectiveTaints metadata resourceLabels resourceManagerTags",
        _ACCESS: "oauthScopes serviceAccount shieldedInstanceConfig tags",
        _DISK: """
            bootDisk bootDiskKmsKey diskSizeGb ephemeralStorageConfig ephemeralStorageLocalSsdConfig localNvmeSsdBlockConfig
            localSsdCount localSsdEncryptionMode secondaryBootDisks storagePools
        """,
        _SERVED: """
            containerdConfig fastSocket gcfsConfig gvnic hostMaintenancePolicy loggingVariant
            kubeletConfig(
                allowedUnsafeSysctls containerLogMaxFiles containerLogMaxSize cpuCfsQuota cpuCfsQuotaPeriod cpuManagerPolicy=none
                crashLoopBackOff imageGcHighThresholdPercent imageGcLowThresholdPercent imageMaximumGcAge imageMinimumGcAge
                evictionMaxPodGracePeriodSeconds insecureKubeletReadonlyPortEnabled maxParallelImagePulls podPidsLimit
                shutdownGracePeriodCriticalPodsSeconds shutdownGracePeriodSeconds singleProcessOomKill
            )
            linuxNodeConfig(accurateTimeConfig cgroupMode sysctls transparentHugepageDefrag transparentHugepageEnabled)
        """,
        "the value that it has without the field": """
            advancedMachineFeatures(enableNestedVirtualization=false performanceMonitoringUnit)
            enableConfidentialStorage=false
        """,
    },
    unjudged="""
        advancedMachineFeatures(threadsPerCore) confidentialNodes(confidentialInstanceType) gpudirectStrategy
        kubeletConfig(evictionMinimumReclaim evictionSoft evictionSoftGracePeriod memoryManager topologyManager)
        linuxNodeConfig(customNodeInit hugepagesConfig nodeKernelModuleLoading swapConfig) maxRunDuration minCpuPlatform nodeGroup
        nodeImageConfigs reservationAffinity(key values) soleTenantConfig windowsNodeConfig
    """,
)

NODE_POOL: Final = Fields.of(
    judged="""
        autoscaling(maxNodeCount totalMaxNodeCount) cluster initialNodeCount maxPodsPerNode name
        nodeConfig@config nodeCount nodeLocations placementPolicy(tpuTopology type)
        queuedProvisioning(enabled)
    """,
    harmless={
        _NAMES: "namePrefix",
        _ACCESS: "networkConfig(createPodRange enablePrivateNodes networkPerformanceConfig podIpv4CidrBlock podRange subnetwork)",
        _UPGRADES: "maintenancePolicies management nodeDrainConfigs upgradeSettings version",
        _PROVIDER: "deletionPolicy ignoreNodeCountChanges location project",
        "how many machines it has at least, and in which zones they are preferred": "autoscaling(locationPolicy minNodeCount totalMinNodeCount)",
    },
    unjudged="""
        bestEffortProvisioning
        networkConfig(acceleratorNetworkProfile additionalNodeNetworkConfigs additionalPodNetworkConfigs podCidrOverprovisionConfig)
        placementPolicy(policyName)
    """,
    tables={"config": _NODE_CONFIG},
)

_CLUSTER: Final = Fields.of(
    judged="""
        defaultMaxPodsPerNode enableAutopilot initialNodeCount location name
        confidentialNodes(enabled) nodeConfig nodeLocations nodePools
        removeDefaultNodePool
    """,
    harmless={
        _NAMES: "description resourceLabels",
        _ACCESS: """
            anonymousAuthenticationConfig authenticatorGroupsConfig binaryAuthorization(enabled=false evaluationMode=DISABLED)
            controlPlaneEndpointsConfig databaseEncryption defaultSnatStatus disableL4LbFirewallReconciliation enableLegacyAbac
            enableShieldedNodes identityServiceConfig inTransitEncryptionConfig masterAuth masterAuthorizedNetworksConfig
            meshCertificates privateClusterConfig privateIpv6GoogleAccess rbacBindingConfig secretManagerConfig secretSyncConfig nodeCreationConfig
            securityPostureConfig serviceExternalIpsConfig userManagedKeysConfig workloadAltsConfig workloadIdentityConfig
        """,
        "the network of pods that run": """
            datapathProvider dataplaneOptimizationMode dnsConfig enableCiliumClusterwideNetworkPolicy enableFqdnNetworkPolicy
            enableIntranodeVisibility enableL4IlbSubsetting gatewayApiConfig networkPerformanceConfig networkPolicy networkingMode
            network subnetwork
            ipAllocationPolicy(
                additionalPodRangesConfig clusterIpv4CidrBlock clusterSecondaryRangeName
                autoIpamConfig networkTierConfig servicesIpv4CidrBlock servicesSecondaryRangeName stackType
            )
        """,
        _UPGRADES: """
            desiredEmulatedVersion gkeAutoUpgradeConfig maintenancePolicy minMasterVersion nodeVersion notificationConfig releaseChannel
            rollbackSafeUpgrade
        """,
        _PROVIDER: "deletionPolicy deletionProtection ignoreNodeCountChanges project skipNodePoolRefresh",
        _ADDED: """
            addonsConfig clusterTelemetry costManagementConfig enterpriseConfig fleet loggingConfig loggingService
            managedMachineLearningDiagnosticsConfig managedOpentelemetryConfig monitoringConfig monitoringService podAutoscaling
            protectConfig resourceUsageExportConfig
        """,
        "limits of the machines that it makes pools of by itself, in which no tier is": """
            clusterAutoscaling(autoProvisioningDefaults autoProvisioningLocations autoscalingProfile enabled)
        """,
        "settings of Autopilot, on which no pools are judged": "allowNetAdmin autopilotClusterPolicyConfig autopilotPrivilegedAdmissions",
        "what nodes have without a setting of their pool": """
            nodePoolAutoConfig nodePoolDefaults(
                nodeConfigDefaults(containerdConfig gcfsConfig insecureKubeletReadonlyPortEnabled loggingVariant)
            )
        """,
        "the value that it has without the field": """
            enableKubernetesAlpha=false enableMultiNetworking=false enableTpu=false
            podSecurityPolicyConfig(enabled=false) verticalPodAutoscaling(enabled=false)
        """,
        "whether the API server has beta APIs": "enableK8sBetaApis",
    },
    unjudged="""
        clusterAutoscaling(defaultComputeClassEnabled resourceLimits) clusterIpv4Cidr confidentialNodes(confidentialInstanceType)
        ipAllocationPolicy(additionalIpRangesConfigs podCidrOverprovisionConfig) tpuConfig
    """,
)

TABLES: Final = {"gcp:container/cluster:Cluster": _CLUSTER, "gcp:container/nodePool:NodePool": NODE_POOL}
