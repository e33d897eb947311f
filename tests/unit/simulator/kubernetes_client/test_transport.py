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
    def served(name: str, kind: str, *verbs: str) -> Json:
        return {"name": name, "kind": kind, "namespaced": True, "verbs": ["create", *verbs]}

    pods = [served("pods", "Pod", "list"), served("pods/log", "Pod", "list"), served("bindings", "Binding")]
    preferred = {"a": "a/v2", "gone": "gone/v1"}
    groups = [{"name": name, "preferredVersion": {"groupVersion": at}} for name, at in preferred.items()]
    widgets: Json = {"resources": [served("widgets", "Widget", "list")]}
    server = Server({"/api/v1": {"resources": pods}, "/apis": {"groups": groups}, "/apis/a/v2": widgets})
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


def test_path_depends_on_scope_and_namespace() -> None:
    for namespaced, namespace, path in (
        (True, "a", "/api/v1/namespaces/a/things/x"),
        (True, None, "/api/v1/namespaces/default/things/x"),
        (False, "a", "/api/v1/things/x"),
    ):
        endpoint = Endpoint(api_version="v1", kind="Thing", plural="things", namespaced=namespaced)
        assert endpoint.item(namespace, "x") == path, "another path is another object"
    endpoint = Endpoint(api_version="a.b/v1", kind="Thing", plural="things", namespaced=True)
    assert endpoint.collection(None) == f"{root('a.b/v1')}/things", "the list must have all namespaces"
