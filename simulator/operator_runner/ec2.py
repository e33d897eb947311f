"""EC2 as Karpenter buys from it: what is sold in the region it runs in."""

from collections.abc import Sequence
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.machines import is_sold_in, machine_catalogue
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.operator_runner.containers import CannotRunError
from holdfast.simulator.operator_runner.market import instance_types

REGION: Final = "topology.kubernetes.io/region"
_SUBNET: Final = "aws:ec2/subnet:Subnet"
# Of a region in which the stack has no subnets of its own: as many as the stand-in for EC2 tells of.
_ZONES: Final = ("a", "b", "c")


class Ec2Market:
    """The market of a stand-in cloud: `cloud` is what exists in it."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def sold_to(self, node: Json) -> str:
        """List what is sold to a buyer on this node: all of its region's machines, in the zones with subnets.

        Raises CannotRunError where the node's region is none.
        """
        metadata = mapping(node.get("metadata"))
        region = mapping(metadata.get("labels")).get(REGION)
        machines = [
            machine for machine in machine_catalogue("aws").values() if is_sold_in(machine.name, str(region))
        ]
        if not machines:
            raise CannotRunError(
                f"nothing is known to be sold in the region of node {metadata.get('name')}, {region}"
            )
        return instance_types(machines, self._zones(str(region)))

    def _zones(self, region: str) -> Sequence[str]:
        subnets = self._cloud.read().of_type(_SUBNET)
        zones = {str(subnet.outputs.get("availabilityZone")) for subnet in subnets}
        ours = sorted(zone for zone in zones if zone.startswith(region))
        return ours or [f"{region}{letter}" for letter in _ZONES]
