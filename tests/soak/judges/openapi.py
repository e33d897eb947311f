"""What Azure publishes about its resource types, from the types that Microsoft generates of its OpenAPI documents."""

import importlib.util
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, cast

from holdfast.simulator.clouds.catalogue import Rules
from holdfast.simulator.clouds.schema import Schema
from holdfast.simulator.clouds.sdk import (
    Kind,
    Property,
    PropertyType,
    SdkClass,
    argument_properties,
    find_resource,
)
from holdfast.simulator.errors import RehearsalError
from tests.support.published import AZURE, Published

Field: TypeAlias = dict[str, object]
Fields: TypeAlias = dict[str, Field]
Type: TypeAlias = Mapping[str, object]

#: Token → the type's name in Azure Resource Manager, and the input that names the resource.
TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "azure-native:authorization:RoleAssignment": ("Microsoft.Authorization/roleAssignments", "roleAssignmentName"),
    "azure-native:compute:CapacityReservation": ("Microsoft.Compute/capacityReservationGroups/capacityReservations", "capacityReservationName"),
    "azure-native:compute:CapacityReservationGroup": ("Microsoft.Compute/capacityReservationGroups", "capacityReservationGroupName"),
    "azure-native:containerservice:AgentPool": ("Microsoft.ContainerService/managedClusters/agentPools", "agentPoolName"),
    "azure-native:containerservice:MaintenanceConfiguration": ("Microsoft.ContainerService/managedClusters/maintenanceConfigurations", "configName"),
    "azure-native:containerservice:ManagedCluster": ("Microsoft.ContainerService/managedClusters", "resourceName"),
    "azure-native:managedidentity:FederatedIdentityCredential": ("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", "federatedIdentityCredentialResourceName"),
    "azure-native:managedidentity:UserAssignedIdentity": ("Microsoft.ManagedIdentity/userAssignedIdentities", "resourceName"),
    "azure-native:monitor:DiagnosticSetting": ("Microsoft.Insights/diagnosticSettings", "name"),
    "azure-native:network:NatGateway": ("Microsoft.Network/natGateways", "natGatewayName"),
    "azure-native:network:PrivateEndpoint": ("Microsoft.Network/privateEndpoints", "privateEndpointName"),
    "azure-native:network:PrivateDnsZoneGroup": ("Microsoft.Network/privateEndpoints/privateDnsZoneGroups", "privateDnsZoneGroupName"),
    "azure-native:network:PublicIPAddress": ("Microsoft.Network/publicIPAddresses", "publicIpAddressName"),
    "azure-native:network:Subnet": ("Microsoft.Network/virtualNetworks/subnets", "subnetName"),
    "azure-native:network:VirtualNetwork": ("Microsoft.Network/virtualNetworks", "virtualNetworkName"),
    "azure-native:privatedns:PrivateZone": ("Microsoft.Network/privateDnsZones", "privateZoneName"),
    "azure-native:privatedns:VirtualNetworkLink": ("Microsoft.Network/privateDnsZones/virtualNetworkLinks", "virtualNetworkLinkName"),
    "azure-native:resources:ResourceGroup": ("Microsoft.Resources/resourceGroups", "resourceGroupName"),
    "azure-native:storage:BlobContainer": ("Microsoft.Storage/storageAccounts/blobServices/containers", "containerName"),
    "azure-native:storage:BlobServiceProperties": ("Microsoft.Storage/storageAccounts/blobServices", "blobServicesName"),
    "azure-native:storage:ManagementPolicy": ("Microsoft.Storage/storageAccounts/managementPolicies", "managementPolicyName"),
    "azure-native:storage:StorageAccount": ("Microsoft.Storage/storageAccounts", "accountName"),
}  # fmt: skip
#: The properties that the SDK names otherwise (`x-ms-client-name`).
_RENAMED: Final = {
    "enableHttpsTrafficOnly": "supportsHttpsTrafficOnly",
    "encryptionFederatedIdentityClientId": "federatedIdentityClientId",
    "encryptionIdentity": "identity",
    "encryptionUserAssignedIdentity": "userAssignedIdentity",
    "iPAddressOrRange": "value",
    "networkRuleSet": "networkAcls",
    "virtualNetworkResourceId": "id",
}
#: The inputs that the provider fills in, as it does the resource's own name.
_FILLED_IN: Final = frozenset({"location", "name"})
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
_READ_ONLY: Final = 2
_REQUIRED: Final = 1
_KEBAB: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_VERSION: Final = re.compile(r"Uses Azure REST API version ([0-9a-z-]+)")
#: Inputs that name the parents of a resource; their rules are those of the parents.
_PARENTS: Final = re.compile(r"(Name|scope|resourceUri)$")


