"""Security groups and their rules."""

from collections.abc import Mapping

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.aws.ec2.references import has_interface_with, others, text
from holdfast.simulator.clouds.catalogue import Making, Removal, Rules

_GROUP = "aws:ec2/securityGroup:SecurityGroup"
_INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_ALL_PROTOCOLS = "-1"


def _second_rule(making: Making) -> str | None:
    group, rule = text(making.inputs, "securityGroupId"), _described(making.inputs)
    siblings = others(making.type, making.inventory, making.id)
    if any(
        (text(one.inputs, "securityGroupId"), _described(one.inputs)) == (group, rule) for one in siblings
    ):
        return f'InvalidPermission.Duplicate: the specified rule "{rule}" already exists'
    return None


def _described(inputs: Json) -> str:
    peer = next((text(inputs, name) for name in _PEERS if text(inputs, name)), "")
    if text(inputs, "ipProtocol") == _ALL_PROTOCOLS:
        return f"peer: {peer}, ALL, ALLOW"
    protocol = text(inputs, "ipProtocol").upper()
    return f"peer: {peer}, {protocol}, from port: {_port(inputs, 'fromPort')}, to port: {_port(inputs, 'toPort')}, ALLOW"


def _port(inputs: Json, name: str) -> str:
    """A port, written the same whether it came as 443 or 443.0."""
    found = inputs.get(name)
    return str(int(found)) if isinstance(found, int | float | str) and found != "" else ""


def _carried_or_referred_to(removal: Removal) -> str | None:
    group, inventory = removal.target.id, removal.inventory
    rules = (*inventory.of_type(_INGRESS), *inventory.of_type(_EGRESS))
    # A group's own rules go with it, also those in which it refers to itself.
    referred_to = any(
        text(one.inputs, "referencedSecurityGroupId") == group != text(one.inputs, "securityGroupId")
        for one in rules
    )
    if referred_to or has_interface_with(group, inventory):
        return f"DependencyViolation: resource {group} has a dependent object"
    return None


RESOURCES: Mapping[str, Rules] = {
    _EGRESS: Rules(immutable=frozenset({"securityGroupId"}), refuse_create=(_second_rule,)),
    _GROUP: Rules(
        longest_name=255,
        immutable=frozenset({"description", "namePrefix"}),
        taken="InvalidGroup.Duplicate: The security group '{name}' already exists",
        refuse_delete=(_carried_or_referred_to,),
    ),
    _INGRESS: Rules(immutable=frozenset({"securityGroupId"}), refuse_create=(_second_rule,)),
}
