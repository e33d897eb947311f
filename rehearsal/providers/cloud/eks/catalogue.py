"""pulumi-eks, put together."""

from rehearsal.providers.cloud.catalogue import Catalogue
from rehearsal.providers.cloud.eks.cluster import construct_cluster

CATALOGUE = Catalogue(components={"eks:index:Cluster": construct_cluster})
