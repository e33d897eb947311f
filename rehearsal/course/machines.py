"""Who buys the machines of a stack, for a scene to be played with."""

from rehearsal.autoscaling.groups import GCP
from rehearsal.autoscaling.scale_sets import AZURE, ScaleSets
from rehearsal.kube.client import KubeClient
from rehearsal.providers.cloud.azure.node_provisioning import provisioned_cluster
from rehearsal.providers.faults import Faults
from rehearsal.scenes.aks import AksScaleSets, NodeAutoProvisioning
from rehearsal.scenes.gke import Gke
from rehearsal.scenes.karpenter import Karpenter
from rehearsal.scenes.manifests import JOBSET_ON_SPOT, JOBSET_ON_SPOT_GPUS
from rehearsal.scenes.provisioning import Provisioner
from rehearsal.stacks import Stack
from rehearsal.stacks.cluster_nodes import ClusterNodes


def machines_for(stack: Stack, client: KubeClient) -> Provisioner:
    """Return who buys the machines of a stack's cluster: GKE has an autoscaler of its own, AKS that or a Karpenter."""
    match stack.subject.cloud:
        case "gcp":
            cloud = stack.stand_ins(Faults()).clouds.state(GCP)
            return Gke(client=client, cloud=cloud, nodes=ClusterNodes(stack.kubeconfig, GCP))
        case "azure":
            cloud = stack.stand_ins(Faults()).clouds.state(AZURE)
            if provisioned_cluster(cloud) is not None:
                return NodeAutoProvisioning(client)
            nodes = ClusterNodes(stack.kubeconfig, AZURE)
            return AksScaleSets(client=client, scale_sets=ScaleSets(cloud), nodes=nodes)
        case _:
            return Karpenter(client)


def spot_example(machines: Provisioner) -> str:
    """Return the name of the JobSet that can run on spot: on GPUs only where it must."""
    return JOBSET_ON_SPOT if machines.has_plain_spot() else JOBSET_ON_SPOT_GPUS
