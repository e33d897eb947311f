"""Requests to Google Cloud are judged by discovery documents, and the echo describes what it was given."""

import json
from collections.abc import Mapping

import pytest

from tests.soak.judges.gcp_requests import Api
from tests.soak.judges.gcp_servers import GcpEcho
from tests.soak.judges.server import Sent

_NETWORKS = "/compute/beta/projects/dev/global/networks"
_TEXT = {"type": "string"}


def _method(verb: str, path: str, **shapes: str) -> Mapping[str, object]:
    sides = {side: {"$ref": shape} for side, shape in shapes.items()}
    query = {"requestId": {"type": "string", "location": "query"}}
    return {"httpMethod": verb, "path": path, "parameters": query, **sides}


def _object(**fields: object) -> Mapping[str, object]:
    return {"type": "object", "properties": fields}


_PATH = "projects/{project}/global/networks"
_CLUSTERS = "v1beta1/projects/{project}/locations/{location}/clusters"
_POOLS = f"{_CLUSTERS}/{{cluster}}/nodePools"
#: A document in the form in which Google publishes it.
DOCUMENT: Mapping[str, object] = {
    "name": "compute",
    "version": "beta",
    "servicePath": "compute/beta/",
    "parameters": {"alt": {"type": "string", "enum": ["json"]}},
    "schemas": {
        "Network": {
            "type": "object",
            "properties": {
                "name": {**_TEXT, "pattern": "[a-z]+", "annotations": {"required": ["compute.networks.insert"]}},
                "mtu": {"type": "integer"},
                "routing": {"$ref": "Routing"},
                "ranges": {"type": "array", "items": _TEXT},
                "labels": {"type": "object", "additionalProperties": _TEXT},
                "size": {**_TEXT, "format": "int64"},
                "selfLink": {**_TEXT, "readOnly": True},
                "peer": _TEXT,
            },
        },
        "Routing": {"type": "object", "properties": {"mode": {**_TEXT, "enum": ["REGIONAL", "GLOBAL"]}}},
        "Operation": {"type": "object", "properties": {"name": _TEXT, "status": _TEXT}},
        "Policy": {"type": "object", "properties": {"etag": _TEXT, "version": {"type": "integer"}}},
    },
    "resources": {
        "networks": {
            "methods": {
                "insert": _method("POST", _PATH, request="Network", response="Operation"),
                "get": _method("GET", f"{_PATH}/{{network}}", response="Network"),
                "patch": _method("PATCH", f"{_PATH}/{{network}}", request="Network", response="Operation"),
                "delete": _method("DELETE", f"{_PATH}/{{network}}", response="Operation"),
                "getIamPolicy": _method("GET", f"{_PATH}/{{network}}/iam", response="Policy"),
                "setIamPolicy": _method("PUT", f"{_PATH}/{{network}}/iam", request="Policy", response="Policy"),
            }
        }
    },
}  # fmt: skip
CLUSTERS: Mapping[str, object] = {
    "name": "container",
    "version": "v1beta1",
    "servicePath": "",
    "parameters": {},
    "schemas": {
        "Cluster": _object(name=_TEXT, initialNodeCount={"type": "integer"}, network=_TEXT),
        "CreateCluster": _object(cluster={"$ref": "Cluster"}),
        "CreatePool": _object(nodePool={"$ref": "NodePool"}),
        "NodePool": _object(name=_TEXT),
        "NodePools": _object(nodePools={"type": "array", "items": {"$ref": "NodePool"}}),
        "Operation": _object(),
    },
    "resources": {
        "clusters": {
            "methods": {
                "create": _method("POST", _CLUSTERS, request="CreateCluster", response="Operation"),
                "get": _method("GET", f"{_CLUSTERS}/{{cluster}}", response="Cluster"),
            },
            "resources": {
                "nodePools": {
                    "methods": {
                        "create": _method("POST", _POOLS, request="CreatePool", response="Operation"),
                        "get": _method("GET", f"{_POOLS}/{{pool}}", response="NodePool"),
                        "list": _method("GET", _POOLS, response="NodePools"),
                    }
                }
            },
        }
    },
}
VALID: Mapping[str, object] = {
    "name": "dev",
    "mtu": 1500,
    "routing": {"mode": "GLOBAL"},
    "ranges": ["a"],
    "labels": {"any": "text"},
    "size": 8,
}


def sent(method: str, path: str = "", body: Mapping[str, object] | None = None, **query: str) -> Sent:
    content = b"" if body is None else json.dumps(body).encode()
    return Sent(
        service="compute.beta",
        method=method,
        path=f"{_NETWORKS}{path}",
        query=query,
        headers={},
        body=content,
    )


