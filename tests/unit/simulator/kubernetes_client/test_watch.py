"""A watch lists objects, follows changes, and lists again when it breaks."""

import time
from collections.abc import Iterator, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_client.transport import Endpoint
from holdfast.simulator.kubernetes_client.watch import (
    SYNCED,
    Event,
    Key,
    Selection,
    differences,
    follow,
    key_of,
    record,
)

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
    events = follow(server, PODS, Selection(namespace="a"), deadline=deadline, cancellation=Cancellation())
    return [next(events) for _ in range(count)]


def test_list_with_kinds_comes_before_the_watch_from_its_version() -> None:
    server = ScriptedServer(([pod("x")], [{"type": "DELETED", "object": pod("x", 2)}]))
    kinds = [kind for kind, _ in followed(server, count=3)]
    assert kinds == ["ADDED", SYNCED[0], "DELETED"], "the list, its end, then the watch"
    server = ScriptedServer(([], [{"type": "ADDED", "object": pod("x")}]))
    followed(server, count=2)
    assert server.queries[0]["resourceVersion"] == "7", "no change may be lost between list and watch"
    server = ScriptedServer(([{"metadata": {"name": "x"}}], []))
    _, obj = followed(server, count=1)[0]
    assert obj["kind"] == "Pod", "the server omits the kind in lists of built-in kinds"


def test_expired_watch_lists_again_and_yields_only_differences() -> None:
    gone = {"type": "ERROR", "object": {"code": 410}}
    server = ScriptedServer(([pod("x"), pod("y")], [gone]), ([pod("y"), pod("z")], []))
    events = [(kind, key_of(obj)[1]) for kind, obj in followed(server, count=6)]
    assert events[3:5] == [("DELETED", "x"), ("ADDED", "z")], "the second list yields only differences"


_sets = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)


@given(_sets, _sets)
def test_differences_turn_the_known_set_into_the_listed_set(old: dict[str, int], new: dict[str, int]) -> None:
    known: dict[Key, Json] = {key_of(pod(name, at)): pod(name, at) for name, at in old.items()}
    listed = {key_of(pod(name, at)): pod(name, at) for name, at in new.items()}
    for event in list(differences(known, listed)):
        record(known, event)
    assert known == listed, "the known set must equal the listed set"
