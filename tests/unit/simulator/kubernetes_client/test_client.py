"""The client tells a missing object from a missing kind, and waits on whole sets of objects."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeError, KubeTimeout, NoSuchKind
from holdfast.simulator.kubernetes_client.transport import Discovery

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.transport import Transport

KINDS: Json = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}


class FakeServer:
    """Holds pods by name; `gone` takes their kind away. Watches end at once."""

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


def test_a_missing_object_is_none() -> None:
    assert client_of(FakeServer()).get("v1", "Pod", "x", "a") is None, "absence is an answer, not a failure"


def test_deleting_a_missing_object_says_so() -> None:
    assert client_of(FakeServer()).delete("v1", "Pod", "x", namespace="a") is False, "nothing was deleted"


def test_a_kind_whose_definition_went_is_missing_as_a_kind() -> None:
    server = FakeServer()
    client = client_of(server)
    client.get("v1", "Pod", "x")
    server.gone = True
    with pytest.raises(NoSuchKind):
        client.get("v1", "Pod", "x")


def test_a_wait_looks_at_the_whole_list_not_at_half_of_it() -> None:
    seen: list[int] = []

    def is_whole(pods: list[Json]) -> bool:
        seen.append(len(pods))
        return True

    client_of(FakeServer("x", "y")).wait_list(
        "v1", "Pod", namespace="a", timeout_seconds=5, condition=is_whole, what="all pods"
    )
    assert seen == [2], "a condition like `none is left` would hold before the list is read"


def test_a_wait_for_nothing_ends_when_there_is_nothing() -> None:
    found = client_of(FakeServer()).wait_for(
        "v1", "Pod", "x", timeout_seconds=5, condition=lambda pod: pod is None, what="the pod is gone"
    )
    assert found is None, "a deletion that is done would be waited for"


def test_a_wait_that_is_over_names_what_it_waited_for() -> None:
    with pytest.raises(KubeTimeout, match=r"the pod runs: not satisfied after 0 s; last observed: Pod a/x"):
        client_of(FakeServer("x")).wait_for(
            "v1", "Pod", "x", timeout_seconds=0, condition=lambda _: False, what="the pod runs"
        )
