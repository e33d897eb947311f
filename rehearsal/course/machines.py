"""Who buys the machines of a stack, for a scene to be played with."""

from rehearsal.kube.client import KubeClient
from rehearsal.providers.faults import Faults
from rehearsal.scenes.gke import Gke
from rehearsal.scenes.karpenter import Karpenter
from rehearsal.scenes.manifests import JOBSET_ON_SPOT, JOBSET_ON_SPOT_GPUS
from rehearsal.scenes.provisioning import Provisioner
from rehearsal.stacks import Stack
from rehearsal.stacks.cluster_nodes import ClusterNodes

_GCP = "gcp"


def machines_for(stack: Stack, client: KubeClient) -> Provisioner:
    """Return who buys the machines of a stack's cluster: GKE has an autoscaler of its own."""
    if stack.subject.cloud != _GCP:
        return Karpenter(client)
    cloud = stack.stand_ins(Faults()).clouds.state(_GCP)
    return Gke(client=client, cloud=cloud, nodes=ClusterNodes(stack.kubeconfig, _GCP))


def spot_example(machines: Provisioner) -> str:
    """Return the name of the JobSet that can run on spot: on GPUs only where it must."""
    return JOBSET_ON_SPOT if machines.has_plain_spot() else JOBSET_ON_SPOT_GPUS