def test_a_request_that_the_document_describes_is_read_and_valid() -> None:
    call = Api(DOCUMENT).read(sent("POST", body=VALID, alt="json"))
    assert call.operation == "compute.networks.insert"
    assert (call.parameters, call.wrong) == (VALID, [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mtux": 1}, "mtux: no field of the request"),
        ({"mtu": "1500"}, "mtu is '1500', not of the kind integer"),
        ({"routing": {"mode": "LOCAL"}}, "routing.mode is 'LOCAL'; the values of the document are REGIONAL, GLOBAL"),
        ({"routing": "GLOBAL"}, "routing is 'GLOBAL', not of the kind object"),
        ({"ranges": [1]}, "ranges is 1, not of the kind string"),
        ({"name": "Dev"}, "name is 'Dev', which does not match [a-z]+"),
        ({"name": None}, "name is required"),
        ({"selfLink": "a"}, "selfLink: only Google sets it"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_request_is_judged_with_what_the_document_allows(
    change: Mapping[str, object], reason: str
) -> None:
    body = {name: one for name, one in {**VALID, **change}.items() if one is not None}
    wrong = Api(DOCUMENT).read(sent("POST", body=body)).wrong
    assert wrong == [f"compute.networks.insert: {reason}"]


def test_a_request_with_an_unknown_parameter_or_path_is_judged() -> None:
    api = Api(DOCUMENT)
    assert api.read(sent("GET", "/dev", alt="xml", page="1")).wrong == [
        "compute.networks.get: ?alt is 'xml'; the values of the document are json",
        "compute.networks.get: ?page: no parameter of the request",
    ]
    with pytest.raises(LookupError, match=r"compute\.beta has no method for GET .*/dev:start"):
        api.read(sent("GET", "/dev:start"))


def test_the_echo_describes_a_resource_as_it_was_sent_until_it_is_deleted() -> None:
    api, echo = Api(DOCUMENT), GcpEcho("http://127.0.0.1:1")

    def answer(method: str, path: str = "", body: Mapping[str, object] | None = None) -> tuple[int, object]:
        request = sent(method, path, body)
        return echo.answer(api, request, api.read(request))

    link = f"http://127.0.0.1:1/compute.beta{_NETWORKS}/dev"
    done = (200, {"name": "operation", "status": "DONE", "targetLink": link})
    assert answer("GET", "/dev")[0] == 404
    assert answer("POST", body=VALID) == done
    assert answer("GET", "/dev") == (200, {**VALID, "selfLink": link})
    answer("PATCH", "/dev", {"mtu": 8896})
    assert answer("GET", "/dev") == (200, {**VALID, "selfLink": link, "mtu": 8896})
    answer("PUT", "/dev/iam", {"version": 3})
    assert answer("GET", "/dev/iam") == (200, {"etag": "MQ==", "version": 3})
    assert answer("DELETE", "/dev") == done
    assert answer("GET", "/dev")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_the_echo_refuses_a_link_to_what_is_not_there(method: str) -> None:
    api, echo = Api(DOCUMENT), GcpEcho("http://127.0.0.1:1")

    def answer(method: str, body: Mapping[str, object]) -> tuple[int, Mapping[str, object]]:
        request = sent(method, "/dev" if method == "PATCH" else "", body)
        return echo.answer(api, request, api.read(request))

    answer("POST", VALID)
    peer = "projects/holdfast/global/networks/other"
    status, body = answer(
        method, {**VALID, "name": "dev", "peer": f"https://compute.googleapis.com/compute/v1/{peer}"}
    )
    assert status == 404, "the cloud would refuse it"
    assert f"/compute/beta/{peer}" in json.dumps(body)
    assert answer(method, {**VALID, "peer": "projects/host/global/networks/other"})[0] == 200


def test_the_echo_makes_the_default_pool_of_a_cluster_and_lists_pools() -> None:
    api, echo = Api(CLUSTERS), GcpEcho("http://127.0.0.1:1")
    clusters = "/v1beta1/projects/dev/locations/a/clusters"

    def answer(
        method: str, path: str, body: Mapping[str, object] | None = None
    ) -> tuple[int, Mapping[str, object]]:
        content = b"" if body is None else json.dumps(body).encode()
        request = Sent(
            service="container.v1beta1", method=method, path=path, query={}, headers={}, body=content
        )
        return echo.answer(api, request, api.read(request))

    pool = {"nodePool": {"name": "cpu"}}
    assert answer("POST", f"{clusters}/dev/nodePools", pool)[0] == 404
    answer("POST", clusters, {"cluster": {"name": "dev", "initialNodeCount": 1, "network": "n"}})
    _, cluster = answer("GET", f"{clusters}/dev")
    assert cluster["networkConfig"] == {"network": "n", "subnetwork": None}
    assert cluster["endpoint"]
    assert answer("POST", f"{clusters}/dev/nodePools", pool)[0] == 200
    _, listed = answer("GET", f"{clusters}/dev/nodePools")
    assert listed == {"nodePools": [{"name": "default-pool", "initialNodeCount": 1}, {"name": "cpu"}]}
