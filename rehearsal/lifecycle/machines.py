"""Who buys the machines of a stack, for a scene to be played with."""

from holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from holdfast.rehearsal.scenarios.gke import Gke
from holdfast.rehearsal.scenarios.karpenter import Karpenter
from holdfast.rehearsal.scenarios.manifests import JOBSET_ON_SPOT, JOBSET_ON_SPOT_GPUS
from holdfast.rehearsal.scenarios.provisioning import Provisioner
from holdfast.simulator.clouds.azure.node_provisioning import provisioned_cluster
from holdfast.simulator.cluster_autoscaler.groups import GCP
from holdfast.simulator.cluster_autoscaler.scale_sets import AZURE, ScaleSets
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.stacks import Stack
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes


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