def api_version(token: str) -> str:
    """Return the API version that the installed SDK uses for a type."""
    _, module, name = token.split(":")
    spec = importlib.util.find_spec("pulumi_azure_native")
    folder = Path(str(spec.origin)).parent / module if spec else Path(module)
    resource = find_resource(folder, name)
    found = _VERSION.search(resource.text) if resource else None
    if found is None:
        raise RehearsalError(f"{token}: its documentation names no API version")
    return found[1]


def recorded(token: str, checkout: Path, shapes: dict[str, Fields]) -> Field:
    """Return the type and API version of a token, and what Azure publishes about each input.

    Adds the nested objects to `shapes`, by the name of their class in the SDK: some contain each other. An input that
    is not published is left out. Raises RehearsalError where the checkout has no such version.
    """
    kind, own = TYPES[token]
    version = api_version(token)
    document = _Document(_types_of(checkout, kind, version), shapes)
    body = document.body(f"{kind}@{version}")
    inputs = Schema.for_package("azure-native").resource(token).inputs
    fields: Fields = {}
    for name, one in inputs.items():
        found = document.member(body, name)
        if found is not None:
            fields[name] = document.described(one, found)
        elif name == own:
            fields[name] = document.described(one, document.properties(body)["name"])
        elif _PARENTS.search(name):
            fields[name] = {"kind": "string"}
    for name in (_FILLED_IN | {own}) & fields.keys():
        fields[name].pop("required", None)
    return {"type": kind, "version": version, "fields": fields}


def _types_of(checkout: Path, kind: str, version: str) -> list[Type]:
    """Return the types of one version; a provider's types are spread over several folders."""
    provider = kind.split("/")[0].lower()
    listed = _git(checkout, "ls-tree", "-r", "--name-only", "HEAD", "generated").splitlines()
    for path in listed:
        if path.lower().endswith(f"/{provider}/{version}/types.json"):
            found = cast("list[Type]", json.loads(_git(checkout, "show", f"HEAD:{path}")))
            if any(one.get("name") == f"{kind}@{version}" for one in found):
                return found
    raise RehearsalError(f"{checkout} has no {kind}@{version}")


def _git(checkout: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(checkout), *arguments], check=True, capture_output=True, text=True
    ).stdout


class _Document:
    """The types of one API version, which refer to each other by number."""

    def __init__(self, types: Sequence[Type], shapes: dict[str, Fields]) -> None:
        self._types = types
        self._shapes = shapes

    def body(self, name: str) -> Type:
        """Return the type of a resource's body."""
        found = next(one for one in self._types if one.get("name") == name and "body" in one)
        return self._follow(found["body"])

    def properties(self, one: Type) -> Mapping[str, Type]:
        """Return the properties of an object, those of each of its forms where it has several."""
        found = dict(cast("Mapping[str, Type]", one.get("properties") or one.get("baseProperties") or {}))
        for form in cast(
            "Mapping[str, object]", one.get("elements") if "baseProperties" in one else {}
        ).values():
            found |= self.properties(self._follow(form))
        return found

    def member(self, one: Type, name: str) -> Type | None:
        """Return a property; the SDK shows the content of `properties` beside it."""
        here = self.properties(one)
        inner = here.get("properties")
        beside = self.properties(self._follow(inner["type"])) if inner else dict[str, Type]()
        spellings = {_RENAMED.get(name, name).lower(), _KEBAB.sub("-", name).lower()}
        found = [one for each in (here, beside) for title, one in each.items() if title.lower() in spellings]
        return next((one for one in found if not _flags(one) & _READ_ONLY), None)

    def described(self, one: Property, member: Type) -> Field:
        """Return what is published about a property, as far down as the SDK has inputs."""
        made = self._value(self._follow(member["type"]), one.types)
        if _flags(member) & _REQUIRED:
            made["required"] = True
        return made

    def _value(self, one: Type, types: tuple[PropertyType, ...]) -> Field:
        kind = str(one["$type"]).removesuffix("Type")
        if kind == "Union":
            return self._union(one)
        if kind == "Array":
            item = self._value(self._follow(one["itemType"]), items_of(types))
            return {"kind": "list", "item": item}
        if kind in ("Object", "DiscriminatedObject"):
            return self._object(one, types)
        names = {"minLength": "shortest", "maxLength": "longest", "minValue": "least", "maxValue": "most"}
        made: Field = {"kind": {"String": "string", "Integer": "number", "Boolean": "bool"}.get(kind, "any")}
        made |= {short: one[long] for long, short in names.items() if long in one}
        if "pattern" in one:
            made["pattern"] = one["pattern"]
        if kind == "StringLiteral":
            made = {"kind": "string", "values": [one["value"]]}
        return made

    def _union(self, one: Type) -> Field:
        """Azure leaves its enumerations open for later versions; the values of this one are those that it knows."""
        elements = [self._follow(each) for each in cast("Sequence[object]", one["elements"])]
        return {
            "kind": "string",
            "values": sorted(str(each["value"]) for each in elements if "value" in each),
        }

    def _object(self, one: Type, types: tuple[PropertyType, ...]) -> Field:
        shape = shape_of(types)
        if shape is None:
            return {"kind": "map" if "additionalProperties" in one or not self.properties(one) else "any"}
        key = f"{shape.file.parent.name}/{shape.name.removesuffix('Args')}"
        if key not in self._shapes:
            fields = self._shapes[key] = {}
            for name, each in argument_properties(shape).items():
                found = self.member(one, name)
                if found is not None:
                    fields[name] = self.described(each, found)
        return {"kind": "object", "shape": key}

    def _follow(self, reference: object) -> Type:
        number = str(cast("Mapping[str, object]", reference)["$ref"]).removeprefix("#/")
        return self._types[int(number)]


