"""How a client gets into the cluster: by a token that it asks Google's plugin for. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

#: The program that whoever uses the kubeconfig needs on their PATH.
AUTH_PLUGIN: Final = "gke-gcloud-auth-plugin"

_INSTALL_HINT: Final = (
    f"{AUTH_PLUGIN} is not on PATH: install it with `gcloud components install {AUTH_PLUGIN}`, or as the package "
    f"google-cloud-cli-{AUTH_PLUGIN}"
)


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """Where the API server of a cluster is.

    `host` is a name or an address; `certificate_authority`, in base64, is the cluster's own, and None for the DNS
    endpoint: it has a certificate that every client trusts anyway, and the cluster's authority did not sign it.
    """

    cluster_name: str
    host: str
    certificate_authority: str | None


def kubeconfig(server: ApiServer) -> str:
    """A kubeconfig that holds no credential: whoever uses it is asked for their own."""
    authority: Json = (
        {}
        if server.certificate_authority is None
        else {"certificate-authority-data": server.certificate_authority}
    )
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": server.cluster_name, "cluster": {"server": f"https://{server.host}", **authority}}
        ],
        "contexts": [
            {
                "name": server.cluster_name,
                "context": {"cluster": server.cluster_name, "user": server.cluster_name},
            }
        ],
        "current-context": server.cluster_name,
        "users": [{"name": server.cluster_name, "user": {"exec": _TOKEN_COMMAND}}],
    }
    return json.dumps(document)


_TOKEN_COMMAND: Final[Json] = {
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "command": AUTH_PLUGIN,
    # The credentials that Pulumi uses. Without this it is whoever `gcloud auth list` shows, who may be another.
    "args": ["--use_application_default_credentials"],
    "installHint": _INSTALL_HINT,
    # A prompt would hang an unattended run.
    "interactiveMode": "Never",
    "provideClusterInfo": True,
}
