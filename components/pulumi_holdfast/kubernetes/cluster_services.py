"""Installs what every stack runs in its cluster: operators, admission, the fallback controller, training namespaces.

The training clusters (`aws/training_cluster.py` and its siblings) create the control plane and its pools, and call this module
for the rest. An operator is added here once, for all clouds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.config.clusters import unused_cluster_warnings
from pulumi_holdfast.config.reachability import reachability_problems, reachability_warnings
from pulumi_holdfast.config.sections import JobMetricsStore
from pulumi_holdfast.kubernetes.admission.job_admission import JobAdmission, capacity_selections
from pulumi_holdfast.kubernetes.admission.job_validation import JobValidation
from pulumi_holdfast.kubernetes.admission.pod_admission import TrainingAdmission
from pulumi_holdfast.kubernetes.admission.tenants import TenantBounds
from pulumi_holdfast.kubernetes.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import controller_archives, controller_images
from pulumi_holdfast.kubernetes.fallback_policy import fallback_policy_definition
from pulumi_holdfast.kubernetes.job_metrics import NO_CLOUD, CloudMetrics, JobMetrics, JobMetricsArgs
from pulumi_holdfast.kubernetes.monitoring import OPERATOR_API, Monitoring
from pulumi_holdfast.kubernetes.network import TrainingNetwork
from pulumi_holdfast.kubernetes.operators.device_plugins import DevicePlugins
from pulumi_holdfast.kubernetes.operators.job_operators import Operators
from pulumi_holdfast.kubernetes.other_clusters import exported_tiers
from pulumi_holdfast.kubernetes.storage import NamespaceClaim, NamespaceVolume, NamespaceVolumeArgs
from pulumi_holdfast.kubernetes.training_namespace import (
    SERVICE_ACCOUNT,
    TrainingNamespace,
    TrainingNamespaceArgs,
)
from pulumi_holdfast.ladder.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.config.namespace import NamespaceSection
    from pulumi_holdfast.config.sections import ControllerSection, MonitoringSection, PlatformDocument
    from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, NodeSelection
    from pulumi_holdfast.kubernetes.fallback_controller.clusters import OtherCluster
    from pulumi_holdfast.kubernetes.network import NodeEndpoint
    from pulumi_holdfast.kubernetes.other_clusters import OtherStacks
    from pulumi_holdfast.kubernetes.storage import MountedVolume
    from pulumi_holdfast.ladder.pools import Pool
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary


@dataclass(frozen=True, kw_only=True)
class AdmissionPlan:
    """The admission rules of a cloud.

    `pod_rules` add tolerations to training pods, `other_rules` change pods in other ways. `pools` are all pools of the stack.
    `selections` are node selectors for spot capacity that no pod rule uses. `claims` are volume claims that bind a pod to no zone.
    """

    kubernetes_version: str
    pools: Sequence[Pool]
    pod_rules: Sequence[AdmissionRule]
    other_rules: Sequence[AdmissionRule] = ()
    selections: Sequence[NodeSelection] = ()
    claims: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The cloud identity of a namespace's jobs: the name and annotations of their service account, and where nodes give its credentials."""

    service_account: str = SERVICE_ACCOUNT
    annotations: Mapping[str, Input[str]] = field(default_factory=dict[str, "Input[str]"])
    endpoints: Sequence[NodeEndpoint] = ()


