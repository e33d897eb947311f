"""Discovery finds the endpoint of each kind."""

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
    """Serves some apiVersions and counts requests."""

    def __init__(self, served: dict[str, Json]) -> None:
        self.served = served
        self.requests = 0

    def request(self, method: str, path: str) -> Json:
        self.requests += 1
        if path not in self.served:
            raise KubeError(404, "Not Found", "404 page not found")
        return self.served[path]


def test_listable_kinds_have_their_preferred_version() -> None:
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
    assert Discovery(server).listable() == [("v1", "Pod"), ("a/v2", "Widget")], "every listable kind"


def test_kind_is_requested_once_and_again_if_it_was_missing() -> None:
    server = Server({"/apis/apps/v1": APPS})
    discovery = Discovery(server)
    discovery.find("apps/v1", "Deployment")
    discovery.find("apps/v1", "Deployment")
    assert server.requests == 1, "each operation would need two requests"
    server = Server({})
    discovery = Discovery(server)
    with pytest.raises(NoSuchKind, match="no kind Deployment in apps/v1"):
        discovery.find("apps/v1", "Deployment")
    server.served["/apis/apps/v1"] = APPS
    assert discovery.find("apps/v1", "Deployment").plural == "deployments", "the CRD is established now"
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
def test_path_of_an_object_depends_on_its_scope(namespaced: bool, namespace: str | None, path: str) -> None:
    endpoint = Endpoint(api_version="v1", kind="Thing", plural="things", namespaced=namespaced)
    assert endpoint.item(namespace, "x") == path, "another path is another object"


def test_collection_without_a_namespace_has_all_namespaces() -> None:
    endpoint = Endpoint(api_version="a.b/v1", kind="Thing", plural="things", namespaced=True)
    assert endpoint.collection(None) == f"{root('a.b/v1')}/things", "the list must have all namespaces"
