"""EC2 and its networks: what AWS adds and refuses.

What a resource names and the cloud does not hold is taken for the user's own, there before the stack was.
"""

from collections.abc import Mapping

from holdfast.simulator.clouds.aws.ec2 import addresses, endpoints, launching, routing, security_groups, vpcs
from holdfast.simulator.clouds.aws.ec2.offerings import INVOKES
from holdfast.simulator.clouds.catalogue import Rules

RESOURCES: Mapping[str, Rules] = {
    **addresses.RESOURCES,
    **endpoints.RESOURCES,
    **launching.RESOURCES,
    **routing.RESOURCES,
    **security_groups.RESOURCES,
    **vpcs.RESOURCES,
}

__all__ = ["INVOKES", "RESOURCES"]
