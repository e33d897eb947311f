"""The Kubernetes client: requests, errors, discovery and watches."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.kube.client import POD, ApiError, Unreachable
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.api_server import ApiServer, Discovery, NoSuchKind
from pulumi_holdfast.rehearsal.errors import Cancellation, KubeTimeout
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.objects import identity, summarize
from pulumi_holdfast.rehearsal.watches import Event, Key, ObjectSelector, differences, follow, key_of, record
from tests.support.coroutines import in_event_loop
from tests.support.fakes.http_server import http_server


def test_messages_name_the_object_its_finalizers_and_its_conditions() -> None:
    obj = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "deletionTimestamp": "now", "finalizers": ["a/b", "c"]},
    }
    assert "finalizers [a/b, c]" in summarize(obj), "finalizers block the deletion"
    condition = {"type": "Ready", "status": "False", "reason": "Why", "message": "because"}
    summary = summarize({"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [condition]}})
    assert summary == "Node n: Ready=False (because)", "the message explains the condition"
    named = identity({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}})
    assert named == "Pod n/p", "pods in two namespaces can have the same name"
    message = str(KubeTimeout("Pod n/p is gone", 5, []))
    assert message == "Pod n/p is gone: not satisfied after 5 s; last observed: it does not exist", (
        "all three parts"
    )
    pods = [{"kind": "Pod", "metadata": {"name": str(number)}} for number in range(10)]
    assert str(KubeTimeout("ten run", 5, pods)).endswith(
        "Pod 6: no status | Pod 7: no status | and 2 more"
    ), "the object that is late need not be the first"


def pod(name: str, version: int = 1) -> Json:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "a", "resourceVersion": str(version)}}


BROKEN: Json = {}


class ScriptedServer:
    """Answers each list, and the watch after it, from a script."""

    def __init__(self, *turns: tuple[Sequence[Json], Sequence[Json]]) -> None:
        self.turns = list(turns)
        self.queries: list[Mapping[str, str]] = []

    def request(self, method: str, path: str, *, query: Mapping[str, str]) -> Json:
        return {"metadata": {"resourceVersion": "7"}, "items": list(self.turns[0][0])}

    def lines(self, path: str, query: Mapping[str, str], cancellation: Cancellation) -> Iterator[bytes]:
        self.queries.append(query)
        for event in self.turns.pop(0)[1]:
            if not event:
                raise Unreachable("here", "the stream broke")
            yield json.dumps(event).encode()


def followed(server: ScriptedServer, *, count: int) -> list[Event]:
    events = follow(
        cast("ApiServer", server),
        POD,
        ObjectSelector(namespace="a"),
        deadline=time.monotonic() + 60,
        cancellation=Cancellation(),
    )
    return [next(events) for _ in range(count)]


def test_expired_or_broken_watch_lists_again_and_yields_only_differences() -> None:
    bookmark = {"type": "BOOKMARK", "object": pod("", 8)}
    for end in ({"type": "ERROR", "object": {"code": 410}}, BROKEN):
        server = ScriptedServer(([pod("x"), pod("y")], [bookmark, end]), ([pod("y"), pod("z")], []))
        events = [(kind, key_of(obj)[1]) for kind, obj in followed(server, count=6)]
        assert events[3:5] == [("DELETED", "x"), ("ADDED", "z")]


_sets = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)


@given(_sets, _sets)
def test_differences_turn_the_known_set_into_the_listed_set(old: dict[str, int], new: dict[str, int]) -> None:
    known: dict[Key, Json] = {key_of(pod(name, at)): pod(name, at) for name, at in old.items()}
    listed = {key_of(pod(name, at)): pod(name, at) for name, at in new.items()}
    for event in list(differences(known, listed)):
        record(known, event)
    assert known == listed, "the known set must equal the listed set"


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
            raise ApiError(404, "Not Found", "404 page not found")
        if path.endswith("/pods"):
            self.lists += 1
            return {"metadata": {"resourceVersion": "1"}, "items": self.pods}
        raise ApiError(404, "NotFound", 'pods "x" not found')

    def lines(self, path: str, query: Mapping[str, str], _: object) -> Iterator[bytes]:
        yield from ()


def client_of(server: FakeServer) -> KubeClient:
    there = cast("ApiServer", server)
    return KubeClient(there, Discovery(there), Cancellation())


def test_kind_with_a_deleted_crd_is_missing() -> None:
    server = FakeServer()
    client = client_of(server)
    client.get("v1", "Pod", "x")
    server.gone = True
    with pytest.raises(NoSuchKind):
        client.get("v1", "Pod", "x")


@in_event_loop
async def test_a_server_that_says_when_is_asked_again_but_not_for_an_eviction(tmp_path: Path) -> None:
    busy = [429, 503]

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and not busy:
            return web.json_response({"gitVersion": "v1"})
        status = busy.pop() if request.method == "GET" else 429
        return web.json_response({"message": "later"}, status=status, headers={"Retry-After": "0"})

    async with http_server(answer) as address:
        client = KubeClient.from_kubeconfig(kubeconfig(tmp_path, address))
        assert await asyncio.to_thread(client.server_version) == "v1"
        with pytest.raises(ApiError, match="later"):
            await asyncio.to_thread(client.evict, "a", "x")


def test_a_server_that_is_away_is_unreachable_and_a_bad_kubeconfig_names_its_field(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 does not answer"):
        KubeClient.from_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:1")).server_version()
    with pytest.raises(ConfigError, match="server: got ftp://x"):
        KubeClient.from_kubeconfig(kubeconfig(tmp_path, "ftp://x"))


def kubeconfig(folder: Path, address: str) -> Path:
    path, named = folder / "kubeconfig", {"name": "a"}
    path.write_text(
        json.dumps(
            {
                "current-context": "a",
                "contexts": [{**named, "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{**named, "cluster": {"server": address}}],
                "users": [{**named, "user": {"token": "secret"}}],
            }
        )
    )
    return path
