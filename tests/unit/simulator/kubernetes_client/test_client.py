"""The client distinguishes missing objects from missing kinds, and waits for complete sets of objects."""

from collections.abc import Iterator, Mapping
from typing import cast

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeError, KubeTimeout, NoSuchKind
from holdfast.simulator.kubernetes_client.transport import Discovery, Transport

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
    assert client_of(FakeServer()).get("v1", "Pod", "x", "a") is None, "a missing object is no failure"
    assert client_of(FakeServer()).delete("v1", "Pod", "x", namespace="a") is False, "nothing was deleted"
    found = client_of(FakeServer()).wait_for(
        "v1", "Pod", "x", timeout_seconds=5, condition=lambda pod: pod is None, what="the pod is gone"
    )
    assert found is None, "the deletion is complete"
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
