"""The fields of the pod template, of JobSet and RayJob, and of what a namespace has: its labels, ladder, quotas and limits."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.program.fields.table import Fields

_SAME: Final = "the same on every tier: what containers run, by which user, and what they find there"
_NAMES: Final = "names and notes"
_RUNS: Final = "how a job that runs goes on and ends"
_TYPE: Final = "the type"
#: What the API server decides about pods is one line of each report, whatever the field.
_ADMITTED: Final = "what the API server may refuse: that it admits pods is said to be taken for granted"

#: What makes other programs add containers, with requests of their own, to pods.
_INJECTS: Final = (
    "sidecar.istio.io/* linkerd.io/inject consul.hashicorp.com/connect-inject kuma.io/sidecar-injection "
    "dapr.io/enabled vault.hashicorp.com/agent-inject instrumentation.opentelemetry.io/* gke-gcsfuse/volumes"
)
_METADATA: Final = f"annotations({_INJECTS}) labels({_INJECTS})"
_OBJECT: Final = "apiVersion kind metadata(name namespace generateName finalizers ownerReferences)"

CONTAINER: Final = Fields.of(
    judged="""
        image ports resources(limits requests) restartPolicy
    """,
    harmless={
        _NAMES: "name",
        _SAME: """
            args command env envFrom imagePullPolicy lifecycle livenessProbe readinessProbe startupProbe stdin stdinOnce
            terminationMessagePath terminationMessagePolicy tty workingDir volumeDevices volumeMounts
            securityContext(appArmorProfile(type=RuntimeDefault|Unconfined) readOnlyRootFilesystem runAsGroup runAsUser seLinuxOptions)
        """,
        _ADMITTED: """
            securityContext(
                allowPrivilegeEscalation capabilities privileged runAsNonRoot seccompProfile(type=RuntimeDefault|Unconfined)
            )
        """,
        _RUNS: "resizePolicy restartPolicyRules",
    },
    unjudged="resources(claims) securityContext(appArmorProfile(localhostProfile) procMount seccompProfile(localhostProfile) windowsOptions)",
)

_TERM: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_WISH: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_SAFE_SYSCTLS: Final = "kernel.shm_rmid_forced|net.ipv4.ip_local_port_range|net.ipv4.tcp_syncookies|net.ipv4.ping_group_range|net.ipv4.ip_unprivileged_port_start|net.ipv4.ip_local_reserved_ports|net.ipv4.tcp_keepalive_*|net.ipv4.tcp_fin_timeout|net.ipv4.tcp_rmem|net.ipv4.tcp_wmem"
#: Drivers of volumes that a node of any zone mounts.
_DRIVERS: Final = "gcsfuse.csi.storage.gke.io|secrets-store.csi.k8s.io|secrets-store-gke.csi.k8s.io|file.csi.azure.com|blob.csi.azure.com|csi.cert-manager.io|csi.spiffe.io|nfs.csi.k8s.io"

POD: Final = Fields.of(
    judged=f"""
        metadata(labels finalizers)
        spec(
            containers@container initContainers@container
            affinity(
                nodeAffinity({_TERM})
                podAffinity({_TERM}(labelSelector topologyKey)) podAntiAffinity({_TERM}(labelSelector topologyKey))
            )
            hostNetwork imagePullSecrets nodeSelector overhead priorityClassName resources(limits requests) serviceAccount
            serviceAccountName terminationGracePeriodSeconds tolerations topologySpreadConstraints
            volumes(configMap(name) persistentVolumeClaim secret(secretName))
        )
    """,
    harmless={
        _NAMES: "metadata(annotations name namespace generateName ownerReferences) spec(volumes(name))",
        "a wish, which the scheduler drops where no node meets it": f"""
            spec(affinity(nodeAffinity({_WISH}) podAffinity({_WISH}) podAntiAffinity({_WISH})))
        """,
        _SAME: f"""
            spec(
                activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostUsers hostname hostnameOverride
                preemptionPolicy restartPolicy setHostnameAsFQDN shareProcessNamespace subdomain
                securityContext(
                    appArmorProfile(type=RuntimeDefault|Unconfined) fsGroup fsGroupChangePolicy runAsGroup runAsUser
                    seLinuxChangePolicy seLinuxOptions supplementalGroups supplementalGroupsPolicy
                    sysctls(name={_SAFE_SYSCTLS} value)
                )
                volumes(
                    azureFile configMap downwardAPI emptyDir image nfs projected secret
                    csi(driver={_DRIVERS} fsType nodePublishSecretRef readOnly volumeAttributes)
                    hostPath(path type=DirectoryOrCreate|FileOrCreate)
                )
            )
        """,
        _ADMITTED: "spec(hostIPC hostPID securityContext(runAsNonRoot seccompProfile(type=RuntimeDefault|Unconfined)))",
        "the value that it has without the field": "spec(os(name=linux) schedulerName=default-scheduler)",
    },
    unjudged=f"""
        metadata(annotations({_INJECTS}) labels({_INJECTS}))
        spec(
            affinity(
                podAffinity({_TERM}(matchLabelKeys mismatchLabelKeys namespaceSelector namespaces))
                podAntiAffinity({_TERM}(matchLabelKeys mismatchLabelKeys namespaceSelector namespaces))
            )
            ephemeralContainers nodeName priority readinessGates resourceClaims resources(claims) runtimeClassName schedulingGates
            schedulingGroup workloadRef
            securityContext(appArmorProfile(localhostProfile) seccompProfile(localhostProfile) windowsOptions)
            volumes(
                awsElasticBlockStore azureDisk cephfs cinder ephemeral fc flexVolume flocker gcePersistentDisk gitRepo glusterfs iscsi
                photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume
            )
        )
    """,
    tables={"container": CONTAINER},
)

_JOB_ENDS: Final = """
    backoffLimit backoffLimitPerIndex completionMode manualSelector maxFailedIndexes podFailurePolicy podReplacementPolicy selector
    successPolicy ttlSecondsAfterFinished
