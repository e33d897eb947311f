"""The GCP stack, composed: from a project to a cluster that trains on spot.

Read `depends_on` backwards for the order of destroy: training namespaces while KubeRay and JobSet still answer for
their finalizers, the fallback controller once no job is left to move, then pools, operators while they have system nodes, and the network last, because nodes drain
through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.admission.pod_admission import TrainingAdmission, TrainingAdmissionArgs
from holdfast.components.admission.rules import gke_rules, spot_classes
from holdfast.components.checkpoints.gcs import CheckpointBucket, CheckpointBucketArgs, CustomerKey
from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from holdfast.infra import labels, naming, versions
from holdfast.infra.fallback import FallbackPlan, make_fallback
from holdfast.infra.gcp.cluster import cluster_of
from holdfast.infra.gcp.config.stack import Recovery
from holdfast.infra.gcp.namespaces import make_namespaces
from holdfast.infra.gcp.network import network_of
from holdfast.infra.gcp.pools import make_classes, make_pools
from holdfast.infra.gcp.preflight import check_project
from holdfast.infra.paths import chart_source

if TYPE_CHECKING:
    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.infra.gcp.preflight import Project


def compose(platform: GcpPlatform, stack: str) -> None:
    """Make everything of a GCP stack.

    Raises ConfigError, before anything is made, where the project cannot hold the stack.
    """
    project = check_project(platform)
    marks = labels.labels(stack)
    labels.label_everything(marks)
    labels.label_google_resources(stack)
    name = naming.gke_cluster_name(stack)
    charts = None if platform.mirror.charts is None else chart_source(platform.mirror.charts)

    network = network_of(platform, name)
    cluster = cluster_of(platform, project, network, name)

    def after(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(providers=[cluster.kubernetes], depends_on=[cluster, *resources])

    pools = make_pools(platform, project, cluster)
    classes = make_classes(platform, pools, after())
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
    rules = gke_rules(
        (pool.as_pool() for pool in platform.pools if pool.compute_class is None), platform.classes()
    )
    admission = TrainingAdmission(
        "admission",
        TrainingAdmissionArgs(kubernetes_version=platform.cluster.version, rules=rules),
        opts=after(),
    )
    fallback = make_fallback(
        platform.fallback,
        FallbackPlan(
            rules=rules,
            images=platform.mirror.images,
            replicas=2,
            selections=spot_classes(platform.classes()),
        ),
        after=after,
        pools=[*pools, *classes],
    )
    checkpoints = _checkpoints(platform, project)
    make_namespaces(
        platform,
        project,
        environment=naming.gke_environment(stack),
        checkpoints=checkpoints,
        after=after(operators, *pools, *classes, admission, *fallback, checkpoints),
    )
    pulumi.export("cluster", name)
    pulumi.export("checkpoints", checkpoints.bucket_name)


def _checkpoints(platform: GcpPlatform, project: Project) -> CheckpointBucket:
    asked = platform.checkpoints
    key = asked.kms_key
    return CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            project=platform.project,
            location=platform.region,
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=asked.retain_days,
            protected=platform.protected,
            versioned=asked.way_back is Recovery.VERSIONING,
            hierarchical=asked.hierarchical,
            key=None if key is None else CustomerKey(name=key, storage_agent=project.storage_agent),
        ),
    )
