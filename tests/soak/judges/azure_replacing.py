"""Which properties replace a resource of Azure: the list of pulumi-azure-native, compared with the simulator."""

import re
from collections.abc import Mapping
from typing import Final

from holdfast.simulator.clouds.catalogue import Rules

#: The properties that only Azure refuses to change, and those that its API marks as set once.
_SET_ONCE: Final[Mapping[str, frozenset[str]]] = {
    "azure-native:network:NatGateway": frozenset({"location", "zones"}),
    "azure-native:network:PrivateEndpoint": frozenset({"location"}),
    "azure-native:network:PublicIPAddress": frozenset({"zones"}),
    "azure-native:managedidentity:UserAssignedIdentity": frozenset({"location"}),
}
#: In the cluster's own list of pools; no stack sets it, and paths into lists are not simulated.
_NOT_SIMULATED: Final[Mapping[str, frozenset[str]]] = {
    "azure-native:containerservice:ManagedCluster": frozenset({"nodePublicIPTags"})
}


def replaced_otherwise(source: str, simulated: Mapping[str, Rules]) -> list[str]:
    """Return the properties that replace a resource in the simulator or in the provider, and not in both.

    `source` is the text of the file that lists those of the provider.
    """
    found: list[str] = []
    for token, names in sorted(_replacing(source).items()):
        if token not in simulated:
            continue
        ours = {path.rpartition(".")[2] for path in simulated[token].immutable} - {"resourceGroupName"}
        theirs = names - _NOT_SIMULATED.get(token, frozenset()) | _SET_ONCE.get(token, frozenset())
        for name in sorted(ours ^ theirs):
            where = "the simulator" if name in ours else "the provider"
            found.append(f"{token} {name}: only {where} replaces the resource")
    return found


def _replacing(source: str) -> Mapping[str, frozenset[str]]:
    """Return the names in `forceNewMap` by type."""
    table = source.partition("var forceNewMap")[2].partition("var noForceNewMap")[0]
    table = re.sub(r"//.*", "", table)
    return {
        f"azure-native:{module[1].lower()}:{one[1]}": frozenset(re.findall(r'"(\w+)"', one[2]))
        for module in re.finditer(r'\n\t"(\w+)": \{(.*?)\n\t\},', table, re.DOTALL)
        for one in re.finditer(r'"(\w+)":\s+codegen\.NewStringSet\((.*?)\)', module[2], re.DOTALL)
    }
