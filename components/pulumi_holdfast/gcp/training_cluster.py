"""Composes a GCP stack: project checks, network, cluster, pools, services, training namespaces.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Then pools go, operators while they
have system nodes, and the network last, because nodes drain through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.paths import chart_source
from pulumi_holdfast.gcp.checkpoints import CheckpointBucket, CheckpointBucketArgs, CustomerKey
from pulumi_holdfast.gcp.cluster import cluster_of, kubernetes_version
from pulumi_holdfast.gcp.config.sections import Recovery
from pulumi_holdfast.gcp.control_plane.trusted_issuer import TrustedIssuer, TrustedIssuerArgs
from pulumi_holdfast.gcp.namespaces import make_namespaces
from pulumi_holdfast.gcp.pools import make_classes, make_pools, pool_summaries
from pulumi_holdfast.gcp.preflight import check_project
from pulumi_holdfast.gcp.stores import stores_of
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.kubernetes.admission.rules import gke_rules, spot_classes
from pulumi_holdfast.kubernetes.cluster_services import AdmissionPlan, ClusterServices
from pulumi_holdfast.kubernetes.other_clusters.accepted_clusters import all_users
from pulumi_holdfast.kubernetes.other_clusters.connections import other_clusters
from pulumi_holdfast.kubernetes.other_clusters.exported_tiers import OtherStacks
from pulumi_holdfast.kubernetes.outputs import export_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.gcp.preflight import Project


def compose(platform: GcpPlatform, stack: str) -> None:
    """Register every resource of a GCP stack.

    Raises ConfigError, before anything is registered, if the project cannot hold the stack.
    """
    project = check_project(platform, stack)
    labels.label_kubernetes_objects(labels.stack_labels(stack))
    labels.label_google_resources(stack)

    cluster = cluster_of(platform, project, stack)
    services = ClusterServices(
        cluster=cluster,
        kubernetes=cluster.kubernetes,
        charts=chart_source(platform.mirror.charts),
        images=platform.mirror.images,
    )

    pools = make_pools(platform, project, cluster)
    classes = make_classes(platform, pools, services.after())
    operators = services.operators()
    classless = (pool.as_pool() for pool in platform.pools if pool.compute_class is None)
    others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer)
    trusted = _trusted_issuers(platform, project, stack)
    users = {home: issuer.users for home, issuer in trusted.items()}
    prerequisites = services.admission_and_fallback(
        platform.fallback,
        AdmissionPlan(
            kubernetes_version=kubernetes_version(platform, project),
            pools=platform.scheduling_pools(),
            pod_rules=gke_rules(classless, platform.classes()),
            selections=spot_classes(platform.classes()),
        ),
        pools=[*pools, *classes],
        clusters=others.connections,
        accepted=all_users(users),
    )
    checkpoints = _checkpoints(platform, project)
    summaries = pool_summaries(platform)
    stores = stores_of(platform, checkpoints)
    identities = make_namespaces(
        platform,
        project,
        environment=naming.gke_environment(stack),
        stores=stores,
        pools=summaries,
        others=OtherStacks(references=others.references, region=platform.region),
        accepted=users,
        after=services.after(operators, *pools, *classes, *prerequisites, checkpoints),
    )
    export_outputs(
        platform.scheduling_pools(),
        platform.namespaces,
        facts=summaries,
        region=platform.region,
        cluster=cluster.cluster_name,
        kubeconfig=cluster.kubeconfig,
        issuer=cluster.workload_identity_issuer,
        checkpoints=checkpoints.bucket_name,
        checkpoint_uris={name: store.uri for name, store in stores.items()},
        identities=identities,
        token_exchanges={each.issuer: trusted[each.name].exchange for each in platform.accepts_from},
    )


def _trusted_issuers(platform: GcpPlatform, project: Project, stack: str) -> Mapping[str, TrustedIssuer]:
    """The trust in the clusters whose jobs the stack accepts, by their names."""
    return {
        each.name: TrustedIssuer(
            naming.trusted_issuer(each.name),
            TrustedIssuerArgs(
                project=platform.project,
                project_number=project.number,
                account_id=naming.home_account(stack, each.name),
                cluster=each.name,
                issuer=each.issuer,
            ),
        )
        for each in platform.accepts_from
    }


def _checkpoints(platform: GcpPlatform, project: Project) -> CheckpointBucket:
    section = platform.checkpoints
    key = section.kms_key
    return CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            project=platform.project,
            location=platform.region,
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=section.retain_days,
            protected=platform.protected,
            versioned=section.recovery is Recovery.VERSIONING,
            hierarchical=section.hierarchical,
            key=None if key is None else CustomerKey(name=key, storage_agent=project.storage_agent),
        ),
    )
