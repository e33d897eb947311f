"""The kinds of objects that are read and written, and where the API server serves them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of object: how it is named, and the paths of its objects."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str | None = None) -> str:
        """Return the path of all its objects, in one namespace or in all of them (None)."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{within}/{self.plural}"

    def item(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Return the path of one object, or of a subresource of it."""
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace)}/{name}{tail}"


NAMESPACE: Final = Kind(api_version="v1", name="Namespace", plural="namespaces", namespaced=False)
NODE: Final = Kind(api_version="v1", name="Node", plural="nodes", namespaced=False)
POD: Final = Kind(api_version="v1", name="Pod", plural="pods")
EVENT: Final = Kind(api_version="v1", name="Event", plural="events")
JOB: Final = Kind(api_version="batch/v1", name="Job", plural="jobs")
LEASE: Final = Kind(api_version="coordination.k8s.io/v1", name="Lease", plural="leases")
JOBSET: Final = Kind(api_version="jobset.x-k8s.io/v1alpha2", name="JobSet", plural="jobsets")
RAYJOB: Final = Kind(api_version="ray.io/v1", name="RayJob", plural="rayjobs")
RAYCLUSTER: Final = Kind(api_version="ray.io/v1", name="RayCluster", plural="rayclusters")
NODECLAIM: Final = Kind(
    api_version="karpenter.sh/v1", name="NodeClaim", plural="nodeclaims", namespaced=False
)
NODEPOOL: Final = Kind(api_version="karpenter.sh/v1", name="NodePool", plural="nodepools", namespaced=False)
WORKLOAD: Final = Kind(api_version="kueue.x-k8s.io/v1beta2", name="Workload", plural="workloads")
FALLBACK_POLICY: Final = Kind(
    api_version="holdfast.dev/v1alpha1", name="FallbackPolicy", plural="fallbackpolicies"
)
