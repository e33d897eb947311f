"""The operators that run in every cluster: their namespaces, and the addresses of their projects' charts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator: the namespace of its pods, the address of the charts of its project, and whether it calls the pods of jobs."""

    namespace: str
    charts: str
    calls_jobs: bool = False


#: By the name of the chart, which is also the `app.kubernetes.io/name` of the pods.
OPERATORS: Final[Mapping[str, Operator]] = {
    "jobset": Operator(namespace="jobset-system", charts="oci://registry.k8s.io/jobset/charts"),
    "karpenter": Operator(namespace="karpenter", charts="oci://public.ecr.aws/karpenter"),
    "kuberay-operator": Operator(
        namespace="kuberay-system", charts="https://ray-project.github.io/kuberay-helm", calls_jobs=True
    ),
}

#: The user names of the operators that create the Jobs, clusters and pods of jobs.
JOBSET_ACCOUNT: Final = f"system:serviceaccount:{OPERATORS['jobset'].namespace}:jobset-controller"
KUBERAY_ACCOUNT: Final = f"system:serviceaccount:{OPERATORS['kuberay-operator'].namespace}:kuberay-operator"


@dataclass(frozen=True, kw_only=True)
class KeepsCluster:
    """A field below `spec` with which KubeRay refuses to suspend a RayJob. `value`: the one that it refuses; None: any."""

    path: tuple[str, ...]
    value: str | None = None

    @property
    def title(self) -> str:
        """The field in a message."""
        name = ".".join(self.path)
        return name if self.value is None else f"{name}: {self.value}"


#: `shutdownAfterJobFinishes`, which a suspension needs, excludes the other ways to end a cluster.
KEEPING_CLUSTER: Final = (
    KeepsCluster(path=("clusterSelector",)),
    KeepsCluster(path=("deletionStrategy", "deletionRules")),
    KeepsCluster(path=("deletionStrategy", "onSuccess", "policy"), value="DeleteNone"),
    KeepsCluster(path=("deletionStrategy", "onFailure", "policy"), value="DeleteNone"),
)

#: The user name of the fallback controller.
CONTROLLER_ACCOUNT: Final = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"
