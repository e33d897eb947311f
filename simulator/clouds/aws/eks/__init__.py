"""EKS: what AWS adds and refuses."""

from collections.abc import Mapping

from holdfast.simulator.clouds.aws.eks import access, addons, clusters, node_groups
from holdfast.simulator.clouds.catalogue import Rules

RESOURCES: Mapping[str, Rules] = {
    **access.RESOURCES,
    **addons.RESOURCES,
    **clusters.RESOURCES,
    **node_groups.RESOURCES,
}

__all__ = ["RESOURCES"]
