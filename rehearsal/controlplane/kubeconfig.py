"""The administrator's kubeconfig of a control plane."""

import base64
import ssl
from pathlib import Path
from urllib.error import URLError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import yaml

from rehearsal.json import Json


def render_kubeconfig(*, name: str, server: str, authority: bytes, certificate: bytes, key: bytes) -> str:
    """A kubeconfig that holds all it needs: it can be moved, and outlives the files it was made from.

    `authority`, `certificate` and `key` are PEM.
    """
    user = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
    return yaml.safe_dump(kubeconfig_document(name, server, authority, user), sort_keys=False)


def kubeconfig_document(name: str, server: str, authority: bytes, user: Json) -> Json:
    """The kubeconfig of one `user` of one API server, who trusts the certificates in `authority` (PEM)."""
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


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


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
