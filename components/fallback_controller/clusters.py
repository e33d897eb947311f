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
_FOLDER: Final = "/var/run/holdfast/clusters"
_TOKEN: Final = "token"  # noqa: S105 - the name of a file
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
    return [f"--cluster={each.name}={_FOLDER}/{each.name}/kubeconfig" for each in clusters]


def mounts(clusters: Sequence[OtherCluster]) -> Sequence[Json]:
    """Return the volume mount of the controller's container; none without other clusters."""
    return [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}] if clusters else []


def volumes(clusters: Sequence[OtherCluster]) -> Sequence[Json]:
    """Return the volume of the controller's pod: a folder for each cluster, with its kubeconfig and the token for it."""
    if not clusters:
        return []
    kubeconfigs: JsonValue = [{"key": each.name, "path": f"{each.name}/kubeconfig"} for each in clusters]
    tokens = [
        {
            "serviceAccountToken": {
                # An output, which the engine resolves.
                "audience": cast("str", each.server),
                "expirationSeconds": _TOKEN_SECONDS,
                "path": f"{each.name}/{_TOKEN}",
            }
        }
        for each in clusters
    ]
    return [
        {
            "name": _VOLUME,
            "projected": {"sources": [{"configMap": {"name": CONFIG_MAP, "items": kubeconfigs}}, *tokens]},
        }
    ]


def config_map_data(clusters: Sequence[OtherCluster]) -> Mapping[str, Output[str]]:
    """Return the data of the ConfigMap, which contains no credential."""
    return {
        each.name: Output.all(each.server, each.certificate_authority).apply(
            lambda known: kubeconfig(*cast("tuple[str, str]", tuple(known)))
        )
        for each in clusters
    }


def kubeconfig(server: str, certificate_authority: str) -> str:
    """Return a kubeconfig that reads the token from the file beside it."""
    authority: Json = {"certificate-authority-data": certificate_authority} if certificate_authority else {}
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "there", "cluster": {"server": server, **authority}}],
        "users": [{"name": CONTROLLER, "user": {"tokenFile": _TOKEN}}],
        "contexts": [{"name": "there", "context": {"cluster": "there", "user": CONTROLLER}}],
        "current-context": "there",
    }
    return json.dumps(document)
