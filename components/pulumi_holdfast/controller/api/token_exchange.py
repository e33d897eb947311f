"""Exchanges the token of a service account for one that another cluster's cloud accepts. Pure.

Each exchange is a generator of requests: it receives the JSON of each response, and returns the token. `exchanged_token`
sends the requests. A cluster that trusts the issuer of the token itself (EKS, or any other with an
AuthenticationConfiguration) needs no exchange.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast
from urllib.parse import quote, urlencode, urlsplit

from pulumi_holdfast.controller.api.addresses import ADDRESSES, address_fault
from pulumi_holdfast.controller.api.objects import moment, text
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