"""
#: Ends a job after some time, of which the wait for capacity is a part.
_JOB_UNJUDGED: Final = "activeDeadlineSeconds"


_JOB_SET: Final = Fields.of(
    judged="""
        metadata(labels annotations(alpha.jobset.sigs.k8s.io/exclusive-topology))
        spec(
            managedBy
            replicatedJobs(
                name replicas dependsOn(name status)
                template(
                    metadata(annotations(alpha.jobset.sigs.k8s.io/exclusive-topology))
                    spec(completions parallelism template@pod)
                )
            )
        )
    """,
    harmless={
        _TYPE: _OBJECT,
        _NAMES: """
            metadata(annotations)
            spec(
                network coordinator
                replicatedJobs(groupName template(metadata(annotations labels name namespace finalizers)))
            )
        """,
        "in which order its pods start; all of them are counted at once": "spec(startupPolicy)",
        _RUNS: f"""
            spec(
                failurePolicy(maxRestarts restartStrategy rules) successPolicy suspend=false ttlSecondsAfterFinished
                replicatedJobs(template(spec({_JOB_ENDS} suspend)))
            )
        """,
    },
    unjudged=f"""
        metadata(annotations(alpha.jobset.sigs.k8s.io/node-selector))
        spec(volumeClaimPolicies replicatedJobs(template(spec(managedBy {_JOB_UNJUDGED}))))
    """,
    tables={"pod": POD},
)

_RAY_JOB: Final = Fields.of(
    judged="""
        metadata(labels annotations(holdfast.dev/*))
        spec(
            backoffLimit clusterSelector deletionStrategy(deletionRules onFailure(policy) onSuccess(policy)) managedBy submissionMode
            rayClusterSpec(
                enableInTreeAutoscaling headGroupSpec(template@pod)
                workerGroupSpecs(groupName labels maxReplicas minReplicas numOfHosts replicas suspend template@pod)
            )
        )
    """,
    harmless={
        _TYPE: _OBJECT,
        _NAMES: "metadata(annotations) spec(jobId metadata rayClusterSpec(headServiceAnnotations rayVersion))",
        _SAME: """
            spec(
                entrypoint runtimeEnvYAML submitterConfig
                rayClusterSpec(
                    authOptions autoscalerOptions gcsFaultToleranceOptions
                    headGroupSpec(enableIngress headService labels rayStartParams resources serviceType)
                    workerGroupSpecs(idleTimeoutSeconds rayStartParams resources scaleStrategy)
                )
            )
        """,
        _RUNS: """
            spec(
                shutdownAfterJobFinishes suspend=false ttlSecondsAfterFinished
                rayClusterSpec(suspend=false upgradeStrategy)
            )
        """,
    },
    unjudged="""
        spec(
            activeDeadlineSeconds entrypointNumCpus entrypointNumGpus entrypointResources preRunningDeadlineSeconds
            rayClusterSpec(autoscalerOptions(resources) managedBy) submitterPodTemplate
        )
    """,
    tables={"pod": POD},
)

_NAMESPACE: Final = Fields.of(
    judged="metadata(name labels(holdfast.dev/training) annotations(holdfast.dev/*))",
    harmless={
        _TYPE: "apiVersion kind metadata(generateName finalizers ownerReferences) spec",
        _NAMES: "metadata(annotations labels labels(istio-injection=disabled))",
    },
    unjudged="""
        metadata(
            annotations(
                linkerd.io/inject consul.hashicorp.com/connect-inject kuma.io/sidecar-injection
                scheduler.alpha.kubernetes.io/node-selector scheduler.alpha.kubernetes.io/defaultTolerations
                scheduler.alpha.kubernetes.io/tolerationsWhitelist
            )
            labels(istio.io/rev kuma.io/sidecar-injection)
        )
    """,
)

_QUOTA: Final = Fields.of(
    judged="metadata(name namespace) spec(hard(pods count/pods cpu memory requests.*))",
    harmless={
        _TYPE: "apiVersion kind metadata(generateName finalizers ownerReferences annotations labels)",
        _ADMITTED: "spec(hard(*))",
    },
    unjudged="spec(scopeSelector scopes)",
)

_LIMIT_RANGE: Final = Fields.of(
    judged="metadata(name namespace) spec(limits(default defaultRequest max min type))",
    harmless={
        _TYPE: "apiVersion kind metadata(generateName finalizers ownerReferences annotations labels)",
        _ADMITTED: "spec(limits(maxLimitRequestRatio))",
    },
)


#: Of Holdfast; its definition rejects values without an effect.
_FALLBACK_POLICY: Final = Fields.of(
    judged="""
        metadata(name namespace)
        spec(
            shapes(accelerator architectures cpu devices efa gpus memory name pods samePlacement selector tolerations)
            tiers(cluster exported facts maxFailures maxPrice pool price procurementTimeout) giveUpAfter
        )
    """,
    harmless={
        _TYPE: "apiVersion kind metadata(generateName finalizers ownerReferences annotations labels)",
        "what the controller does on a tier": """
            spec(
                applicationFailures deadline failureWindow failures holdTimeout outageWindow restartCost returnAfter
                startTimeout
            )
        """,
    },
)

TABLES: Final = {
    "kubernetes:holdfast.dev:FallbackPolicy": _FALLBACK_POLICY,
    "kubernetes:jobset.x-k8s.io:JobSet": _JOB_SET,
    "kubernetes:ray.io:RayJob": _RAY_JOB,
    "kubernetes:core:Namespace": _NAMESPACE,
    "kubernetes:core:ResourceQuota": _QUOTA,
    "kubernetes:core:LimitRange": _LIMIT_RANGE,
}
