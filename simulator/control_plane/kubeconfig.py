"""Kubeconfigs of a control plane on this machine, and whether it answers."""

import base64
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import yaml

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.summary import mapping, sequence


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """An API server's address, and the certificates (PEM) by which it is known."""

    server: str
    authority: bytes


def render_kubeconfig(name: str, cluster: Cluster, user: Json) -> str:
    """The kubeconfig of one `user` of one cluster."""
    authority = base64.b64encode(cluster.authority).decode("ascii")
    entry: Json = {"server": cluster.server, "certificate-authority-data": authority}
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": entry}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def administrator(certificate: bytes, key: bytes) -> Json:
    """The user of a kubeconfig that holds all it needs: it outlives the files it was made from. Both are PEM."""
    encoded = {"client-certificate-data": certificate, "client-key-data": key}
    return {field: base64.b64encode(data).decode("ascii") for field, data in encoded.items()}


def read_cluster(kubeconfig: Path) -> Cluster:
    """The cluster of a kubeconfig that `render_kubeconfig` made.

    Raises RehearsalError where the file is missing or is another.
    """
    try:
        document: JsonValue = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        entry = mapping(mapping(next(iter(sequence(mapping(document).get("clusters"))), None)).get("cluster"))
        authority = base64.b64decode(str(entry["certificate-authority-data"]), validate=True)
        return Cluster(server=str(entry["server"]), authority=authority)
    except (OSError, KeyError, ValueError, yaml.YAMLError) as error:
        raise RehearsalError(
            f"{kubeconfig} is not the kubeconfig of a local control plane ({error}): start the control plane first"
        ) from error


def answers_ready(*, server: str, pki_dir: Path, timeout_seconds: float = 2) -> bool:
    """Whether the API server at `server` answers, and says that all its parts are ready."""
    try:
        context = ssl.create_default_context(cafile=str(pki_dir / "ca.crt"))
        context.load_cert_chain(str(pki_dir / "admin.crt"), str(pki_dir / "admin.key"))
        # Never through a proxy the user's environment names: this is a loopback address.
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
        with opener.open(f"{server}/readyz", timeout=timeout_seconds) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False
