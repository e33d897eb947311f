"""The Kubernetes client: requests, errors, discovery and watches."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import (
    Cancellation,
    KubeCancelled,
    KubeError,
    KubeTimeout,
    NoSuchKind,
)
from pulumi_holdfast.rehearsal.kubernetes_client.objects import identity, summarize
from pulumi_holdfast.rehearsal.kubernetes_client.transport import Discovery, Endpoint, Transport, root
from pulumi_holdfast.rehearsal.kubernetes_client.watch import (
    SYNCED,
    Event,
    Key,
    ObjectSelector,
    differences,
    follow,
    key_of,
    record,
)


def test_messages_name_the_object_its_finalizers_and_its_conditions() -> None:
    obj = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "deletionTimestamp": "now", "finalizers": ["a/b", "c"]},
    }
    assert "finalizers [a/b, c]" in summarize(obj)
    condition = {"type": "Ready", "status": "False", "reason": "Why", "message": "because"}
    summary = summarize({"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [condition]}})
    assert summary == "Node n: Ready=False (because)"
    named = identity({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}})
    assert named == "Pod n/p"
    message = str(KubeTimeout("Pod n/p is gone", 5, []))
    assert message == "Pod n/p is gone: not satisfied after 5 s; last observed: it does not exist"
    pods = [{"kind": "Pod", "metadata": {"name": str(number)}} for number in range(10)]
    assert str(KubeTimeout("ten run", 5, pods)).endswith("Pod 6: no status | Pod 7: no status | and 2 more")


def test_action_is_ended_only_while_it_runs() -> None:
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        cancellation.cancel()
        assert ended.is_set(), "the wait must end"
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        pass
    cancellation.cancel()
    assert not ended.is_set()


def test_actions_and_pauses_after_the_cancellation_are_refused() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(KubeCancelled), cancellation.running(lambda: None):
        pytest.fail("no wait may start after the cancellation")
    with pytest.raises(KubeCancelled):
        cancellation.pause(3600)


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
    assert Discovery(server).listable() == [("v1", "Pod"), ("a/v2", "Widget")]


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
    assert discovery.find("apps/v1", "Deployment").plural == "deployments"
    with pytest.raises(NoSuchKind):
        Discovery(Server({"/apis/apps/v1": APPS})).find("apps/v1", "Scale")


def test_path_depends_on_scope_and_namespace() -> None:
    for namespaced, namespace, path in (
        (True, "a", "/api/v1/namespaces/a/things/x"),
        (True, None, "/api/v1/namespaces/default/things/x"),
        (False, "a", "/api/v1/things/x"),
    ):
        endpoint = Endpoint(api_version="v1", kind="Thing", plural="things", namespaced=namespaced)
        assert endpoint.item(namespace, "x") == path
    endpoint = Endpoint(api_version="a.b/v1", kind="Thing", plural="things", namespaced=True)
    assert endpoint.collection(None) == f"{root('a.b/v1')}/things", "the list must have all namespaces"


PODS = Endpoint(api_version="v1", kind="Pod", plural="pods", namespaced=True)


def pod(name: str, version: int = 1) -> Json:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "a", "resourceVersion": str(version)}}


class ScriptedServer:
    """Answers each list, and the watch after it, from a script."""

    def __init__(self, *turns: tuple[Sequence[Json], Sequence[Json]]) -> None:
        self.turns = list(turns)
        self.queries: list[Mapping[str, str]] = []

    def request(self, method: str, path: str, *, query: Mapping[str, str]) -> Json:
        return {"metadata": {"resourceVersion": "7"}, "items": list(self.turns[0][0])}

    def stream(
        self, path: str, query: Mapping[str, str], *, seconds: float, cancellation: Cancellation
    ) -> Iterator[Json]:
        self.queries.append(query)
        yield from self.turns.pop(0)[1]


def followed(server: ScriptedServer, *, count: int) -> list[Event]:
    deadline = time.monotonic() + 60
    events = follow(
        server, PODS, ObjectSelector(namespace="a"), deadline=deadline, cancellation=Cancellation()
    )
    return [next(events) for _ in range(count)]


def test_list_with_kinds_comes_before_the_watch_from_its_version() -> None:
    server = ScriptedServer(([pod("x")], [{"type": "DELETED", "object": pod("x", 2)}]))
    kinds = [kind for kind, _ in followed(server, count=3)]
    assert kinds == ["ADDED", SYNCED[0], "DELETED"]
    server = ScriptedServer(([], [{"type": "ADDED", "object": pod("x")}]))
    followed(server, count=2)
    assert server.queries[0]["resourceVersion"] == "7"
    server = ScriptedServer(([{"metadata": {"name": "x"}}], []))
    _, obj = followed(server, count=1)[0]
    assert obj["kind"] == "Pod"


def test_expired_watch_lists_again_and_yields_only_differences() -> None:
    gone = {"type": "ERROR", "object": {"code": 410}}
    server = ScriptedServer(([pod("x"), pod("y")], [gone]), ([pod("y"), pod("z")], []))
    events = [(kind, key_of(obj)[1]) for kind, obj in followed(server, count=6)]
    assert events[3:5] == [("DELETED", "x"), ("ADDED", "z")]


_sets = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)


@given(_sets, _sets)
def test_differences_turn_the_known_set_into_the_listed_set(old: dict[str, int], new: dict[str, int]) -> None:
    known: dict[Key, Json] = {key_of(pod(name, at)): pod(name, at) for name, at in old.items()}
    listed = {key_of(pod(name, at)): pod(name, at) for name, at in new.items()}
    for event in list(differences(known, listed)):
        record(known, event)
    assert known == listed


KINDS: Json = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}


class FakeServer:
    """An API server with pods; `gone` removes their kind. Watches end at once."""

    def __init__(self, *pods: str) -> None:
        self.pods: list[Json] = [{"metadata": {"name": name, "namespace": "a"}} for name in pods]
        self.gone = False
        self.lists = 0

    def request(self, method: str, path: str, **_: object) -> Json:
        if path == "/api/v1":
            return KINDS
        if self.gone:
            raise KubeError(404, "Not Found", "404 page not found")
        if path.endswith("/pods"):
            self.lists += 1
            return {"metadata": {"resourceVersion": "1"}, "items": self.pods}
        raise KubeError(404, "NotFound", 'pods "x" not found')

    def stream(self, path: str, query: Mapping[str, str], **_: object) -> Iterator[Json]:
        yield from ()


def client_of(server: FakeServer) -> KubeClient:
    transport = cast("Transport", server)
    return KubeClient(transport, Discovery(transport), Cancellation())


def test_missing_object_is_no_failure_and_a_timeout_names_its_condition() -> None:
    assert client_of(FakeServer()).get("v1", "Pod", "x", "a") is None
    assert client_of(FakeServer()).delete("v1", "Pod", "x", namespace="a") is False
    found = client_of(FakeServer()).wait_for(
        "v1", "Pod", "x", timeout_seconds=5, condition=lambda pod: pod is None, what="the pod is gone"
    )
    assert found is None
    with pytest.raises(KubeTimeout, match=r"the pod runs: not satisfied after 0 s; last observed: Pod a/x"):
        client_of(FakeServer("x")).wait_for(
            "v1", "Pod", "x", timeout_seconds=0, condition=lambda _: False, what="the pod runs"
        )


def test_kind_with_a_deleted_crd_is_missing() -> None:
    server = FakeServer()
    client = client_of(server)
    client.get("v1", "Pod", "x")
    server.gone = True
    with pytest.raises(NoSuchKind):
        client.get("v1", "Pod", "x")


def test_wait_checks_only_complete_lists() -> None:
    seen: list[int] = []

    def is_whole(pods: list[Json]) -> bool:
        seen.append(len(pods))
        return True

    client_of(FakeServer("x", "y")).wait_list(
        "v1", "Pod", namespace="a", timeout_seconds=5, condition=is_whole, what="all pods"
    )
    assert seen == [2], "a condition like `none is left` would hold too early"
