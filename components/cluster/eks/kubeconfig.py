"""How a client gets into the cluster: by a token that it asks the AWS CLI for. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

#: What clients ask for a token.
AWS_CLI: Final = "aws"


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """Where the API server of a cluster is: its address, and its certificate authority in base64."""

    cluster_name: str
    region: str
    endpoint: str
    certificate_authority: str


def kubeconfig(server: ApiServer, aws_profile: str | None) -> str:
    """A kubeconfig that holds no credential: whoever uses it is asked for their own.

    `aws_profile` is the profile of the AWS CLI to ask as; None: whatever the CLI finds in its surroundings.
    """
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": server.cluster_name,
                "cluster": {
                    "server": server.endpoint,
                    "certificate-authority-data": server.certificate_authority,
                },
            }
        ],
        "contexts": [
            {
                "name": server.cluster_name,
                "context": {"cluster": server.cluster_name, "user": server.cluster_name},
            }
        ],
        "current-context": server.cluster_name,
        "users": [{"name": server.cluster_name, "user": {"exec": _token_command(server, aws_profile)}}],
    }
    return json.dumps(document)


def _token_command(server: ApiServer, aws_profile: str | None) -> Json:
    profile: Json = {} if aws_profile is None else {"env": [{"name": "AWS_PROFILE", "value": aws_profile}]}
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": AWS_CLI,
        "args": [
            "eks",
            "get-token",
            "--cluster-name",
            server.cluster_name,
            "--region",
            server.region,
            "--output",
            "json",
        ],
        # A prompt would hang an unattended run.
        "interactiveMode": "Never",
        **profile,
    }
