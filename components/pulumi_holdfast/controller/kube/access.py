"""The API server's address and certificates, and the controller's credentials.

The token of a service account may be exchanged for one that another cluster's cloud accepts. Each exchange is a generator of
requests: it receives the JSON of each response, and returns the token; `connection` sends the requests. A cluster that trusts
the issuer of the token itself (EKS, or any other with an AuthenticationConfiguration) needs no exchange.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias, cast
from urllib.parse import quote, urlencode, urlsplit

import yaml

from pulumi_holdfast.controller.kube.objects import moment, text
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence

#: The name of the extension of a kubeconfig's user that says how its token is exchanged.
EXTENSION: Final = "holdfast.dev/token-exchange"

#: What each kind of exchange is called in the extension.
GOOGLE: Final = "google"
ENTRA: Final = "entra"

_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"

# GKE knows a service account by its email only if the token has the second one; Google's own plugin for kubectl requests both.
_GKE_SCOPES: Final = (
    "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/userinfo.email",
)
# What the federated token is for: the other request.
_IMPERSONATION_SCOPE: Final = "https://www.googleapis.com/auth/iam"
_LIFETIME_SECONDS: Final = 3600

_MOST_CHARACTERS: Final = 400


class ExchangeError(Exception):
    """An exchange failed. Its text contains no token."""


@dataclass(frozen=True, kw_only=True)
class ExchangeRequest:
    """A POST request; its answer is JSON."""

    url: str
    content_type: str
    body: bytes = field(repr=False)
    bearer: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """The host that it is sent to, for messages."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, kw_only=True)
class AccessToken:
    """A token, and for how many seconds it is valid."""

    token: str = field(repr=False)
    seconds: float


#: Yields requests, receives the JSON of their answers, and returns the token. Raises ExchangeError for an answer without a token.
Exchange: TypeAlias = Generator[ExchangeRequest, Json, AccessToken]


