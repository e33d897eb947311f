"""A training cluster on this machine: a control plane that runs already, real operators, simulated nodes.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Pools go while Karpenter still deletes
their nodes, and operators while they have system nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.config.loader import chart_source, in_project
from pulumi_holdfast.kubernetes.admission.rules import karpenter_rules
from pulumi_holdfast.kubernetes.cluster_services import (
    AdmissionPlan,
    ClusterServices,
    check_fallback,
    make_training_namespace,
)
from pulumi_holdfast.kubernetes.karpenter_pool import KWOK, KarpenterPool, KarpenterPoolArgs, node_labels
from pulumi_holdfast.kubernetes.labels import kubernetes_labels, stack_labels, with_transformations
from pulumi_holdfast.kubernetes.other_clusters import OtherStacks, other_clusters
from pulumi_holdfast.ladder.machines import LOCAL_ZONES, machine_catalogue
from pulumi_holdfast.ladder.pools import weights
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.local.checkpoints import (
    CLAIM,
    CheckpointBucket,
    CheckpointBucketArgs,
    CheckpointClaim,
    CheckpointClaimArgs,
)
from pulumi_holdfast.local.control_plane import LocalCluster, LocalClusterArgs
from pulumi_holdfast.local.karpenter import KwokKarpenter, KwokKarpenterArgs, KwokReservation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.local.config.sections import LocalPlatform


@dataclass(frozen=True, kw_only=True)
class TrainingClusterArgs:
    """`platform` is the parsed configuration, `environment` the name with which every object is labeled."""

    platform: LocalPlatform
    environment: str


class TrainingCluster(pulumi.ComponentResource):
    """A training cluster on this machine (`holdfast:local:TrainingCluster`).

    `kubernetes` is the provider of its API server. Raises ConfigError, before anything is registered, if jobs of the configuration
    cannot fall back.
    """

    kubernetes: pulumi.ProviderResource

    def __init__(
        self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        platform, summaries = args.platform, pool_summaries(args.platform)
        check_fallback(platform, summaries, cloud=platform.cloud)
        labels = kubernetes_labels(stack_labels(args.environment))
        super().__init__("holdfast:local:TrainingCluster", name, None, with_transformations(opts, labels))
        charts = chart_source(platform.mirror.charts)
        pools = [pool.as_pool() for pool in platform.pools]
        inside = pulumi.ResourceOptions(parent=self)

        cluster = LocalCluster(
            naming.part(name, "cluster"),
            LocalClusterArgs(
                kubeconfig=in_project(platform.cluster.kubeconfig), system_nodes=platform.cluster.system_nodes
            ),
            opts=inside,
        )
        self.kubernetes = cluster.kubernetes
        services = ClusterServices(
            parent=self,
            cluster=cluster,
            kubernetes=cluster.kubernetes,
            charts=charts,
            replicas=1,
            scrapers=platform.fallback.monitoring.scrapers,
        )

        operators = services.operators(platform.namespaces)
        karpenter = KwokKarpenter(
            naming.part(name, "karpenter"),
            KwokKarpenterArgs(
                charts=charts,
                version=versions.KARPENTER,
                chart_version=versions.KARPENTER_KWOK_CHART,
                machines=tuple(machine_catalogue("local").values()),
                zones=LOCAL_ZONES,
                reservations=[
                    KwokReservation(id=pool.name, types=frozenset(pool.instance_types), count=pool.max_nodes)
                    for pool in platform.pools
                    if pool.reservation is not None
                ],
                scrapers=services.scrapers,
            ),
            opts=services.after(),
        )
        weight = weights(pools)
        node_pools = [
            KarpenterPool(
                naming.pool(name, pool.name),
                KarpenterPoolArgs(
                    pool=pool.as_pool(),
                    machines=pool.machines(),
                    node_class=KWOK,
                    weight=weight[pool.name],
                    reservation=None if pool.reservation is None else pool.name,
                ),
                opts=services.after(karpenter),
            )
            for pool in platform.pools
        ]
        others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer, parent=self)
        prerequisites = services.admission_and_fallback(
            platform.fallback,
            AdmissionPlan(
                kubernetes_version=platform.cluster.version,
                pools=pools,
                pod_rules=karpenter_rules(pools),
                claims=[CLAIM],
            ),
            pools=node_pools,
            clusters=others.connections,
        )
        checkpoints = CheckpointBucket(
            naming.part(name, "checkpoints"),
            CheckpointBucketArgs(
                directory=in_project(platform.checkpoints.directory),
                namespaces=[namespace.name for namespace in platform.namespaces],
            ),
            opts=services.after(),
        )
        for namespace in platform.namespaces:
            training = make_training_namespace(
                namespace,
                cluster=name,
                checkpoint_uri=checkpoints.uri(namespace.name),
                pools=summaries,
                others=OtherStacks(references=others.references, region=""),
                opts=services.after(operators, *node_pools, *prerequisites, checkpoints),
            )
            CheckpointClaim(
                naming.checkpoint_claim(name, namespace.name),
                CheckpointClaimArgs(namespace=namespace.name),
                # The claim is deleted with its namespace: a claim that pods still mount cannot be deleted earlier.
                opts=pulumi.ResourceOptions.merge(
                    services.after(training), pulumi.ResourceOptions(deleted_with=training)
                ),
            )
        self.register_outputs({})


def pool_summaries(platform: LocalPlatform) -> Mapping[str, PoolSummary]:
    """The summary of each pool for the fallback controller, by name."""
    pools = [(pool.as_pool(), pool.machines()) for pool in platform.pools]
    return {
        pool.name: summarize_pool(
            pool, machines, pool.taints, node_labels(pool, efa=False), provisioner=Provisioner.LOCAL
        )
        for pool, machines in pools
    }
