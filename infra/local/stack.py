"""The local stack, composed: a control plane on this machine, real operators, simulated nodes.

Read `depends_on` backwards for the order of destroy: training namespaces while KubeRay and JobSet still answer for
their finalizers, the fallback controller once no job is left to move, pools while Karpenter still ends their nodes, the operators while they still have system nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.admission.pod_admission import TrainingAdmission, TrainingAdmissionArgs
from holdfast.components.admission.rules import karpenter_rules
from holdfast.components.checkpoints.directory import (
    CLAIM,
    CheckpointBucket,
    CheckpointBucketArgs,
    CheckpointClaim,
    CheckpointClaimArgs,
)
from holdfast.components.cluster.local import LocalCluster, LocalClusterArgs
from holdfast.components.karpenter.kwok import KwokKarpenter, KwokKarpenterArgs
from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from holdfast.components.pools.karpenter import KWOK, KarpenterPool, KarpenterPoolArgs, node_labels
from holdfast.components.training_namespace import TrainingNamespace, TrainingNamespaceArgs
from holdfast.infra import labels, naming, versions
from holdfast.infra.fallback import FallbackPlan, make_fallback
from holdfast.infra.paths import chart_source, in_project
from holdfast.scheduling.machines import LOCAL_ZONES, machine_catalogue
from holdfast.scheduling.pools import PoolSummary, summarize_pool, weights
from holdfast.scheduling.reachability.machine_capacity import Provisioner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.infra.local.config.stack import LocalPlatform


def compose(platform: LocalPlatform, stack: str) -> None:
    """Make everything of a local stack."""
    labels.label_everything(labels.labels(stack))
    charts = chart_source(platform.mirror.charts)
    pools = [pool.as_pool() for pool in platform.pools]

    cluster = LocalCluster(
        "cluster",
        LocalClusterArgs(
            kubeconfig=in_project(platform.cluster.kubeconfig), system_nodes=platform.cluster.system_nodes
        ),
    )

    def after(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(providers=[cluster.kubernetes], depends_on=[cluster, *resources])

    operators = Operators(
        "operators",
        OperatorsArgs(
            charts=charts,
            jobset_version=versions.JOBSET,
            kuberay_version=versions.KUBERAY,
            replicas=1,
        ),
        opts=after(),
    )
    karpenter = KwokKarpenter(
        "karpenter",
        KwokKarpenterArgs(
            charts=charts,
            version=versions.KARPENTER,
            chart_version=versions.KARPENTER_KWOK_CHART,
            machines=tuple(machine_catalogue("local").values()),
            zones=LOCAL_ZONES,
        ),
        opts=after(),
    )
    weight = weights(pools)
    nodes = [
        KarpenterPool(
            naming.pool(pool.name),
            KarpenterPoolArgs(
                pool=pool.as_pool(), machines=pool.machines(), node_class=KWOK, weight=weight[pool.name]
            ),
            opts=after(karpenter),
        )
        for pool in platform.pools
    ]

    rules = karpenter_rules(pools)
    admission = TrainingAdmission(
        "admission",
        TrainingAdmissionArgs(kubernetes_version=platform.cluster.version, rules=rules),
        opts=after(),
    )
    fallback = make_fallback(
        platform.fallback,
        FallbackPlan(rules=rules, images=None, replicas=1, claims=(CLAIM,)),
        after=after,
        pools=nodes,
    )
    checkpoints = CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            directory=in_project(platform.checkpoints.directory),
            namespaces=[namespace.name for namespace in platform.namespaces],
        ),
        opts=after(),
    )
    facts = _facts(platform)
    for namespace in platform.namespaces:
        training = TrainingNamespace(
            naming.training_namespace(namespace.name),
            TrainingNamespaceArgs(
                namespace=namespace.name,
                ladder=namespace.as_ladder(),
                checkpoint_uri=checkpoints.uri(namespace.name),
                pools=facts,
                shapes=namespace.as_shapes(),
                quota=namespace.as_quota(facts),
            ),
            opts=after(operators, *nodes, admission, *fallback, checkpoints),
        )
        CheckpointClaim(
            naming.checkpoint_claim(namespace.name),
            CheckpointClaimArgs(namespace=namespace.name),
            # It goes with its namespace, not before: a claim that pods still mount cannot be deleted.
            opts=pulumi.ResourceOptions.merge(after(training), pulumi.ResourceOptions(deleted_with=training)),
        )


def _facts(platform: LocalPlatform) -> Mapping[str, PoolSummary]:
    pools = [(pool.as_pool(), pool.machines()) for pool in platform.pools]
    return {
        pool.name: summarize_pool(
            pool, machines, pool.taints, node_labels(pool, efa=False), provisioner=Provisioner.LOCAL
        )
        for pool, machines in pools
    }
