"""How a client gets into the cluster: by a token that it asks kubelogin for. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json, JsonValue

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
