"""The requests of exchanges, judged by the libraries of the clouds: Google's `google-auth` and Microsoft's `azure-identity`."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, cast
from urllib.parse import parse_qs

import pytest
from azure.core.pipeline.transport import HttpRequest, HttpTransport
from azure.identity import ClientAssertionCredential
from google.auth.identity_pool import Credentials
from google.auth.transport import Request, Response
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.kube.access import (
    EXTENSION,
    AccessToken,
    EntraExchange,
    ExchangeError,
    ExchangeRequest,
    GoogleExchange,
    TokenExchange,
    exchange_of,
    from_kubeconfig,
    refusal,
)
from pulumi_holdfast.gcp.control_plane.access import token_exchange
from pulumi_holdfast.kubernetes.fallback_controller.clusters import EXCHANGE, kubeconfig
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from tests.support.json_objects import obj, objects

_PROVIDER: Final = "projects/123456789012/locations/global/workloadIdentityPools/holdfast-1/providers/home"
_EMAIL: Final = "from-us-east-1-0a1b2c3d@ml-dev.iam.gserviceaccount.com"
_SCOPES: Final = (
    "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/userinfo.email",
)
_SUBJECT: Final = "eyJ.of-home.c2ln"
_FORM: Final = "application/x-www-form-urlencoded"

_ANSWERS: Final[tuple[Json, ...]] = (
    {"access_token": "federated", "token_type": "Bearer", "expires_in": 3600},
    {"accessToken": "of-account", "expireTime": "2099-01-01T00:00:00Z"},
)


def written(folder: Path, exchange: Json) -> Path:
    """A kubeconfig with an exchange, as home's stack writes it, and the token beside it."""
    (folder / "token").write_text(_SUBJECT)
    path = folder / "kubeconfig"
    path.write_text(kubeconfig("https://there", "", str(folder / "token"), exchange))
    return path


def sent(exchange: TokenExchange, answers: tuple[Json, ...]) -> list[ExchangeRequest]:
    """The requests of an exchange."""
    steps = exchange.start(_SUBJECT, 0.0)
    found = [next(steps)]
    for answer in answers:
        try:
            found.append(steps.send(answer))
        except StopIteration:
            return found
    raise AssertionError("it has more requests than answers")


def seen(url: str, headers: Mapping[str, str], fields: Json) -> Json:
    """What a service receives of a request, without nulls, which say nothing."""
    lower = {name.lower(): value for name, value in headers.items()}
    given = {name: value for name, value in fields.items() if value is not None}
    return {
        "url": url,
        "type": lower.get("content-type"),
        "bearer": lower.get("authorization"),
        "fields": given,
    }


def fields_of(content_type: str, body: bytes) -> Json:
    """The fields of a body: of a form, or of JSON."""
    if content_type == _FORM:
        return {name: values[0] for name, values in parse_qs(body.decode()).items()}
    return cast("Json", json.loads(body))


def as_seen(request: ExchangeRequest) -> Json:
    """What a service receives of one of ours."""
    bearer = {} if request.bearer is None else {"Authorization": f"Bearer {request.bearer}"}
    return seen(
        request.url,
        {"Content-Type": request.content_type, **bearer},
        fields_of(request.content_type, request.body),
    )


class _Answer(Response):
    def __init__(self, content: Json) -> None:
        self._content = content

    @property
    def status(self) -> int:
        return 200

    @property
    def headers(self) -> Mapping[str, str]:
        return {"content-type": "application/json"}

    @property
    def data(self) -> bytes:
        return json.dumps(self._content).encode()


class _Recorder(Request):
    """Answers google-auth, and keeps what it sends."""

    def __init__(self) -> None:
        self.requests: list[Json] = []

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: int | None = None,
        **kwargs: object,
    ) -> Response:
        assert method == "POST"
        given = dict(headers or {})
        kind = given.get("Content-Type") or given["content-type"]
        self.requests.append(seen(url, given, fields_of(kind, body or b"")))
        return _Answer(_ANSWERS[len(self.requests) - 1])


def test_google_receives_what_its_own_library_sends(tmp_path: Path) -> None:
    path = written(tmp_path, token_exchange(_PROVIDER, _EMAIL))
    user = obj(objects(json.loads(path.read_text())["users"])[0]["user"])
    (extension,) = objects(user["extensions"])
    # What the stack writes is a credential configuration that Google's library reads as it is.
    configuration = obj(obj(extension["extension"])["google"])
    credentials = Credentials.from_info(configuration, scopes=_SCOPES)  # pyright: ignore[reportUnknownMemberType] - google-auth has no types
    judge = _Recorder()
    credentials.refresh(judge)  # pyright: ignore[reportUnknownMemberType] - google-auth has no types
    exchange = from_kubeconfig(path).exchange
    assert exchange is not None
    assert [as_seen(each) for each in sent(exchange, _ANSWERS)] == judge.requests
    assert "of-account" in str(vars(credentials))


class _Entra(HttpTransport[HttpRequest, object]):
    """Answers azure-identity, and keeps what it sends to get a token."""

    def __init__(self) -> None:
        self.requests: list[Json] = []

    def send(self, request: HttpRequest, **kwargs: object) -> object:
        if request.method == "POST":
            # Of a form, the library gives its transport the fields.
            self.requests.append(seen(request.url, dict(request.headers), cast("Json", request.body)))
        return _EntraAnswer(request)

    def open(self) -> None: ...

    def close(self) -> None: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...

    def __enter__(self) -> "_Entra":
        return self


