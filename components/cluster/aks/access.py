"""From where the API server is reached. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import ManagedClusterAPIServerAccessProfileArgsDict

    from holdfast.scheduling.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True)
class PublicAccess:
    """By a public address, from these ranges (`203.0.113.0/24`) and from the nodes' own.

    The ranges include whoever runs `pulumi`. Raises ValueError for no range at all: AKS takes that for the whole
    internet.
    """

    cidrs: Sequence[str]

    def __post_init__(self) -> None:
        """Refuse what AKS would take for everybody."""
        if not self.cidrs:
            raise ValueError("cidrs is empty: AKS would let in the whole internet; name a range")

    def as_profile(self, egress_cidrs: Sequence[Input[str]]) -> ManagedClusterAPIServerAccessProfileArgsDict:
        """How AKS spells it; nodes come to the public address too, by the way that they call out.

        `egress_cidrs` are the ranges that nodes are seen to call from. AKS adds those of its own load balancer by itself,
        and no other: nodes behind a NAT gateway that is left out never join.
        """
        return {"enable_private_cluster": False, "authorized_ip_ranges": [*self.cidrs, *egress_cidrs]}

    @property
    def name_to_use(self) -> Literal["public"] | None:
        """Which of a cluster's names clients are given; None: its only one."""
        return None


@dataclass(frozen=True, kw_only=True)
class PrivateAccess:
    """By a private address in the nodes' network alone: whoever runs `pulumi` is in it, or beside it.

    `public_name`: the name that leads to the private address is known to everybody, who is not let in for that.
    Otherwise only hosts whose network is linked to the cluster's private DNS zone know it, and AKS links the nodes' own.
    """

    public_name: bool = False

    def as_profile(self, egress_cidrs: Sequence[Input[str]]) -> ManagedClusterAPIServerAccessProfileArgsDict:
        """How AKS spells it. It takes no ranges for a private address."""
        del egress_cidrs
        return {
            "enable_private_cluster": True,
            "enable_private_cluster_public_fqdn": self.public_name,
            "private_dns_zone": "system",
        }

    @property
    def name_to_use(self) -> Literal["public"] | None:
        """Which of a cluster's names clients are given; None: the private one, which AKS gives by itself."""
        return "public" if self.public_name else None


ApiServerAccess: TypeAlias = PublicAccess | PrivateAccess


#: Room for 1024 nodes, of which each has a /24: AKS's own default holds 256, surplus ones of an upgrade included.
PODS_CIDR: Final = "10.244.0.0/14"
SERVICES_CIDR: Final = "172.20.0.0/16"

#: The address of Kubernetes' DNS among the Services', counted from the first. The one after the first is the API server's.
_DNS: Final = 10


def dns_service_ip(services_cidr: str) -> str:
    """The address of the cluster's DNS. AKS knows one for its own default range alone."""
    return str(IPv4Network(services_cidr)[_DNS])


#: The program that whoever uses the kubeconfig needs on their PATH.
KUBELOGIN: Final = "kubelogin"

#: Whose credentials kubelogin uses: the Azure CLI's, those of a federated token, or a service principal's. Who has to
#: use others on their machine says so in AAD_LOGIN_METHOD, which kubelogin heeds first: the stack does not change.
Login: TypeAlias = Literal["azurecli", "workloadidentity", "spn"]

#: What every AKS cluster is called in Entra ID: the application that tokens are for.
_SERVER: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"

_INSTALL_HINT: Final = f"{KUBELOGIN} is not on PATH: install it with `az aks install-cli`, or from https://azure.github.io/kubelogin"


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """Where the API server of a cluster is: its URL, and its certificate authority in base64."""

    url: str
    certificate_authority: str


def api_server(credentials: str) -> ApiServer:
    """The API server that AKS names in the credentials it hands out: a kubeconfig in base64.

    Nothing else says which certificate authority a cluster has. Raises ValueError where it names none.
    """
    try:
        document = cast("JsonValue", yaml.safe_load(base64.b64decode(credentials, validate=True)))
    except (binascii.Error, UnicodeDecodeError, yaml.YAMLError):
        document = None
    clusters = _at(document, "clusters")
    first = clusters[0] if isinstance(clusters, list) and clusters else None
    url, authority = (_text(_at(first, "cluster"), key) for key in ("server", "certificate-authority-data"))
    if url is None or authority is None:
        raise ValueError("AKS handed out credentials that name no API server with a certificate authority")
    return ApiServer(url=url, certificate_authority=authority)


def _at(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: JsonValue, key: str) -> str | None:
    found = _at(value, key)
    return found if isinstance(found, str) else None


def kubeconfig(server: ApiServer, *, cluster_name: str, tenant_id: str, login: Login) -> str:
    """A kubeconfig that holds no credential: whoever uses it is asked for their own."""
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster_name,
                "cluster": {
                    "server": server.url,
                    "certificate-authority-data": server.certificate_authority,
                },
            }
        ],
        "contexts": [{"name": cluster_name, "context": {"cluster": cluster_name, "user": cluster_name}}],
        "current-context": cluster_name,
        "users": [{"name": cluster_name, "user": {"exec": _token_command(tenant_id, login)}}],
    }
    return json.dumps(document)


def _token_command(tenant_id: str, login: Login) -> Json:
    arguments: Sequence[str] = (
        "get-token",
        "--login",
        login,
        "--environment",
        "AzurePublicCloud",
        "--server-id",
        _SERVER,
        "--tenant-id",
        tenant_id,
    )
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": KUBELOGIN,
        "args": [*arguments],
        "installHint": _INSTALL_HINT,
        # A prompt would hang an unattended run.
        "interactiveMode": "Never",
        "provideClusterInfo": False,
    }