@dataclass(frozen=True, kw_only=True)
class GoogleExchange:
    """Google's STS exchanges the token for a federated one, which gets the token of a service account.

    The fields are those of Google's credential configurations (`external_account`).
    """

    audience: str
    subject_token_type: str
    token_url: str
    impersonation_url: str

    def start(self, subject_token: str, now: float) -> Exchange:
        """Exchange a token; `now` is the time in seconds since 1970."""
        federated = yield ExchangeRequest(
            url=self.token_url,
            content_type=_FORM,
            body=_form(
                {
                    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                    "audience": self.audience,
                    "scope": _IMPERSONATION_SCOPE,
                    "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                    "subject_token": subject_token,
                    "subject_token_type": self.subject_token_type,
                }
            ),
        )
        wanted: Json = {"scope": [*_GKE_SCOPES], "lifetime": f"{_LIFETIME_SECONDS}s"}
        granted = yield ExchangeRequest(
            url=self.impersonation_url,
            content_type=_JSON,
            body=json.dumps(wanted).encode(),
            bearer=_token(federated, "access_token"),
        )
        seconds = _time(granted.get("expireTime")) - now
        if seconds <= 0:
            # Google has only just granted it.
            raise ExchangeError(
                f"the token expires {-seconds:.0f} s before the time of this machine: set the clock of this node"
            )
        return AccessToken(token=_token(granted, "accessToken"), seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class EntraExchange:
    """Microsoft Entra ID takes the token as the assertion of an identity, and issues one for the API server.

    `authority` is the address of Entra ID, `scope` the application of AKS's API servers.
    """

    authority: str
    tenant_id: str
    client_id: str
    scope: str

    def start(self, subject_token: str, now: float) -> Exchange:
        """Exchange a token."""
        del now  # the answer has the seconds
        granted = yield ExchangeRequest(
            url=f"{self.authority}/{quote(self.tenant_id, safe='')}/oauth2/v2.0/token",
            content_type=_FORM,
            body=_form(
                {
                    "grant_type": "client_credentials",
                    "client_id": self.client_id,
                    "scope": self.scope,
                    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                    "client_assertion": subject_token,
                }
            ),
        )
        return AccessToken(token=_token(granted, "access_token"), seconds=_seconds(granted.get("expires_in")))


TokenExchange: TypeAlias = GoogleExchange | EntraExchange


def exchange_of(user: Json) -> TokenExchange | None:
    """Return the exchange of a kubeconfig's user; None for a token that is sent as it is.

    Raises ConfigError for an unknown one.
    """
    for each in map(mapping, sequence(user.get("extensions"))):
        if each.get("name") == EXTENSION:
            return _read(mapping(each.get("extension")))
    return None


def _read(extension: Json) -> TokenExchange:
    google, entra = mapping(extension.get(GOOGLE)), mapping(extension.get(ENTRA))
    if google:
        return GoogleExchange(
            audience=_required(google, "audience"),
            subject_token_type=_required(google, "subject_token_type"),
            token_url=_address(google, "token_url"),
            impersonation_url=_address(google, "service_account_impersonation_url"),
        )
    if entra:
        return EntraExchange(
            authority=_address(entra, "authority").rstrip("/"),
            tenant_id=_required(entra, "tenantId"),
            client_id=_required(entra, "clientId"),
            scope=_required(entra, "scope"),
        )
    raise ConfigError.of(
        field=EXTENSION,
        value=", ".join(extension) or "nothing",
        allowed=f"{GOOGLE} or {ENTRA}",
        fix="Update both stacks with one release.",
    )


def _required(found: Json, name: str) -> str:
    value = text(found.get(name))
    if not value:
        raise ConfigError.of(
            field=f"{EXTENSION} {name}",
            value="nothing",
            allowed="a text",
            fix="Update the stack of the other cluster.",
        )
    return value


def _address(found: Json, name: str) -> str:
    value = _required(found, name)
    if not value.startswith(ADDRESSES) or address_fault(value) is not None:
        raise ConfigError.of(
            field=f"{EXTENSION} {name}",
            value=value,
            allowed="an https:// address with a host, or http:// to this machine",
            fix="Update the stack of the other cluster.",
        )
    return value


def refusal(status: int, content: bytes, secrets: tuple[str, ...] = ()) -> str:
    """Return a service's error message for a refused request, without the secrets that were sent."""
    answer: Json = {}
    with suppress(ValueError, RecursionError):
        answer = mapping(cast("JsonValue", json.loads(content)))
    # Google's services have an object, OAuth has a text with a description beside it.
    details = mapping(answer.get("error"))
    parts: list[JsonValue] = [
        answer.get("error"),
        answer.get("error_description"),
        details.get("status"),
        details.get("message"),
    ]
    said = " ".join(": ".join(text(part) for part in parts if text(part)).split())
    # Before it is cut: the rest of a token is a secret, too.
    for secret in filter(None, secrets):
        said = said.replace(secret, "…")
    return f"status {status}{f', {said[:_MOST_CHARACTERS]}' if said else ''}"


def _form(fields: Mapping[str, str]) -> bytes:
    return urlencode(fields).encode()


def _token(answer: Json, name: str) -> str:
    found = text(answer.get(name))
    if not found:
        raise ExchangeError(f"the answer has no {name}")
    return found


def _seconds(value: JsonValue) -> float:
    try:
        return float(value)  # pyright: ignore[reportArgumentType]  # what is no number is refused here
    except (TypeError, ValueError, OverflowError):
        raise ExchangeError("the answer does not say how long the token is valid") from None


def _time(value: JsonValue) -> float:
    found = moment(value)
    if found is None:
        raise ExchangeError("the answer does not say until when the token is valid")
    return found.timestamp()


#: How the address of a server begins that gets a secret: without TLS only on the same machine, as with `kubectl proxy`.
ADDRESSES: Final = ("https://", "http://127.0.0.1:", "http://[::1]:", "http://localhost:")


def address_fault(address: str) -> str | None:
    """Return the problem of an address, without the address itself; None if it is valid.

    For a host that cannot be a DNS name the resolver raises UnicodeError, which callers do not handle as an unreachable server.
    """
    if not address.isprintable() or " " in address:
        return "an address with a space or a control character"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "an address whose host or port cannot be read"
    if not host or port == 0:
        return "an address without a host" if not host else "an address with the port 0"
    try:
        # Twice: other characters may stand for a dot.
        host.encode("idna").decode("ascii").encode("idna")
    except UnicodeError:
        return "an address whose host has an empty part, or one of more than 63 characters"
    return None


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