def _flags(member: Type) -> int:
    return cast("int", member.get("flags", 0))


def items_of(types: tuple[PropertyType, ...]) -> tuple[PropertyType, ...]:
    """Return the types of the items of a list or map."""
    return next((one.item for one in types if one.kind in (Kind.LIST, Kind.MAP)), ())


def shape_of(types: tuple[PropertyType, ...]) -> SdkClass | None:
    """Return the class of an object."""
    return next((one.shape for one in types if one.kind is Kind.OBJECT), None)


def record(checkout: Path, replacements: Path) -> None:
    """Write what is recorded on this machine: all types with their nested objects, and what replaces a resource.

    `checkout` is of github.com/Azure/bicep-types-az; `replacements` is the file of github.com/pulumi/pulumi-azure-native
    that lists the properties for which the provider replaces a resource.
    """
    shapes: dict[str, Fields] = {}
    types = {token: recorded(token, checkout, shapes) for token in TYPES}
    parts = {
        "replacing": _replacing(replacements.read_text(encoding="utf-8")),
        "types": types,
        "shapes": dict(sorted(shapes.items())),
    }
    AZURE.parent.mkdir(parents=True, exist_ok=True)
    write(AZURE, f"github.com/Azure/bicep-types-az@{_git(checkout, 'rev-parse', 'HEAD').strip()}", parts)


def outdated(published: Published) -> list[str]:
    """Return the types that are not recorded for the API version that the installed SDK uses."""
    versions = {token: one["version"] for token, one in published.types.items()}
    return [
        f"{token}: recorded is {versions.get(token)}, the SDK uses {used}; run `python -m tests.soak record-types` again"
        for token, used in ((token, api_version(token)) for token in TYPES)
        if versions.get(token) != used
    ]


def replaced_otherwise(published: Published, simulated: Mapping[str, Rules]) -> list[str]:
    """Return the properties that replace a resource in the simulator or in the provider, and not in both."""
    found: list[str] = []
    for token in sorted(published.replacing.keys() & simulated.keys()):
        ours = {path.rpartition(".")[2] for path in simulated[token].immutable} - {"resourceGroupName"}
        theirs = {*published.replacing[token]} - _NOT_SIMULATED.get(token, frozenset())
        theirs |= _SET_ONCE.get(token, frozenset())
        for name in sorted(ours ^ theirs):
            where = "the simulator" if name in ours else "the provider"
            found.append(f"{token} {name}: only {where} replaces the resource")
    return found


def write(file: Path, source: str, parts: Mapping[str, Mapping[str, object]]) -> None:
    """Write the recording of a provider package, one line for each type and nested object."""
    text = [f'"source": {json.dumps(source)}']
    for name, entries in parts.items():
        lines = [f"{json.dumps(key)}: {json.dumps(one, sort_keys=True)}" for key, one in entries.items()]
        text.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    file.write_text("{\n" + ",\n".join(text) + "\n}\n", encoding="utf-8")


def _replacing(source: str) -> dict[str, list[str]]:
    """Return the names in `forceNewMap` of the recorded types."""
    table = source.partition("var forceNewMap")[2].partition("var noForceNewMap")[0]
    table = re.sub(r"//.*", "", table)
    found: dict[str, list[str]] = {}
    for module in re.finditer(r'\n\t"(\w+)": \{(.*?)\n\t\},', table, re.DOTALL):
        for one in re.finditer(r'"(\w+)":\s+codegen\.NewStringSet\((.*?)\)', module[2], re.DOTALL):
            token = f"azure-native:{module[1].lower()}:{one[1]}"
            if token in TYPES:
                found[token] = re.findall(r'"(\w+)"', one[2])
    return found
