"""A set of objects is followed by listing once and watching, and by listing again when the watch is lost."""

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
    """Answers each list, and each watch after it, from a script; past its end the deadline has come."""

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
    """The first `count` events."""
    deadline = time.monotonic() + 60
    events = follow(server, PODS, Selection(namespace="a"), deadline=deadline, cancellation=Cancellation())
    return [next(events) for _ in range(count)]


def test_what_is_there_comes_before_what_happens_to_it() -> None:
    server = ScriptedServer(([pod("x")], [{"type": "DELETED", "object": pod("x", 2)}]))
    kinds = [kind for kind, _ in followed(server, count=3)]
    assert kinds == ["ADDED", SYNCED[0], "DELETED"], "the list, its end and the watch are out of order"


def test_the_watch_goes_on_where_the_list_ended() -> None:
    server = ScriptedServer(([], [{"type": "ADDED", "object": pod("x")}]))
    followed(server, count=2)
    assert server.queries[0]["resourceVersion"] == "7", "what happened between list and watch would be lost"


def test_a_watch_that_is_too_old_is_listed_again_and_only_the_difference_is_told() -> None:
    gone = {"type": "ERROR", "object": {"code": 410}}
    server = ScriptedServer(([pod("x"), pod("y")], [gone]), ([pod("y"), pod("z")], []))
    told = [(kind, key_of(obj)[1]) for kind, obj in followed(server, count=6)]
    assert told[3:5] == [("DELETED", "x"), ("ADDED", "z")], "the second list repeats or misses changes"


def test_items_of_a_list_say_their_kind() -> None:
    server = ScriptedServer(([{"metadata": {"name": "x"}}], []))
    _, obj = followed(server, count=1)[0]
    assert obj["kind"] == "Pod", "the server leaves it out in lists of its own kinds"


_sets = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)


@given(_sets, _sets)
def test_the_differences_lead_from_one_set_to_the_other(old: dict[str, int], new: dict[str, int]) -> None:
    known: dict[Key, Json] = {key_of(pod(name, at)): pod(name, at) for name, at in old.items()}
    listed = {key_of(pod(name, at)): pod(name, at) for name, at in new.items()}
    for event in list(differences(known, listed)):
        record(known, event)
    assert known == listed, "following after a second list would show a set that never was"
