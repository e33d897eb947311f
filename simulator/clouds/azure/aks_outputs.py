"""What AKS adds to a cluster: its names, its issuer, its identities."""

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.azure.identity import IDENTITY
from holdfast.simulator.clouds.azure.names import TENANT, group_id, guid
from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.kubernetes_client.objects import mapping, sequence


def _region(making: Making) -> str:
    return str(making.inputs.get("location") or making.configuration.get("location") or "")


def _host(making: Making) -> str:
    return f"{making.inputs.get('dnsPrefix')}-{making.digest[:8]}"


def _is_private(making: Making) -> bool:
    return mapping(making.inputs.get("apiServerAccessProfile")).get("enablePrivateCluster") is True


def fqdn(making: Making) -> JsonValue:
    """Return the name that the internet knows the API server by; a private one has it only where that is asked for."""
    access = mapping(making.inputs.get("apiServerAccessProfile"))
    is_known = not _is_private(making) or access.get("enablePrivateClusterPublicFQDN") is not False
    return f"{_host(making)}.hcp.{_region(making)}.azmk8s.io" if is_known else ""


def private_fqdn(making: Making) -> JsonValue:
    """Return the name that a private API server has in its network."""
    if not _is_private(making):
        return ""
    return f"{_host(making)}.{guid(making, 'zone')}.privatelink.{_region(making)}.azmk8s.io"


def issuer(making: Making) -> JsonValue:
    """Return the issuer of service accounts' tokens, which is there once it is asked for."""
    given = mapping(making.inputs.get("oidcIssuerProfile"))
    tenant = str(making.configuration.get("tenantId") or TENANT)
    url = f"https://{_region(making)}.oic.prod-aks.azure.com/{tenant}/{guid(making, 'issuer')}/"
    return {**given, **({"issuerURL": url} if given.get("enabled") is True else {})}


def identities(making: Making) -> JsonValue:
    """Return the nodes' own identity, which AKS makes unless it is given one."""
    name = f"{making.name}-agentpool"
    group = making.inputs.get("nodeResourceGroup")
    subscription = group_id(making).split("/")[2]
    resource = (
        f"/subscriptions/{subscription}/resourcegroups/{group}/providers/Microsoft.ManagedIdentity/"
        f"userAssignedIdentities/{name}"
    )
    given = mapping(making.inputs.get("identityProfile"))
    made: Json = {
        "clientId": guid(making, "kubelet"),
        "objectId": guid(making, "kubelet's"),
        "resourceId": resource,
    }
    return {"kubeletidentity": made, **given}


def identity(making: Making) -> JsonValue:
    """Return the control plane's identities, which are asked for by a list of ids, and shown by id."""
    given = mapping(making.inputs.get("identity"))
    ids = [str(each) for each in sequence(given.get("userAssignedIdentities"))]
    if not ids:
        return dict(given) or None
    known = {one.id.lower(): one.outputs for one in making.inventory.of_type(IDENTITY)}
    shown: Json = {
        one: {name: known.get(one.lower(), {}).get(name, "") for name in ("clientId", "principalId")}
        for one in ids
    }
    return {**given, "userAssignedIdentities": shown}


def running_version(making: Making) -> JsonValue:
    """Return the version that runs: AKS picks the patch."""
    asked = str(making.inputs.get("kubernetesVersion") or "1.36")
    return asked if asked.count(".") > 1 else f"{asked}.0"
