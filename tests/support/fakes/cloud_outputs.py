"""The computed outputs of cloud resources under Pulumi's mocks."""

from hashlib import sha256
from typing import cast

GROUP = "sg-0123456789abcdef0"
PLACEMENT = "pg-0123456789abcdef0"
ENDPOINT = "https://0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com"
AUTHORITY = "Q0E="
ISSUER = "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"


def eks_outputs(kind: str, inputs: dict[str, object]) -> dict[str, object]:
    """The computed outputs of a created AWS resource."""
    if kind == "aws:eks/cluster:Cluster":
        network = cast("dict[str, object]", inputs.get("vpcConfig", {}))
        return {
            "endpoint": ENDPOINT,
            "certificateAuthority": {"data": AUTHORITY},
            "identities": [{"oidcs": [{"issuer": ISSUER}]}],
            "vpcConfig": {**network, "clusterSecurityGroupId": GROUP},
        }
    if kind == "aws:sqs/queue:Queue":
        return {"url": "https://sqs.us-east-1.amazonaws.com/123456789012/interruption"}
    if kind == "aws:ec2/launchTemplate:LaunchTemplate":
        return {"latestVersion": 1}
    if kind == "aws:ec2/placementGroup:PlacementGroup":
        return {"placementGroupId": PLACEMENT}
    return {}


DNS_ENDPOINT = "gke-0123456789abcdef0123456789abcdef0123-123456789012.europe-west4.gke.goog"
GKE_ADDRESS = "203.0.113.9"
#: The address of a file system for training data.
FILE_SYSTEM = "10.64.0.2"


def gke_outputs(kind: str, inputs: dict[str, object]) -> dict[str, object]:
    """The computed outputs of a created Google Cloud resource."""
    if kind == "gcp:container/cluster:Cluster":
        return {
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": DNS_ENDPOINT}},
            "endpoint": GKE_ADDRESS,
            "masterAuth": {"clusterCaCertificate": AUTHORITY},
        }
    if kind == "gcp:serviceaccount/account:Account":
        email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
        name = f"projects/{inputs['project']}/serviceAccounts/{email}"
        return {"email": email, "name": name, "uniqueId": unique_id(email)}
    if kind == "gcp:projects/iAMCustomRole:IAMCustomRole":
        return {"name": f"projects/{inputs['project']}/roles/{inputs['roleId']}"}
    if kind == "gcp:compute/globalAddress:GlobalAddress":
        return {"address": "10.64.0.0"}
    if kind == "gcp:lustre/instance:Instance":
        return {"mountPoint": f"{FILE_SYSTEM}@tcp:/{inputs['filesystem']}"}
    if kind == "gcp:filestore/instance:Instance":
        networks = cast("list[dict[str, object]]", inputs["networks"])
        return {"networks": [{**each, "ipAddresses": [FILE_SYSTEM]} for each in networks]}
    return {}


def unique_id(email: str) -> str:
    """The number of a service account, of 21 digits."""
    return str(10**20 + int(sha256(email.encode()).hexdigest()[:15], 16))


PRINCIPAL = "00000000-0000-0000-0000-00000000aaaa"
CLIENT = "00000000-0000-0000-0000-00000000cccc"
AZURE_ADDRESS = "198.51.100.7"

# Where a resource's own name is among its inputs; the group's is last, since all others have it too.
_NAMES = (
    "federatedIdentityCredentialResourceName",
    "roleAssignmentName",
    "agentPoolName",
    "containerName",
    "shareName",
    "amlFilesystemName",
    "accountName",
    "natGatewayName",
    "publicIpAddressName",
    "subnetName",
    "virtualNetworkName",
    "configName",
    "resourceName",
    "resourceGroupName",
)


def azure_outputs(kind: str, name: str, inputs: dict[str, object]) -> dict[str, object]:
    """The computed outputs of a created Azure resource; `name` is its logical name."""
    if not kind.startswith("azure-native:"):
        return {}
    found = {"name": _physical_name(kind, name, inputs)}
    if kind.endswith(":UserAssignedIdentity"):
        return {**found, "principalId": PRINCIPAL, "clientId": CLIENT}
    if kind.endswith(":AmlFilesystem"):
        return {**found, "clientInfo": {"mgsAddress": FILE_SYSTEM}}
    if kind.endswith(":PublicIPAddress"):
        return {**found, "ipAddress": AZURE_ADDRESS}
    return found


def azure_inputs_shown(kind: str, inputs: dict[str, object]) -> dict[str, object]:
    """The inputs that Azure returns in another form, also on preview."""
    if not kind.endswith((":ManagedCluster", ":StorageAccount")) or "identity" not in inputs:
        return inputs
    return {**inputs, "identity": _identity(inputs)}


def _identity(inputs: dict[str, object]) -> dict[str, object]:
    """Inputs list identities by ID; outputs are a map by ID."""
    asked = cast("dict[str, object]", inputs["identity"])
    ids = [one for one in cast("list[object]", asked["userAssignedIdentities"]) if isinstance(one, str)]
    by_id = {one: {"principalId": PRINCIPAL, "clientId": CLIENT} for one in ids}
    return {**asked, "userAssignedIdentities": by_id}


def _physical_name(kind: str, name: str, inputs: dict[str, object]) -> object:
    own = _NAMES if kind.endswith(":ResourceGroup") else _NAMES[:-1]
    return next((inputs[one] for one in own if one in inputs), f"{name}0a1b2c3d")
