"""How the fallback controller reaches the other clusters of ladders: a kubeconfig for each, and a token of its own, never a stored key.

The kubelet requests the token, and requests the next one before it expires. The other cluster trusts the issuer of this cluster's tokens
(OpenID Connect): its API server itself, for which the token is then, or its cloud, which exchanges the token for its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from pulumi import Output

from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.ladder.labels import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.ladder.json import Json, JsonValue

#: The ConfigMap with a kubeconfig for each cluster, by its name.
CONFIG_MAP: Final = f"{CONTROLLER}-clusters"

_VOLUME: Final = "clusters"
_FOLDER: Final = "/etc/holdfast/clusters"
_TOKENS: Final = "cluster-tokens"
_TOKEN_FOLDER: Final = "/var/run/secrets/holdfast/clusters"  # noqa: S105 - a folder
_TOKEN_SECONDS: Final = 3600

#: The name of the extension of a kubeconfig's user that says how its token is exchanged, as `pulumi_holdfast.controller` reads it.
EXCHANGE: Final = "holdfast.dev/token-exchange"


@dataclass(frozen=True, kw_only=True)
class OtherCluster:
    """Another cluster of ladders, by the name that tiers have for it.

    `server` is the address of its API server. `certificate_authority` is in base64; empty for a certificate that the image's own
    authorities have signed. `exchange` says how its cloud exchanges the controller's tokens; empty for an API server that takes them
    as they are.
    """

    name: str
    server: Input[str]
    certificate_authority: Input[str] = ""
    exchange: Input[Json] = field(default_factory=dict[str, "JsonValue"])

    @property
    def audience(self) -> Output[str]:
        """The audience of the controller's tokens: nothing else accepts one."""
        return Output.all(self.server, self.exchange).apply(
            lambda known: str(mapping(cast("Json", known[1])).get("tokenAudience") or known[0])
        )

    def kubeconfig(self, token_file: str) -> Output[str]:
        """The kubeconfig of the cluster, which contains no credential."""
        return Output.all(self.server, self.certificate_authority, self.exchange).apply(
            lambda known: kubeconfig(
                *cast("tuple[str, str]", tuple(known[:2])), token_file, cast("Json", known[2])
            )
        )


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
                "audience": cast("str", each.audience),
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
    return {each.name: each.kubeconfig(f"{_TOKEN_FOLDER}/{each.name}") for each in clusters}


def kubeconfig(server: str, certificate_authority: str, token_file: str, exchange: Json | None = None) -> str:
    """Return a kubeconfig with the token of a file, and how it is exchanged."""
    authority: Json = {"certificate-authority-data": certificate_authority} if certificate_authority else {}
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "there", "cluster": {"server": server, **authority}}],
        "users": [
            {"name": CONTROLLER, "user": {"tokenFile": token_file, **_extensions(token_file, exchange or {})}}
        ],
        "contexts": [{"name": "there", "context": {"cluster": "there", "user": CONTROLLER}}],
        "current-context": "there",
    }
    return json.dumps(document)


def _extensions(token_file: str, exchange: Json) -> Json:
    if not exchange:
        return {}
    google = mapping(exchange.get("google"))
    # A credential configuration as Google's own libraries read it.
    completed: Json = {"google": {**google, "credential_source": {"file": token_file}}} if google else {}
    extension = {key: value for key, value in exchange.items() if key != "tokenAudience"}
    return {"extensions": [{"name": EXCHANGE, "extension": {**extension, **completed}}]}
