"""The project in which the real provider of Google Cloud creates a stack: an echo of the APIs, by their documents.

A resource is stored as the provider sends it, and described as it was stored, with what only Google sets.
"""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote

from tests.soak.judges.applies import Target
from tests.soak.judges.gcp_requests import Api, Method
from tests.soak.judges.plans import PROVIDERS
from tests.soak.judges.server import Account, Call, Response, Sent, Values
from tests.support.background import serving

_COMPUTE: Final = "compute/beta"
#: A link to a resource of Compute Engine in the project of the provider, where only regions are there before.
_LINK: Final = re.compile(
    rf'projects/{PROVIDERS["gcp"][2]["project"]}/(?:global|regions/[^/"]+)/(?!regions/)\w+/[^/"]+'
)
#: The provider's name of each API, and its address behind the server: the document, and the path there.
_ENDPOINTS: Final[Mapping[str, str]] = {
    "compute": f"compute.beta/{_COMPUTE}",
    "container": "container.v1beta1/v1beta1",
    "iam": "iam.v1/v1",
    "iam_beta": "iam.v1/v1",
    "kms": "cloudkms.v1/v1",
    "resource_manager": "cloudresourcemanager.v1/v1",
    "storage": "storage.v1/storage/v1",
}
_TIME: Final = "2026-01-01T00:00:00Z"
_ETAG: Final = "MQ=="
#: What Google sets in a resource, where the document has the field.
_SET_BY_GOOGLE: Final[Mapping[str, object]] = {
    "createTime": _TIME,
    "creationTimestamp": _TIME,
    "etag": _ETAG,
    "fingerprint": _ETAG,
    "id": "1",
    "projectNumber": "123456789012",
    "status": "RUNNING",
    "timeCreated": _TIME,
    "uniqueId": "1",
}


class GcpEcho:
    """APIs of Google that create everything at once and describe what they were given. `url` is their address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stored: dict[str, Values] = {}
        self._policies: dict[str, Values] = {}

    def answer(self, api: Api, sent: Sent, call: Call) -> tuple[int, Values]:
        """Return the status and the body of a response."""
        method, key = api.method(sent), unquote(sent.path)
        match method.name:
            case "get" if method.response == "Operation":
                return 200, self._operation(api, key)
            case "getIamPolicy":
                return 200, self._policies.get(_owner(key), {"etag": _ETAG})
            case "setIamPolicy":
                policy = cast("Values", call.parameters.get("policy", call.parameters))
                self._policies[_owner(key)] = {"etag": _ETAG, **policy}
                return 200, self._policies[_owner(key)]
            case "list":
                title = next(name for name, one in api.fields(method.response).items() if "items" in one)
                return 200, {title: [one for at, one in self._stored.items() if at.rpartition("/")[0] == key]}
            case "insert" | "create" | "patch" if lacks := self._missing(api, key, call.parameters):
                return _not_found(f"{method.id} needs {lacks}")
            case "insert" | "create":
                key = self._create(api, method, key, call.parameters)
            case "patch" if key in self._stored:
                self._stored[key] |= call.parameters
            case "get" | "delete" if key in self._stored:
                pass
            case _:
                return _not_found(f"{method.id} finds nothing at {key}")
        found = self._stored.pop(key) if method.name == "delete" else self._stored[key]
        return 200, self._operation(api, key) if method.response == "Operation" else found

    def _missing(self, api: Api, path: str, given: Values) -> str | None:
        """Return a resource that a request names, in its path or in a link of its body, and that is not there."""
        above = path.rpartition("/")[0]
        links = [f"/{_COMPUTE}/{link}" for link in _LINK.findall(json.dumps(given))]
        named = [*([above] if api.creates(above) else []), *links]
        return next((one for one in named if one not in self._stored), None)

    def _create(self, api: Api, method: Method, path: str, given: Values) -> str:
        """Store a resource, and return its path."""
        kind = next(one.response for one in api.methods if one.id == f"{method.collection}.get")
        # A request can have the resource as one of its fields.
        asked = api.fields(method.request)
        within = next((name for name, one in asked.items() if one.get("$ref") == kind), None)
        body = cast("Values", given[within] if within else given)
        name = str(body.get("name"))
        made = {**_SET_BY_GOOGLE, "region": self._region(api, path)}
        if "accountId" in given:
            project = path.split("/")[3]
            name = f"{given['accountId']}@{project}.iam.gserviceaccount.com"
            made |= {
                "email": name,
                "name": f"projects/{project}/serviceAccounts/{name}",
                "projectId": project,
            }
        key = f"{path}/{name}"
        made["selfLink"] = f"{self._url}/{api.document}{key}"
        self._stored[key] = {field: one for field, one in made.items() if field in api.fields(kind)} | body
        if kind == "Cluster":
            self._fill(key)
        return key

    def _fill(self, key: str) -> None:
        """Give a new cluster its node pools and its address, as GKE does."""
        cluster = self._stored[key]
        pool: Values = {"name": "default-pool", "initialNodeCount": cluster.get("initialNodeCount")}
        self._stored[f"{key}/nodePools/default-pool"] = pool
        network = {name: cluster.get(name) for name in ("network", "subnetwork")}
        cluster |= {
            "currentMasterVersion": cluster.get("initialClusterVersion"),
            "endpoint": "192.0.2.1",
            "location": key.partition("/locations/")[2].partition("/")[0],
            "masterAuth": {"clusterCaCertificate": "Q0E="},
            "networkConfig": {**cast("Values", cluster.get("networkConfig", {})), **network},
        }

    def _operation(self, api: Api, key: str) -> Values:
        """Return an operation that is done."""
        made: Values = {
            "name": "operation",
            "status": "DONE",
            "targetLink": f"{self._url}/{api.document}{key}",
        }
        return {**made, "region": self._region(api, key)} if "region" in api.fields("Operation") else made

    def _region(self, api: Api, path: str) -> str | None:
        above, found, rest = path.partition("/regions/")
        return f"{self._url}/{api.document}{above}{found}{rest.partition('/')[0]}" if found else None


class GcpProject(Account):
    """An empty project of Google Cloud."""

    def __init__(self) -> None:
        super().__init__()
        self._echo = GcpEcho(self.url)

    def target(self) -> Target:
        return Target(
            settings={f"{name}_custom_endpoint": f"{self.url}/{at}/" for name, at in _ENDPOINTS.items()}
        )

    def service(self, path: str, headers: Mapping[str, str]) -> tuple[str, str]:
        document, _, rest = path.removeprefix("/").partition("/")
        return document, f"/{rest}"

    def part(self, service: str) -> str:
        return "the echo"

    def read(self, sent: Sent) -> Call:
        return Api.of(sent.service).read(sent)

    def respond(self, sent: Sent, call: Call | None, target: str) -> Response:
        if call is None:
            return 501, {}, b"{}"
        with self.lock:
            status, body = self._echo.answer(Api.of(sent.service), sent, call)
        return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


@contextmanager
def account(folder: Path) -> Generator[Account]:
    """Serve an empty project for the length of the block."""
    made = GcpProject()
    with serving(made):
        yield made


def _not_found(message: str) -> tuple[int, Values]:
    return 404, {"error": {"code": 404, "message": message}}


def _owner(path: str) -> str:
    """Return the resource of a policy: `RESOURCE:getIamPolicy`, `RESOURCE/iam`."""
    return path.rpartition(":")[0] or path.removesuffix("/iam")
