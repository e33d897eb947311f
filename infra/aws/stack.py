"""The AWS stack, composed: from an account to a cluster that trains on spot.

Read `depends_on` backwards for the order of destroy: training namespaces while KubeRay and JobSet still answer for
their finalizers, the fallback controller once no job is left to move, pools while Karpenter still ends their nodes and the operators answer for what still runs there,
operators and Karpenter while they have system nodes and identities, and the network last, because nodes drain through
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.admission.pod_admission import TrainingAdmission, TrainingAdmissionArgs
from holdfast.components.admission.rules import karpenter_rules
from holdfast.components.checkpoints.s3 import CheckpointBucket, CheckpointBucketArgs
from holdfast.components.cluster.eks.access import NodeAccess, NodeAccessArgs
from holdfast.components.karpenter.eks.component import EksKarpenter, EksKarpenterArgs
from holdfast.components.operators.device_plugins import DevicePlugins, DevicePluginsArgs
from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from holdfast.components.spot_service_linked_role import SpotServiceLinkedRole, SpotServiceLinkedRoleArgs
from holdfast.infra import labels, naming, versions
from holdfast.infra.aws.cluster import cluster_of
from holdfast.infra.aws.namespaces import make_namespaces
from holdfast.infra.aws.network import network_of
from holdfast.infra.aws.pools import PoolDependencies, make_pools
from holdfast.infra.aws.preflight import check_account
from holdfast.infra.fallback import FallbackPlan, make_fallback
from holdfast.infra.paths import chart_source

if TYPE_CHECKING:
    from holdfast.infra.aws.config.stack import AwsPlatform


def compose(platform: AwsPlatform, stack: str, profile: str | None) -> None:
    """Make everything of an AWS stack.

    `profile` is the AWS CLI's profile that the cluster's tokens are asked as. Raises ConfigError, before anything is
    made, where the account cannot hold the stack.
    """
    account = check_account(platform)
    marks = labels.labels(stack)
    labels.label_everything(marks)
    labels.tag_everything(marks)
    name = naming.cluster(stack)
    charts = None if platform.mirror.charts is None else chart_source(platform.mirror.charts)

    network = network_of(platform, account, name)
    cluster = cluster_of(platform, account, network, name, tags=marks, profile=profile)

    def after(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(providers=[cluster.kubernetes], depends_on=[cluster, *resources])

    karpenter = EksKarpenter(
        "karpenter",
        EksKarpenterArgs(
            cluster_name=name,
            account=account.id,
            region=platform.region,
            partition=platform.partition,
            charts=charts,
            images=platform.mirror.images,
            version=versions.KARPENTER,
            image_digest=versions.KARPENTER_IMAGE_DIGEST,
            isolated=platform.network.isolated,
        ),
        opts=after(),
    )
    node_access = NodeAccess(
        "node-access", NodeAccessArgs(cluster_name=name, role_arn=karpenter.node_role_arn), opts=after()
    )
    spot_role = SpotServiceLinkedRole("spot-role", SpotServiceLinkedRoleArgs(existing_arn=account.spot_role))
    device_plugins = DevicePlugins(
        "device-plugins",
        DevicePluginsArgs(
            charts=charts,
            images=platform.mirror.images,
            nvidia_version=versions.NVIDIA_DEVICE_PLUGIN,
            efa_version=versions.EFA_DEVICE_PLUGIN if platform.has_efa else None,
            region=platform.region,
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
        platform,
        PoolDependencies(
            cluster_name=name,
            security_group_id=cluster.cluster_security_group_id,
            network=network,
            karpenter=karpenter,
            tags=marks,
        ),
        after=after(karpenter, node_access, spot_role, device_plugins, operators),
    )
    rules = karpenter_rules(platform.scheduling_pools())
    admission = TrainingAdmission(
        "admission",
        TrainingAdmissionArgs(kubernetes_version=platform.cluster.version, rules=rules),
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
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=platform.checkpoints.retain_days,
            kms=platform.checkpoints.kms,
            protected=platform.protected,
        ),
    )
    make_namespaces(
        platform,
        cluster_name=name,
        checkpoints=checkpoints,
        after=after(operators, *pools, admission, *fallback, checkpoints),
    )
    pulumi.export("cluster", name)
    pulumi.export("checkpoints", checkpoints.bucket_name)