@dataclass(frozen=True, kw_only=True)
class ClusterServices:
    """Installs services in one cluster, as children of `parent`.

    `charts` is a directory or an address of charts, `images` a registry; None: upstream's. `replicas` is the number of
    pods of each controller. `karpenter_metrics` is where Karpenter shows prices; None for a cluster without them. `scrapers` are the
    namespaces that reach the metrics of operators. `metrics` is what the cloud has for metrics of jobs.
    """

    parent: pulumi.Resource
    cluster: pulumi.Resource
    kubernetes: pulumi.ProviderResource
    charts: str | None
    images: str | None = None
    replicas: int = 2
    karpenter_metrics: str | None = None
    scrapers: Sequence[str] = ()
    metrics: CloudMetrics = NO_CLOUD

    def after(self, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options for a resource in the cluster that depends on `resources`."""
        return pulumi.ResourceOptions(
            parent=self.parent, providers=[self.kubernetes], depends_on=[self.cluster, *resources]
        )

    def _named(self, concept: str) -> str:
        return naming.part(self.parent.pulumi_resource_name, concept)

    def operators(self, namespaces: Sequence[NamespaceSection]) -> Operators:
        """Install the operators of jobs, JobSet and KubeRay, for these training namespaces."""
        return Operators(
            self._named("operators"),
            opts=self.after(),
            charts=self.charts,
            images=self.images,
            versions=versions.JOB_OPERATORS,
            replicas=self.replicas,
            scrapers=self.scrapers,
            namespaces=[namespace.name for namespace in namespaces],
        )

    def device_plugins(self, *, region: str, efa: bool = False) -> DevicePlugins:
        """Install the device plugins for GPUs and, with `efa`, for Elastic Fabric Adapters."""
        return DevicePlugins(
            self._named("device-plugins"),
            opts=self.after(),
            charts=self.charts,
            images=self.images,
            nvidia_version=versions.NVIDIA_DEVICE_PLUGIN,
            efa_version=versions.EFA_DEVICE_PLUGIN if efa else None,
            region=region,
        )

    def _monitoring(self, monitoring: MonitoringSection, fallback: FallbackController) -> None:
        """Install the monitoring of the controller and of jobs that the stack configures."""
        labels = {"release": monitoring.release} if monitoring.release else {}
        if monitoring.dashboard or monitoring.alerts:
            Monitoring(
                self._named("monitoring"),
                opts=self.after(fallback),
                has_dashboard=monitoring.dashboard,
                has_alerts=monitoring.alerts,
                has_jobs=monitoring.jobs is not None,
                labels=labels,
            )
        if monitoring.jobs is not None:
            in_cloud = monitoring.jobs is JobMetricsStore.CLOUD
            JobMetrics(
                self._named("job-metrics"),
                JobMetricsArgs(
                    images=self.images,
                    gpus_image=versions.DCGM_EXPORTER,
                    state_image=versions.KUBE_STATE_METRICS,
                    monitors=self.metrics.monitors if in_cloud else OPERATOR_API,
                    # The ServiceMonitor of the alerts has the controller's pods already.
                    has_controller=in_cloud or not monitoring.alerts,
                    labels={} if in_cloud else labels,
                    driver=self.metrics.driver,
                ),
                opts=self.after(fallback),
            )

    def admission_and_fallback(
        self,
        controller: ControllerSection,
        plan: AdmissionPlan,
        *,
        pools: Sequence[pulumi.Resource],
        clusters: Sequence[OtherCluster] = (),
        accepted: Sequence[Input[str]] = (),
    ) -> Sequence[pulumi.Resource]:
        """Install admission and the fallback controller; return what training namespaces depend on.

        The controller depends on `pools`, so `pulumi destroy` deletes it first: otherwise it would treat the deletion of
        their nodes as evictions and move jobs. `clusters` are the other clusters of ladders, and `accepted` the user names of the
        controllers of clusters whose jobs may run here.
        """
        pods = TrainingAdmission(
            self._named("admission"),
            opts=self.after(),
            kubernetes_version=plan.kubernetes_version,
            rules=(*plan.pod_rules, *plan.other_rules),
        )
        definition = fallback_policy_definition(self._named("fallback-policy"), self.after())
        bounds = TenantBounds(
            self._named("tenants"),
            self.after(definition),
            defaults=[pool.name for pool in plan.pools if pool.is_default],
            accepted=accepted,
        )
        capacity = (*capacity_selections(plan.pod_rules), *plan.selections)
        jobs = JobAdmission(self._named("job-admission"), opts=self.after(definition), capacity=capacity)
        # Validation depends on job admission, which makes jobs movable. Without it every job would be rejected.
        validation = JobValidation(
            self._named("job-validation"), self.after(definition, jobs), capacity=capacity, claims=plan.claims
        )
        images = controller_images(
            versions.PYTHON_IMAGE,
            versions.PAUSE,
            self.images,
            own=controller.image,
            archives=() if controller.image else controller_archives(),
        )
        in_cloud = controller.monitoring.jobs is JobMetricsStore.CLOUD
        fallback = FallbackController(
            self._named("fallback-controller"),
            FallbackControllerArgs(
                images=images,
                replicas=self.replicas,
                webhook_secret=controller.webhook_secret,
                karpenter_metrics=self.karpenter_metrics,
                clusters=clusters,
                accepted=accepted,
                scrapers=[*self.scrapers, *(self.metrics.scrapers if in_cloud else ())],
            ),
            opts=self.after(definition, *pools),
        )
        self._monitoring(controller.monitoring, fallback)
        return [pods, definition, bounds, jobs, validation, fallback]


def check_fallback(platform: PlatformDocument, pools: Mapping[str, PoolSummary], *, cloud: str) -> None:
    """Raise ConfigError for jobs that cannot reach an on-demand pool, and for a controller that cannot be packed here.

    `pools` are the platform's pools by name. Warns of tiers that never have capacity, and of clusters that no tier names.
    """
    problems = tuple(reachability_problems(platform.namespaces, pools, platform.bound_to_zones))
    if problems:
        raise ConfigError(problems)
    for warning in (
        *reachability_warnings(platform.namespaces, pools, cloud),
        *unused_cluster_warnings(platform.clusters, platform.namespaces),
    ):
        pulumi.log.warn(warning)
    if platform.fallback.image is None:
        controller_archives()


def make_training_namespace(
    namespace: NamespaceSection,
    *,
    cluster: str,
    checkpoint_uri: Input[str],
    pools: Mapping[str, PoolSummary],
    opts: pulumi.ResourceOptions,
    identity: Identity | None = None,
    accepted: Sequence[Input[str]] = (),
    volumes: Sequence[MountedVolume] = (),
    others: OtherStacks,
) -> TrainingNamespace:
    """Create one training namespace of the cluster of this name; `pools` are the stack's pools by name, `others` the stacks of its tiers in other clusters.

    `accepted` are the user names of the controllers of other clusters whose jobs may run in it, `volumes` what its pods may mount.
    """
    identity = identity or Identity()
    volume_args = {each.name: NamespaceVolumeArgs(namespace=namespace.name, volume=each) for each in volumes}
    before = [
        NamespaceVolume(naming.namespace_volume(cluster, namespace.name, volume), args, opts=opts)
        for volume, args in volume_args.items()
    ]
    made = TrainingNamespace(
        naming.training_namespace(cluster, namespace.name),
        TrainingNamespaceArgs(
            namespace=namespace.name,
            ladder=namespace.as_ladder(),
            checkpoint_uri=checkpoint_uri,
            service_account=identity.service_account,
            identity=identity.annotations,
            pools=pools,
            shapes=namespace.as_shapes(),
            quota=namespace.as_quota(pools),
            bounded=namespace.quota.enforced,
            highest_priority=namespace.highest_priority,
            network=TrainingNetwork(
                endpoints=identity.endpoints,
                allow_from=namespace.network.allow_from,
                allow_to=namespace.network.allow_to,
            )
            if namespace.network.enforced
            else None,
            accepted=accepted,
            claims=[*volume_args],
            elsewhere=exported_tiers(namespace, others, checkpoint_uri=checkpoint_uri, pools=pools),
        ),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=before)),
    )
    # A claim that pods still mount cannot be deleted before its namespace.
    inside = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[made], deleted_with=made))
    for volume, args in volume_args.items():
        NamespaceClaim(naming.volume_claim(cluster, namespace.name, volume), args, opts=inside)
    return made
