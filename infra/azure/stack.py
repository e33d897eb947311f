"""The Azure stack, composed: from a subscription to a cluster that trains on spot.

Read `depends_on` backwards for the order of destroy: training namespaces while KubeRay and JobSet still answer for
their finalizers, the fallback controller once no job is left to move, then pools while AKS still ends their nodes, operators while they have system nodes, the grants by
which Pulumi gets in after the last object, and the network last, because nodes drain through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.admission.pod_admission import TrainingAdmission, TrainingAdmissionArgs
from holdfast.components.admission.rules import aks_rules, workload_identity_rule
from holdfast.components.azure_resource_group import StackResourceGroup, StackResourceGroupArgs
from holdfast.components.checkpoints.blob import CheckpointBucket, CheckpointBucketArgs
from holdfast.components.operators.device_plugins import DevicePlugins, DevicePluginsArgs
from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from holdfast.components.training_namespace import SERVICE_ACCOUNT
from holdfast.infra import labels, naming, versions
from holdfast.infra.azure.cluster import cluster_of
from holdfast.infra.azure.namespaces import make_namespaces
from holdfast.infra.azure.network import network_of
from holdfast.infra.azure.pools import PoolDependencies, make_pools
from holdfast.infra.azure.preflight import check_subscription
from holdfast.infra.fallback import FallbackPlan, make_fallback
from holdfast.infra.paths import chart_source

if TYPE_CHECKING:
    from holdfast.infra.azure.config.stack import AzurePlatform


def compose(platform: AzurePlatform, stack: str) -> None:
    """Make everything of an Azure stack.

    Raises ConfigError, before anything is made, where the subscription cannot hold the stack.
    """
    subscription = check_subscription(platform)
    labels.label_everything(labels.labels(stack))
    marks = labels.azure_tags(stack)
    labels.tag_azure_resources(marks)
    name = naming.aks_cluster_name(stack)
    charts = None if platform.mirror.charts is None else chart_source(platform.mirror.charts)

    group = StackResourceGroup(
        "group",
        StackResourceGroupArgs(group_name=name, location=platform.location, protected=platform.protected),
    )
    network = network_of(platform, group.group_name, name)
    cluster = cluster_of(platform, subscription, network, group.group_name, name)

    def after(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(providers=[cluster.kubernetes], depends_on=[cluster, *resources])

    device_plugins = DevicePlugins(
        "device-plugins",
        DevicePluginsArgs(
            charts=charts,
            images=platform.mirror.images,
            nvidia_version=versions.NVIDIA_DEVICE_PLUGIN,
            efa_version=None,
            region=platform.location,
        ),
        opts=after(),
    )
    operators = Operators(
        "operators",
        OperatorsArgs(
            charts=charts,
            images=platform.mirror.images,
            jobset_version=versions.JOBSET,
            kuberay_version=versions.KUBERAY,
            replicas=2,
        ),
        opts=after(),
    )
    pools = make_pools(
        platform, PoolDependencies(cluster=cluster, tags=marks), after=after(device_plugins, operators)
    )
    rules = aks_rules(platform.scheduling_pools())
    admission = TrainingAdmission(
        "admission",
        TrainingAdmissionArgs(
            kubernetes_version=platform.cluster.version,
            rules=(*rules, workload_identity_rule(SERVICE_ACCOUNT)),
        ),
        opts=after(),
    )
    fallback = make_fallback(
        platform.fallback,
        FallbackPlan(rules=rules, images=platform.mirror.images, replicas=2),
        after=after,
        pools=pools,
    )
    checkpoints = CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            location=platform.location,
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=platform.checkpoints.retain_days,
            protected=platform.protected,
            redundancy=platform.checkpoints.redundancy,
        ),
    )
    make_namespaces(
        platform,
        subscription,
        cluster=cluster,
        checkpoints=checkpoints,
        after=after(operators, *pools, admission, *fallback, checkpoints),
    )
    pulumi.export("cluster", name)
    pulumi.export("checkpoints", checkpoints.account_name)
