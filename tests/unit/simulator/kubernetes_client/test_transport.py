"""Kinds are found where the API server serves them."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.errors import KubeError, NoSuchKind
from holdfast.simulator.kubernetes_client.transport import Discovery, Endpoint, root

APPS: Json = {
    "resources": [
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
    ]
}


class Server:
    """Serves some apiVersions and counts what it is asked."""

    def __init__(self, served: dict[str, Json]) -> None:
        self.served = served
        self.asked = 0

    def request(self, method: str, path: str) -> Json:
        self.asked += 1
        if path not in self.served:
            raise KubeError(404, "Not Found", "404 page not found")
        return self.served[path]


def test_everything_that_can_be_listed_is_found_in_its_preferred_version() -> None:
    verbs = ["create", "list"]
    core: Json = {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": verbs},
            {"name": "pods/log", "kind": "Pod", "namespaced": True, "verbs": verbs},
            {"name": "bindings", "kind": "Binding", "namespaced": True, "verbs": ["create"]},
        ]
    }
    widgets: Json = {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": verbs}]}
    groups: Json = {
        "groups": [
            {"name": "a", "preferredVersion": {"groupVersion": "a/v2"}},
            {"name": "gone", "preferredVersion": {"groupVersion": "gone/v1"}},
        ]
    }
    server = Server({"/api/v1": core, "/apis": groups, "/apis/a/v2": widgets})
    assert Discovery(server).listable() == [("v1", "Pod"), ("a/v2", "Widget")], (
        "an object of a kind that is left out is not found"
    )


def test_a_kind_is_asked_for_once() -> None:
    server = Server({"/apis/apps/v1": APPS})
    discovery = Discovery(server)
    discovery.find("apps/v1", "Deployment")
    discovery.find("apps/v1", "Deployment")
    assert server.asked == 1, "each object would cost two requests"


def test_a_kind_that_comes_later_is_found() -> None:
    server = Server({})
    discovery = Discovery(server)
    with pytest.raises(NoSuchKind, match="no kind Deployment in apps/v1"):
        discovery.find("apps/v1", "Deployment")
    server.served["/apis/apps/v1"] = APPS
    assert discovery.find("apps/v1", "Deployment").plural == "deployments", (
        "a CRD's kind would never be found"
    )


def test_a_subresource_is_no_kind() -> None:
    with pytest.raises(NoSuchKind):
        Discovery(Server({"/apis/apps/v1": APPS})).find("apps/v1", "Scale")


@pytest.mark.parametrize(
    ("namespaced", "namespace", "path"),
    [
        (True, "a", "/api/v1/namespaces/a/things/x"),
        (True, None, "/api/v1/namespaces/default/things/x"),
        (False, "a", "/api/v1/things/x"),
    ],
)
def test_the_path_of_an_object_follows_its_scope(namespaced: bool, namespace: str | None, path: str) -> None:
    endpoint = Endpoint(api_version="v1", kind="Thing", plural="things", namespaced=namespaced)
    assert endpoint.item(namespace, "x") == path, "the request would go to another object"


def test_all_namespaces_are_one_collection() -> None:
    endpoint = Endpoint(api_version="a.b/v1", kind="Thing", plural="things", namespaced=True)
    assert endpoint.collection(None) == f"{root('a.b/v1')}/things", "the list would be of one namespace"
