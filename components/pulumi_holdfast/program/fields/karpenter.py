"""The fields of Karpenter's NodePools and node classes."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.program.fields.table import Fields

_OBJECT: Final = "apiVersion kind metadata"
_TYPE: Final = "the type and the name"
_ENDS: Final = "which nodes Karpenter removes, and when; another rule judges whether it interrupts jobs"
_ACCESS: Final = "addresses, firewalls, identities and keys of nodes"
_DISK: Final = "disks: pods that request room on them are not judged"
_NOTES: Final = "tags, logs and measurements"

_NODE_POOL: Final = Fields.of(
    judged="""
        spec(
            limits(cpu memory nodes nvidia.com/gpu) replicas
            template(
                metadata(labels)
                spec(expireAfter nodeClassRef requirements taints(effect key value))
            )
        )
    """,
    harmless={
        _TYPE: f"{_OBJECT} spec(template(metadata(annotations) spec(taints(timeAdded))))",
        "Karpenter's other taints, which whatever set them removes before pods are scheduled": "spec(template(spec(startupTaints)))",
        "which NodePool Karpenter prefers; each that takes a pod is counted": "spec(weight)",
        _ENDS: "spec(disruption template(spec(terminationGracePeriod)))",
    },
)

#: What chooses the image of a machine: Karpenter's own, for the architecture and the GPUs of its type.
_IMAGES: Final = "al2@*|al2023@*|bottlerocket@*"

_EC2_NODE_CLASS: Final = Fields.of(
    judged="""
        spec(
            kubelet(kubeReserved(cpu memory) maxPods systemReserved(cpu memory)) userData
        )
    """,
    harmless={
        _TYPE: _OBJECT,
        "Linux, and an image that Karpenter chooses": f"""
            spec(amiFamily=AL2|AL2023|Bottlerocket amiSelectorTerms(alias={_IMAGES}))
        """,
        _ACCESS: """
            spec(
                associatePublicIPAddress connectionTracking instanceProfile role securityGroupSelectorTerms subnetSelectorTerms
                metadataOptions(httpEndpoint=enabled httpProtocolIPv6 httpPutResponseHopLimit httpTokens)
            )
        """,
        _DISK: "spec(blockDeviceMappings instanceStorePolicy kubelet(kubeReserved(ephemeral-storage) systemReserved(ephemeral-storage)))",
        "reserved machines, which no tier is taken to end on": "spec(capacityReservationSelectorTerms)",
        _NOTES: "spec(detailedMonitoring tags)",
        "how pods that run are served": """
            spec(
                kubelet(
                    clusterDNS cpuCFSQuota evictionMaxPodGracePeriod imageGCHighThresholdPercent imageGCLowThresholdPercent
                    kubeReserved(pid) systemReserved(pid)
                )
            )
        """,
    },
    unjudged="""
        spec(
            amiSelectorTerms(id name owner ssmParameter tags) context cpuOptions ipPrefixCount
            kubelet(evictionHard evictionSoft evictionSoftGracePeriod podsPerCore) networkInterfaces placementGroupSelector
        )
    """,
)

_AUTO_NODE_CLASS: Final = Fields.of(
    harmless={
        _TYPE: _OBJECT,
        _ACCESS: """
            spec(
                subnetSelectorTerms advancedNetworking certificateBundles instanceProfile networkPolicy=DefaultAllow networkPolicyEventLogs
                podSecurityGroupSelectorTerms role securityGroupSelectorTerms snatPolicy
                advancedSecurity(fips kernelLockdown)
            )
        """,
        _DISK: "spec(ephemeralStorage)",
        "reserved machines, which no tier is taken to end on": "spec(capacityReservationSelectorTerms)",
        _NOTES: "spec(tags)",
    },
    unjudged="spec(podSubnetSelectorTerms)",
)

_AKS_NODE_CLASS: Final = Fields.of(
    harmless={
        _TYPE: _OBJECT,
        "Linux, and an image that AKS chooses": "spec(imageFamily fipsMode=Disabled gpu(mode=Driver))",
        _ACCESS: "spec(localDNS security(encryptionAtHost=false))",
        _DISK: "spec(artifactStreaming osDiskSizeGB)",
        _NOTES: "spec(tags)",
        "how pods that run are served": """
            spec(
                kubelet(
                    containerLogMaxFiles containerLogMaxSize cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy=none
                    imageGCHighThresholdPercent imageGCLowThresholdPercent podPidsLimit topologyManagerPolicy=none|best-effort
                    allowedUnsafeSysctls
                )
                linuxOSConfig(sysctls transparentHugePageDefrag transparentHugePageEnabled)
            )
        """,
    },
    unjudged="""
        spec(kubelet(failSwapOn) linuxOSConfig(swapFileSize) maxPods vnetSubnetID)
    """,
)

_KWOK_NODE_CLASS: Final = Fields.of(
    harmless={_TYPE: _OBJECT, "how long a simulated machine takes to start": "spec(nodeRegistrationDelay)"}
)

TABLES: Final = {
    "kubernetes:karpenter.sh:NodePool": _NODE_POOL,
    "kubernetes:karpenter.k8s.aws:EC2NodeClass": _EC2_NODE_CLASS,
    "kubernetes:eks.amazonaws.com:NodeClass": _AUTO_NODE_CLASS,
    "kubernetes:karpenter.azure.com:AKSNodeClass": _AKS_NODE_CLASS,
    "kubernetes:karpenter.kwok.sh:KWOKNodeClass": _KWOK_NODE_CLASS,
}
