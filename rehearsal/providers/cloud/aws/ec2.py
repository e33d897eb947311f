"""EC2 and its networks: what AWS adds and refuses."""

from collections.abc import Mapping

from rehearsal.providers.cloud.catalogue import Removal, Rules


def _subnets_remain(removal: Removal) -> str | None:
    vpc = removal.target.id
    if any(one.inputs.get("vpcId") == vpc for one in removal.inventory.of_type("aws:ec2/subnet:Subnet")):
        return f"DependencyViolation: The vpc '{vpc}' has dependencies and cannot be deleted."
    return None


RESOURCES: Mapping[str, Rules] = {
    "aws:ec2/subnet:Subnet": Rules(immutable=frozenset({"cidrBlock", "availabilityZone", "vpcId"})),
    "aws:ec2/vpc:Vpc": Rules(immutable=frozenset({"cidrBlock"}), refuse_delete=(_subnets_remain,)),
}
