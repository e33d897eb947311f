"""The services of clouds that exchange tokens, on this machine: Google's Security Token Service and IAM, and Microsoft Entra ID.

They verify home's token as the clouds do: signature by the keys that its API server publishes, issuer, audience, times and subject. What they
require is what the components ask the clouds for. An API server asks them who a token is of (its webhook for token authentication), as those of
GKE and AKS ask their cloud.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, cast
from urllib.parse import parse_qs
from urllib.request import urlopen

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.json_objects import obj, objects

# Of a signature by SHA-256, as PKCS #1 encodes its digest.
_SHA256_PREFIX: Final = bytes.fromhex("3031300d060960864801650304020105000420")
_HOUR: Final = 3600
_SCOPES: Final = frozenset(
    {"https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"}
)
_FORM: Final = "application/x-www-form-urlencoded"


class Refused(Exception):  # noqa: N818 - says what is wrong
    """A service refuses a request."""


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What a cloud requires of a token: its issuer, its audience and its subject."""

    issuer: str
    audience: str
    subject: str


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The public keys of an API server, which it publishes."""

    server: str
    authority: bytes

    def read(self) -> Mapping[str, tuple[int, int]]:
        """Return modulus and exponent of each key by its id."""
        context = ssl.create_default_context(cadata=self.authority.decode())
        with urlopen(f"{self.server}/openid/v1/jwks", context=context) as answer:
            found = cast("Json", json.loads(answer.read()))
        return {
            str(key["kid"]): (_number(str(key["n"])), _number(str(key["e"])))
            for key in objects(found["keys"])
        }


def verify(token: str, trust: Trust, keys: Keys) -> None:
    """Verify a token. Raises Refused."""
    try:
        head, body, signature = token.split(".")
        header, claims = (cast("Json", json.loads(_decoded(part))) for part in (head, body))
        modulus, exponent = keys.read()[str(header["kid"])]
    except (ValueError, KeyError) as error:
        raise Refused("it is no token of this issuer") from error
    size = (modulus.bit_length() + 7) // 8
    digest = _SHA256_PREFIX + hashlib.sha256(f"{head}.{body}".encode()).digest()
    expected = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    signed = pow(int.from_bytes(_decoded(signature), "big"), exponent, modulus).to_bytes(size, "big")
    if header["alg"] != "RS256" or signed != expected:
        raise Refused("the signature is wrong")
    if claims["iss"] != trust.issuer:
        raise Refused("it has another issuer")
    if trust.audience not in cast("list[str]", claims["aud"]):
        raise Refused(f"the audience {claims['aud']} does not match the expected audience {trust.audience}")
    if not cast("int", claims["nbf"]) <= time.time() < cast("int", claims["exp"]):
        raise Refused("it has expired")
    if claims["sub"] != trust.subject:
        raise Refused(f"the subject {claims['sub']} is rejected")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(_decoded(text), "big")


@dataclass
class TokenServices:
    """The services, at `address`. `google` and `entra` are what they trust, `google_email` and `entra_object_id` the users that a token becomes."""

    keys: Keys
    google: Trust
    entra: Trust
    google_email: str
    entra_object_id: str
    entra_client_id: str
    entra_scope: str
    address: str = ""
    federated: set[str] = field(default_factory=set[str])
    users: dict[str, str] = field(default_factory=dict[str, str])

    def answer(self, path: str, bearer: str, fields: Json) -> Json:
        """Answer a request. Raises Refused."""
        if path == "/v1/token":
            verify(str(fields["subject_token"]), self.google, self.keys)
            if fields["audience"] != self.google.audience.removeprefix("https:"):
                raise Refused("no such provider")
            return {
                "access_token": self._made(self.federated.add),
                "expires_in": _HOUR,
                "token_type": "Bearer",
            }
        if path.endswith(f"/serviceAccounts/{self.google_email}:generateAccessToken"):
            if bearer not in self.federated or not {*cast("list[str]", fields["scope"])} >= _SCOPES:
                raise Refused("Permission 'iam.serviceAccounts.getAccessToken' denied")
            until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _HOUR))
            return {"accessToken": self._made(self._knows(self.google_email)), "expireTime": until}
        if path.endswith("/oauth2/v2.0/token"):
            verify(str(fields["client_assertion"]), self.entra, self.keys)
            if (fields["client_id"], fields["scope"]) != (self.entra_client_id, self.entra_scope):
                raise Refused("AADSTS70011: no such application")
            return {"access_token": self._made(self._knows(self.entra_object_id)), "expires_in": _HOUR}
        if path == "/tokenreview":
            user = self.users.get(str(obj(fields["spec"])["token"]))
            known: Json = (
                {"authenticated": True, "user": {"username": user}} if user else {"authenticated": False}
            )
            return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": known}
        raise Refused(f"no service at {path}")

    def webhook(self) -> Json:
        """The configuration with which an API server asks who a token is of."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cloud", "cluster": {"server": f"{self.address}/tokenreview"}}],
            "users": [{"name": "api-server", "user": {}}],
            "contexts": [{"name": "cloud", "context": {"cluster": "cloud", "user": "api-server"}}],
            "current-context": "cloud",
        }

    def _made(self, keep: Callable[[str], object]) -> str:
        token = secrets.token_urlsafe(32)
        keep(token)
        return token

    def _knows(self, user: str) -> Callable[[str], object]:
        return lambda token: self.users.__setitem__(token, user)


@contextmanager
def serving(services: TokenServices) -> Generator[None]:
    """Serve on a port of this machine; sets `address`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            fields: Json = (
                {name: values[0] for name, values in parse_qs(body).items()}
                if self.headers["Content-Type"] == _FORM
                else cast("Json", json.loads(body))
            )
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, answer = 200, cast("JsonValue", None)
            try:
                answer = services.answer(self.path.partition("?")[0], bearer, fields)
            except Refused as error:
                status, answer = 400, {"error": "invalid_grant", "error_description": str(error)}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the parameter
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    services.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
