"""Which of the policies that AWS keeps a cluster's nodes have. Pure."""

from typing import Final

#: To join, to give pods addresses and to pull images. Not AmazonSSMManagedInstanceCore, which Karpenter's official
#: template adds for shells on nodes: with it every node reads every parameter of the account.
NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
)
