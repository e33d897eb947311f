"""Route tables, their routes, and the subnets they are for."""

from collections.abc import Mapping

from holdfast.simulator.clouds.aws.ec2.references import others, text
from holdfast.simulator.clouds.catalogue import Making, Rules

_ROUTE = "aws:ec2/route:Route"
_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")


def _second_route(making: Making) -> str | None:
    def key(inputs: Mapping[str, object]) -> tuple[object, ...]:
        return tuple(inputs.get(name) for name in ("routeTableId", *_DESTINATIONS))

    if any(key(one.inputs) == key(making.inputs) for one in others(_ROUTE, making.inventory, making.id)):
        destination = next(making.inputs[name] for name in _DESTINATIONS if making.inputs.get(name))
        return f"RouteAlreadyExists: The route identified by {destination} already exists."
    return None


def _second_table(making: Making) -> str | None:
    subnet = text(making.inputs, "subnetId")
    siblings = others(_ASSOCIATION, making.inventory, making.id)
    if subnet and any(text(one.inputs, "subnetId") == subnet for one in siblings):
        table = text(making.inputs, "routeTableId")
        return (
            f"Resource.AlreadyAssociated: the specified association for route table {table} "
            "conflicts with an existing association"
        )
    return None


RESOURCES: Mapping[str, Rules] = {
    _ROUTE: Rules(
        immutable=frozenset({"routeTableId", *_DESTINATIONS}),
        computed={
            "origin": lambda _: "CreateRoute",
            "state": lambda _: "active",
        },
        refuse_create=(_second_route,),
    ),
    _ASSOCIATION: Rules(immutable=frozenset({"gatewayId", "subnetId"}), refuse_create=(_second_table,)),
}