class _EntraAnswer:
    status_code: Final = 200
    reason: Final = "OK"
    content_type: Final = "application/json"

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.http_request = request
        self.headers: dict[str, str] = {"Content-Type": self.content_type}

    def text(self, encoding: str | None = None) -> str:
        del encoding
        authority = "https://login.microsoftonline.com/tenant"
        token: Json = {"access_token": "of-identity", "token_type": "Bearer", "expires_in": 3599}
        discovery: Json = {
            "authorization_endpoint": f"{authority}/oauth2/v2.0/authorize",
            "token_endpoint": f"{authority}/oauth2/v2.0/token",
            "issuer": f"{authority}/v2.0",
            "tenant_discovery_endpoint": f"{authority}/v2.0/.well-known/openid-configuration",
        }
        return json.dumps(token if self.request.method == "POST" else discovery)

    def body(self) -> bytes:
        return self.text().encode()


_ENTRA: Final[Json] = {
    "tokenAudience": "api://AzureADTokenExchange",
    "entra": {
        "authority": "https://login.microsoftonline.com",
        "tenantId": "tenant",
        "clientId": "0a1b2c3d-0000-4000-8000-000000000000",
        "scope": "6dae42f8-4368-4678-94ff-3960e28e3630/.default",
    },
}

# What azure-identity adds: the library's telemetry, and the claim to want the answer's client info.
_TELEMETRY: Final = ("client_info", "x-client-")


def test_entra_receives_what_its_own_library_sends(tmp_path: Path) -> None:
    path = written(tmp_path, _ENTRA)
    entra = obj(_ENTRA["entra"])
    judge = _Entra()
    credential = ClientAssertionCredential(
        str(entra["tenantId"]),
        str(entra["clientId"]),
        lambda: _SUBJECT,
        transport=judge,
        authority=str(entra["authority"]),
    )
    assert credential.get_token(str(entra["scope"])).token == "of-identity"
    (theirs,) = judge.requests
    fields = {name: value for name, value in obj(theirs["fields"]).items() if not name.startswith(_TELEMETRY)}
    exchange = from_kubeconfig(path).exchange
    assert exchange is not None
    (ours,) = sent(exchange, ({"access_token": "x", "expires_in": 3599},))
    assert as_seen(ours) == {**theirs, "fields": fields}


def test_the_names_that_stack_and_controller_use_are_the_same() -> None:
    assert EXCHANGE == EXTENSION


def test_a_user_without_the_extension_sends_its_token_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig("https://there", "", "token"))
    assert from_kubeconfig(path).exchange is None
    assert exchange_of({"extensions": [{"name": "minikube.sigs.k8s.io", "extension": {}}]}) is None


def _without(*path: str) -> Callable[[Json], Json]:
    def change(found: Json) -> Json:
        return {
            key: _without(*path[1:])(obj(value)) if key == path[0] else value
            for key, value in found.items()
            if (key,) != path
        }

    return change


@pytest.mark.parametrize(
    "extension",
    [
        {},
        {"aws": {"role": "x"}},
        *(
            _without("google", field)(token_exchange(_PROVIDER, _EMAIL))
            for field in ("audience", "subject_token_type", "token_url", "service_account_impersonation_url")
        ),
        *(_without("entra", field)(_ENTRA) for field in ("authority", "tenantId", "clientId", "scope")),
        {"entra": {**obj(_ENTRA["entra"]), "authority": "http://login.example.com"}},
        {"entra": {**obj(_ENTRA["entra"]), "authority": "https://login..example.com"}},
    ],
)
def test_an_exchange_that_is_incomplete_or_sends_a_token_without_tls_is_refused(extension: Json) -> None:
    with pytest.raises(ConfigError, match=EXTENSION):
        exchange_of({"extensions": [{"name": EXTENSION, "extension": extension}]})


def test_no_printed_form_has_a_token() -> None:
    google = exchange_of(
        {"extensions": [{"name": EXTENSION, "extension": token_exchange(_PROVIDER, _EMAIL)}]}
    )
    assert isinstance(google, GoogleExchange)
    printed = repr([google, *sent(google, _ANSWERS)])
    assert _SUBJECT not in printed
    assert "federated" not in printed


_ANSWER: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["access_token", "accessToken", "expires_in", "expireTime", "error"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


def test_a_clock_that_is_ahead_is_named() -> None:
    google = GoogleExchange(
        audience="a", subject_token_type="t", token_url="https://x", impersonation_url="https://y"
    )
    steps = google.start(_SUBJECT, datetime(2099, 1, 1, 1, tzinfo=UTC).timestamp())
    next(steps)
    steps.send(_ANSWERS[0])
    with pytest.raises(ExchangeError, match=r"expires 3600 s before .* set the clock"):
        steps.send(_ANSWERS[1])


@given(answer=_ANSWER)
def test_any_answer_is_a_token_or_an_error_of_the_exchange(answer: JsonValue) -> None:
    entra = EntraExchange(authority="https://x", tenant_id="t", client_id="c", scope="s")
    steps = entra.start(_SUBJECT, 0.0)
    next(steps)
    with pytest.raises((StopIteration, ExchangeError)) as end:
        steps.send(mapping(answer))
    if isinstance(end.value, StopIteration):
        made = cast("AccessToken", end.value.value)
        assert made.token
        assert isinstance(made.seconds, float)
    assert refusal(400, json.dumps(answer).encode()).startswith("status 400")


_TOKENS: Final = st.text(
    alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", min_size=20, max_size=600
)


@given(secret=_TOKENS, place=st.integers(0, 420))
def test_a_refusal_never_shows_a_part_of_a_token(secret: str, place: int) -> None:
    said = refusal(400, json.dumps({"error": "." * place + "<" + secret + ">"}).encode(), (secret,))
    assert secret[:3] not in said.partition("<")[2]
