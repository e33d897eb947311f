"""JobSet and KubeRay, the operators of training jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, KubernetesObject, admission_policy, role_ref
from pulumi_holdfast.kubernetes.operators.charted_operator import ChartedOperator, ChartedOperatorArgs
from pulumi_holdfast.kubernetes.operators.operator_access import (
    JOBSET_ACCESS,
    OPERATOR_WRITES,
    RAY_FINALIZER_RULES,
    RAY_FINALIZERS,
    RAY_ROLE,
    RAY_RULES,
    RAY_SUBJECT,
    jobset_access_spec,
    operator_writes_spec,
)
from pulumi_holdfast.kubernetes.operators.pod_settings import (
    SYSTEM_NODE_SELECTOR,
    SYSTEM_PRIORITY_CLASS,
    SYSTEM_TOLERATIONS,
    image,
    spread_over_zones,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.operators import OPERATORS

# The labels that the chart puts on its pods.
_KUBERAY_PODS: Final = {"app.kubernetes.io/name": "kuberay-operator"}


def kuberay_values(version: str, images: str | None, replicas: int, namespaces: Sequence[str] = ()) -> Json:
    """Return the values of KubeRay's chart; `images` is a registry, None for KubeRay's own.

    KubeRay acts in `namespaces` alone, where it is given a role; without any, in all.
    """
    inside: Json = {
        # Not the chart's Roles: they would need the namespaces before KubeRay, which must outlive the RayJobs in them.
        "singleNamespaceInstall": True,
        "crNamespacedRbacEnable": False,
        "watchNamespace": [*namespaces],
        # Its metrics list jobs, and the probes read the metrics: it would not be ready before each namespace is there.
        "metrics": {"enabled": False},
    }
    return {
        **(inside if namespaces else {}),
        "image": {"repository": image(images, "quay.io/kuberay/operator"), "tag": f"v{version}"},
        "replicas": replicas,
        "leaderElectionEnabled": replicas > 1,
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "affinity": spread_over_zones(_KUBERAY_PODS),
        "tolerations": SYSTEM_TOLERATIONS,
        "priorityClassName": SYSTEM_PRIORITY_CLASS,
        # The chart's own, which it gives as limits alone.
        "resources": {
            "requests": {"cpu": "100m", "memory": "512Mi"},
            "limits": {"cpu": "100m", "memory": "512Mi"},
        },
    }


# The labels that the chart puts on the pods of a release named `jobset`.
_JOBSET_PODS: Final = {"app.kubernetes.io/name": "jobset", "app.kubernetes.io/component": "controller"}


def jobset_values(version: str, images: str | None, replicas: int) -> Json:
    """Return the values of JobSet's chart; `images` is a registry, None for JobSet's own."""
    return {
        # The chart's default is a mutable tag in a staging registry. It writes repository, colon and tag, so a digest follows the tag.
        "image": {
            "repository": image(images, "registry.k8s.io/jobset/jobset"),
            "tag": f"v{version}@{versions.JOBSET_IMAGE_DIGEST}",
            "pullPolicy": "IfNotPresent",
        },
        "controller": {
            "replicas": replicas,
            "leaderElection": {"enable": replicas > 1},
            "nodeSelector": SYSTEM_NODE_SELECTOR,
            "affinity": spread_over_zones(_JOBSET_PODS),
            "tolerations": SYSTEM_TOLERATIONS,
            # With the chart's 500m a third pod, which a rolling update needs, fits on no default system node.
            "resources": {
                "requests": {"cpu": "200m", "memory": "128Mi"},
                "limits": {"cpu": "2", "memory": "4Gi"},
            },
        },
    }


#: The ports of the operators' pods that the API server calls, by their charts. KubeRay's chart has no webhook.
_WEBHOOK_PORTS: Final[Mapping[str, int]] = {"jobset": 9443}


class Operators(ComponentResource):
    """JobSet and KubeRay (`holdfast:index:Operators`).

    Creates each in its own namespace, `jobset-system` and `kuberay-system`: the release of its CRDs and the
    release of its controller. KubeRay must outlive namespaces whose RayJobs have its finalizer. `namespaces` are the training
    namespaces, in which alone both write; without any, they write in all. Creates the admission policies that say so,
    `jobset-access` and `operator-writes`, the ClusterRole `kuberay-jobs`, which TrainingNamespace binds, and `kuberay-finalizers`.
    `charts` is a directory or address of charts, `images` a registry; None for the projects' own. `versions` are the operators',
    by the names of their charts. `scrapers` are the namespaces that reach their metrics. With more than one replica they elect a leader.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        charts: str | None,
        images: str | None = None,
        versions: Mapping[str, str],
        replicas: int,
        scrapers: Sequence[str] = (),
        namespaces: Sequence[str] = (),
    ) -> None:
        super().__init__("holdfast:index:Operators", name, None, opts)
        access = self._access(name, bounded=bool(namespaces))
        values = {
            "jobset": jobset_values(versions["jobset"], images, replicas),
            "kuberay-operator": kuberay_values(versions["kuberay-operator"], images, replicas, namespaces),
        }
        for chart, settings in values.items():
            operator, version = chart.removesuffix("-operator"), versions[chart]
            ChartedOperator(
                f"{name}-{operator}",
                ChartedOperatorArgs(
                    namespace=OPERATORS[chart].namespace,
                    release=chart,
                    crds_release=f"{operator}-crds",
                    crds_chart=f"{operator}-crds",
                    charts=charts,
                    chart=chart,
                    version=version,
                    chart_version=version,
                    values=settings,
                    allow_from=scrapers,
                    webhook_port=_WEBHOOK_PORTS.get(chart),
                ),
                # The policy must be in force when JobSet's chart makes its ClusterRole.
                opts=ResourceOptions(parent=self, depends_on=access),
            )
        self.register_outputs({})

    def _access(self, name: str, *, bounded: bool) -> list[KubernetesObject]:
        inside = ResourceOptions(parent=self)
        roles = [
            KubernetesObject(
                f"{name}-{role}",
                RBAC,
                "ClusterRole",
                {"metadata": {"name": role}, "rules": rules},
                opts=inside,
            )
            for role, rules in ((RAY_ROLE, RAY_RULES), (RAY_FINALIZERS, RAY_FINALIZER_RULES))
        ]
        binding = KubernetesObject(
            f"{name}-{RAY_FINALIZERS}-binding",
            RBAC,
            "ClusterRoleBinding",
            {
                "metadata": {"name": RAY_FINALIZERS},
                "roleRef": role_ref("ClusterRole", RAY_FINALIZERS),
                "subjects": [RAY_SUBJECT],
            },
            opts=inside,
        )
        patched = admission_policy(
            f"{name}-{JOBSET_ACCESS}",
            "MutatingAdmissionPolicy",
            {"name": JOBSET_ACCESS},
            jobset_access_spec(),
            {"policyName": JOBSET_ACCESS},
            self,
        )
        if bounded:
            admission_policy(
                f"{name}-{OPERATOR_WRITES}",
                "ValidatingAdmissionPolicy",
                {"name": OPERATOR_WRITES},
                operator_writes_spec(),
                {"policyName": OPERATOR_WRITES, "validationActions": ["Deny"]},
                self,
            )
        return [*roles, binding, patched]
