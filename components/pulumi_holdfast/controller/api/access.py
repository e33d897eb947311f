"""The API server's address and certificates, and the controller's credentials."""

import base64
import binascii
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from pulumi_holdfast.controller.api.addresses import ADDRESSES, address_fault
from pulumi_holdfast.controller.api.objects import text
from pulumi_holdfast.controller.api.token_exchange import TokenExchange, exchange_of
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence

# Where Kubernetes mounts a pod's own token and the API server's certificates.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class ClientCertificate:
    """A certificate and its key, both PEM. The key is in no printed form."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ApiAccess:
    """One API server and one identity.

    `authority` is the CA of its certificate (PEM), None for the machine's own trust store. One of `certificate`,
    `token` and `token_file` authenticates the client; the file is read again every minute. `exchange` is the exchange
    of its token, None for a token that is sent unchanged.
    """

    server: str
    authority: bytes | None = None
    certificate: ClientCertificate | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    exchange: TokenExchange | None = None

    def ssl_context(self) -> ssl.SSLContext:
        """Return the context of TLS connections. Raises ConfigError if a certificate cannot be read."""
        try:
            authority = None if self.authority is None else self.authority.decode("ascii")
            context = ssl.create_default_context(cadata=authority)
            if self.certificate is not None:
                _load(context, self.certificate)
        except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
            raise _config_error(
                "certificates", str(error), "PEM certificates", "Create the file again."
            ) from error
        return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    # The ssl module reads a certificate from files only.
    with TemporaryDirectory() as folder:
        chain, key = Path(folder) / "chain", Path(folder) / "key"
        for path, content in ((chain, certificate.certificate), (key, certificate.key)):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(chain, key)


def read_token(file: Path) -> str:
    """Return the token in a file. Raises ConfigError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise _config_error("tokenFile", str(file), "a readable file", str(error)) from error


def in_cluster(variables: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ApiAccess:
    """Return the access that every pod has. Raises ConfigError outside a pod."""
    host, port = variables.get("KUBERNETES_SERVICE_HOST"), variables.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise _config_error(
            "KUBERNETES_SERVICE_HOST",
            "nothing",
            "the API server's address, as in every pod",
            "Set --kubeconfig outside a cluster.",
        )
    authority, token = folder / "ca.crt", folder / "token"
    try:
        certificates = authority.read_bytes()
    except OSError as error:
        fix = "Enable automountServiceAccountToken for this pod."
        raise _config_error("service account", str(authority), "a readable file", fix) from error
    address = f"[{host}]" if ":" in host else host
    return ApiAccess(server=f"https://{address}:{port}", authority=certificates, token_file=token)


def from_kubeconfig(path: Path) -> ApiAccess:
    """Return the access of a kubeconfig's current context.

    Raises ConfigError for an invalid file, and for credentials from a plugin (`exec`): the controller's image has none.
    """
    try:
        document: JsonValue = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _config_error("--kubeconfig", str(path), "a readable kubeconfig", str(error)) from error
    config = mapping(document)
    context = _named(config, "contexts", "context", text(config.get("current-context")), path)
    cluster = _named(config, "clusters", "cluster", text(context.get("cluster")), path)
    user = _named(config, "users", "user", text(context.get("user")), path)
    if "exec" in user or "auth-provider" in user:
        fix = "Use a kubeconfig with a certificate, a token or a tokenFile."
        raise _config_error("users[].user", "exec or auth-provider", "certificate, token, tokenFile", fix)
    server = text(cluster.get("server"))
    if not server.startswith(ADDRESSES):
        allowed = "an https:// address, or http:// to this machine"
        raise _config_error("clusters[].cluster.server", server or "nothing", allowed, f"Fix {path}.")
    if (fault := address_fault(server)) is not None:
        allowed = "an address with a host, and a port up to 65535 if it has one"
        raise _config_error("clusters[].cluster.server", f"{server}, {fault}", allowed, f"Fix {path}.")
    chain, key = _data(user, "client-certificate", path), _data(user, "client-key", path)
    file = text(user.get("tokenFile"))
    return ApiAccess(
        server=server.rstrip("/"),
        authority=_data(cluster, "certificate-authority", path),
        certificate=ClientCertificate(certificate=chain, key=key) if chain and key else None,
        token=text(user.get("token")) or None,
        token_file=path.parent / file if file else None,
        exchange=exchange_of(user),
    )


def _named(config: Json, plural: str, singular: str, name: str, path: Path) -> Json:
    for each in map(mapping, sequence(config.get(plural))):
        if each.get("name") == name:
            return mapping(each.get(singular))
    raise _config_error(
        f"{plural}[]", f"no {name or 'name'}", f"the current context's {singular}", f"Fix {path}."
    )


def _data(entry: Json, name: str, path: Path) -> bytes | None:
    inline, file = text(entry.get(f"{name}-data")), text(entry.get(name))
    try:
        if inline:
            return base64.b64decode(inline, validate=True)
        return (path.parent / file).read_bytes() if file else None
    except (OSError, binascii.Error) as error:
        raise _config_error(name, file or "its data", "a readable PEM file, or base64", str(error)) from error


def _config_error(field_name: str, value: str, allowed: str, fix: str) -> ConfigError:
    return ConfigError.of(field=field_name, value=value, allowed=allowed, fix=fix)
