"""The fields of EKS: clusters, node groups, and their launch templates."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.program.fields.table import Fields

_NAMES: Final = "names, tags and notes"
_ACCESS: Final = "who reaches machines and the API server, and by which identity"
_DISK: Final = "disks: pods that request room on them are not judged"
_UPGRADES: Final = "how versions and broken machines are replaced"
_PROVIDER: Final = "what the provider alone uses"

_NODE_GROUP: Final = Fields.of(
    judged="""
        amiType capacityType clusterName instanceTypes labels launchTemplate(id name) nodeGroupName scalingConfig(maxSize) taints
    """,
    harmless={
        _NAMES: "nodeGroupNamePrefix tags",
        _ACCESS: "nodeRoleArn remoteAccess",
        _DISK: "diskSize",
        _UPGRADES: "forceUpdateVersion nodeRepairConfig releaseVersion updateConfig version",
        _PROVIDER: "region",
        "the version of a launch template that this program makes": "launchTemplate(version)",
        "how many machines it has at least": "scalingConfig(desiredSize minSize)",
        "its zones, which are never taken for known": "subnetIds",
    },
    unjudged="warmPoolConfig",
)

_LAUNCH_TEMPLATE: Final = Fields.of(
    judged="instanceRequirements instanceType networkInterfaces(interfaceType) userData",
    harmless={
        _NAMES: "description name namePrefix tagSpecifications tags",
        _ACCESS: """
            iamInstanceProfile keyName securityGroupNames vpcSecurityGroupIds privateDnsNameOptions
            metadataOptions(httpEndpoint=enabled httpProtocolIpv6 httpPutResponseHopLimit httpTokens instanceMetadataTags)
            networkInterfaces(
                associateCarrierIpAddress associatePublicIpAddress connectionTrackingSpecification deleteOnTermination description
                deviceIndex enaQueueCount enaSrdSpecification networkCardIndex primaryIpv6 securityGroups
            )
        """,
        _DISK: "blockDeviceMappings ebsOptimized",
        _UPGRADES: "defaultVersion disableApiStop disableApiTermination instanceInitiatedShutdownBehavior maintenanceOptions updateDefaultVersion",
        _PROVIDER: "region",
        "how fast a machine is, not how large": "creditSpecification monitoring networkPerformanceOptions",
        "the value that it has without the field": """
            capacityReservationSpecification(capacityReservationPreference=open|none) cpuOptions(nestedVirtualization=disabled)
            enclaveOptions(enabled=false) hibernationOptions(configured=false) placement(tenancy=default)
        """,
    },
    unjudged="""
        capacityReservationSpecification(capacityReservationTarget) cpuOptions(amdSevSnp coreCount threadsPerCore) imageId
        instanceMarketOptions kernelId licenseSpecifications
        networkInterfaces(
            ipv4AddressCount ipv4Addresses ipv4PrefixCount ipv4Prefixes ipv6AddressCount ipv6Addresses ipv6PrefixCount ipv6Prefixes
            networkInterfaceId privateIpAddress subnetId
        )
        placement(affinity availabilityZone groupId groupName hostId hostResourceGroupArn partitionNumber spreadDomain) ramDiskId
        secondaryInterfaces
    """,
)

_CLUSTER: Final = Fields.of(
    judged="computeConfig(enabled nodePools) name",
    harmless={
        _NAMES: "tags",
        _ACCESS: """
            accessConfig computeConfig(nodeRoleArn) encryptionConfig roleArn remoteNetworkConfig
            vpcConfig kubernetesNetworkConfig(elasticLoadBalancing ipFamily serviceIpv4Cidr serviceIpv6Cidr)
        """,
        _UPGRADES: "forceUpdateVersion upgradePolicy version zonalShiftConfig",
        _PROVIDER: "deletionProtection region",
        "the control plane, and what it stores": """
            controlPlaneScalingConfig enabledClusterLogTypes kubeApiServerConfig kubeControllerManagerConfig storageConfig
        """,
        "the value that it has without the field": "bootstrapSelfManagedAddons",
        "how full machines are chosen for pods": "kubeSchedulerConfig",
        "add-ons, which pods of jobs do not need to be placed": "defaultAddonsToRemoves",
    },
    unjudged="outpostConfig",
)

TABLES: Final = {
    "aws:eks/cluster:Cluster": _CLUSTER,
    "aws:eks/nodeGroup:NodeGroup": _NODE_GROUP,
    "aws:ec2/launchTemplate:LaunchTemplate": _LAUNCH_TEMPLATE,
}
