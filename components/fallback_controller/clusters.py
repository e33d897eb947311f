"""How the fallback controller reaches the other clusters of ladders: a kubeconfig for each, and a token of its own, never a stored key.

The kubelet requests the token for the address of the other API server, and requests the next one before it expires. The other cluster trusts
the issuer of this cluster's tokens (OpenID Connect).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pulumi import Output

from holdfast.scheduling.labels import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from holdfast.scheduling.json import Json, JsonValue

#: The ConfigMap with a kubeconfig for each cluster, by its name.
CONFIG_MAP: Final = f"{CONTROLLER}-clusters"

_VOLUME: Final = "clusters"
_FOLDER: Final = "/etc/holdfast/clusters"
_TOKENS: Final = "cluster-tokens"
_TOKEN_FOLDER: Final = "/var/run/secrets/holdfast/clusters"  # noqa: S105 - a folder
_TOKEN_SECONDS: Final = 3600


@dataclass(frozen=True, kw_only=True)
class OtherCluster:
    """Another cluster of ladders, by the name that tiers have for it.

    `server` is the address of its API server, which is the audience of the controller's tokens, too. `certificate_authority` is in base64;
    empty for a certificate that the image's own authorities have signed.
    """

    name: str
    server: Input[str]
    certificate_authority: Input[str] = ""


def arguments(clusters: Sequence[OtherCluster]) -> Sequence[str]:
    """Return the arguments of the controller."""
    return [f"--cluster={each.name}={_FOLDER}/{each.name}" for each in clusters]


def mounts(clusters: Sequence[OtherCluster]) -> Sequence[Json]:
    """Return the volume mounts of the controller's container; none without other clusters."""
    folders = {_VOLUME: _FOLDER, _TOKENS: _TOKEN_FOLDER} if clusters else {}
    return [{"name": name, "mountPath": folder, "readOnly": True} for name, folder in folders.items()]


def volumes(clusters: Sequence[OtherCluster]) -> Sequence[Json]:
    """Return the volumes of the controller's pod: the kubeconfigs and the tokens, by the names of the clusters."""
    if not clusters:
        return []
    tokens: JsonValue = [
        {
            "serviceAccountToken": {
                # An output, which the engine resolves.
                "audience": cast("str", each.server),
                "expirationSeconds": _TOKEN_SECONDS,
                "path": each.name,
            }
        }
        for each in clusters
    ]
    return [
        {"name": _VOLUME, "configMap": {"name": CONFIG_MAP}},
        {"name": _TOKENS, "projected": {"sources": tokens}},
    ]


def config_map_data(clusters: Sequence[OtherCluster]) -> Mapping[str, Output[str]]:
    """Return the data of the ConfigMap, which contains no credential."""
    return {
        each.name: Output.all(each.server, each.certificate_authority).apply(
            lambda known, name=each.name: kubeconfig(
                *cast("tuple[str, str]", tuple(known)), f"{_TOKEN_FOLDER}/{name}"
            )
        )
        for each in clusters
    }


def kubeconfig(server: str, certificate_authority: str, token_file: str) -> str:
    """Return a kubeconfig with the token of a file."""
    authority: Json = {"certificate-authority-data": certificate_authority} if certificate_authority else {}
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "there", "cluster": {"server": server, **authority}}],
        "users": [{"name": CONTROLLER, "user": {"tokenFile": token_file}}],
        "contexts": [{"name": "there", "context": {"cluster": "there", "user": CONTROLLER}}],
        "current-context": "there",
    }
    return json.dumps(document)
