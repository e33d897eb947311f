"""A network on Azure that is there already: the user's own."""

from dataclasses import dataclass

from holdfast.components.network.azure_contract import Outbound


@dataclass(frozen=True, kw_only=True)
class ExistingAzureNetwork:
    """A subnet in the cluster's region, by id, how its nodes call out, and from where they are then seen to call.

    `/subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<name>/subnets/<name>`. Nothing
    in it is made or changed, beside the grant that lets the cluster put machines there: whoever owns it sees to the NAT
    gateway, or to the route table, which must be on the subnet before the cluster is.
    """

    subnet_id: str
    outbound: Outbound = "userAssignedNATGateway"
    egress_cidrs: tuple[str, ...] = ()
