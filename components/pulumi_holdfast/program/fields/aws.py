"""The fields of EKS: clusters and node groups."""

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
        amiType capacityType clusterName instanceTypes labels nodeGroupName scalingConfig(maxSize) taints
    """,
    harmless={
        _NAMES: "nodeGroupNamePrefix tags",
        _ACCESS: "nodeRoleArn remoteAccess",
        _DISK: "diskSize",
        _UPGRADES: "forceUpdateVersion nodeRepairConfig releaseVersion updateConfig version",
        _PROVIDER: "region",
        "how many machines it has at least": "scalingConfig(desiredSize minSize)",
        "its zones, which are never taken for known": "subnetIds",
    },
    unjudged="launchTemplate warmPoolConfig",
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

TABLES: Final = {"aws:eks/cluster:Cluster": _CLUSTER, "aws:eks/nodeGroup:NodeGroup": _NODE_GROUP}
