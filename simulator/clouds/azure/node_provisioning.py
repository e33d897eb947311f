"""Which clusters have node auto-provisioning: AKS's own Karpenter, and no node pools that grow by themselves."""

from holdfast.simulator.clouds.azure.aks import CLUSTER
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.kubernetes_client.objects import mapping


def provisioned_cluster(cloud: CloudState) -> CloudObject | None:
    """Return the cluster of a cloud that has node auto-provisioning; None where there is none."""
    clusters = cloud.read().of_type(CLUSTER) if cloud.file.exists() else []
    return next((one for one in clusters if _provisions(one)), None)


def _provisions(cluster: CloudObject) -> bool:
    return mapping(cluster.outputs.get("nodeProvisioningProfile")).get("mode") == "Auto"
