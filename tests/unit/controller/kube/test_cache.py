"""An informer's cache matches the server, however its watches end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.kube.cache import Cache, Change, Informer, Name, Reconnection
from pulumi_holdfast.controller.kube.client import NODE, POD, ApiError, Client, Unreachable
from pulumi_holdfast.ladder.json import Json
from tests.support.coroutines import until, virtually
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.json_objects import obj


def thing(name: str, version: int, *, uid: str = "u", group: str = "a", value: int = 0) -> Json:
    """An object of namespace `n`."""
    return {
        "metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": str(version)},
        "group": group,
        "value": value,
    }


def trimmed(found: Json) -> tuple[str, int] | None:
    """Group and value; nothing of the group `none`."""
    return None if found["group"] == "none" else (str(found["group"]), int(str(found["value"])))


def of_group(_: object, entry: tuple[str, int]) -> tuple[str]:
    """What the index finds it by."""
    return (entry[0],)


def cache() -> Cache[tuple[str, int]]:
    """A cache with an index by group."""
    return Cache(trimmed, indexes={"group": of_group})


def test_only_newer_versions_of_known_objects_replace_others() -> None:
    known = cache()
    known.put(thing("x", 5, value=5))
    known.put(thing("x", 4, value=4))
    assert known.get("n", "x") == ("a", 5)
    known = cache()
    known.put(thing("x", 5, value=5))
    known.refresh(thing("x", 7, value=7))
    known.put(thing("x", 6, value=6))
    assert known.get("n", "x") == ("a", 7)
    known = cache()
    known.put(thing("x", 5))
    known.remove(thing("x", 6))
    known.refresh(thing("x", 5))
    known.refresh(thing("y", 9))
    assert len(known) == 0, "it would stay forever: no later event would remove it"


def test_a_recreated_object_is_a_new_object() -> None:
    known = cache()
    changes: list[Change[tuple[str, int]]] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(changes.append)
    known.put(thing("x", 9, uid="v", value=1))
    assert [(change.before, change.after) for change in changes] == [(("a", 1), None), (None, ("a", 1))]


def test_the_last_version_of_a_deleted_object_is_stored_first() -> None:
    known = cache()
    seen: list[object] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(lambda change: seen.append(change.after))
    known.remove(thing("x", 6, value=2))
    assert seen == [("a", 2), None]


def test_a_list_replaces_newer_versions_and_removes_missing_objects() -> None:
    known = cache()
    known.put(thing("x", 900, value=1))
    known.put(thing("x", 5, value=2), is_listed=True)
    known.put(thing("x", 6, value=3))
    assert known.get("n", "x") == ("a", 3), "an etcd that was restored would else be believed nothing"
    known = cache()
    known.put(thing("x", 5))
    known.put(thing("y", 5))
    known.retain({("n", "y")})
    assert known.known() == [("n", "y")]


def test_a_change_of_trimmed_fields_calls_no_handler() -> None:
    known = cache()
    seen: list[object] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(seen.append)
    known.put(thing("x", 6, value=1))
    assert not seen


def test_a_version_that_cannot_be_cached_or_indexed_is_counted_and_ignored() -> None:
    known = cache()
    known.put(thing("x", 5, value=5))
    known.put({**thing("x", 6), "value": "many"})
    assert known.get("n", "x") == ("a", 5)
    unsorted: Cache[tuple[str, int]] = Cache(
        trimmed, indexes={"group": lambda _, entry: (str(1 // entry[1]),)}
    )
    unsorted.put(thing("x", 5, value=1))
    unsorted.put(thing("x", 6, value=0))
    unsorted.put(thing("y", 6, value=1))
    assert unsorted.find("group", "1") == [("a", 1), ("a", 1)]
    assert (known.errors, unsorted.errors) == (1, 1)
    known.remove({**thing("x", 7), "value": "many"})
    assert len(known) == 0


cached_names = st.sampled_from(["x", "y", "z"])
steps = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "retain"]), cached_names, st.sampled_from(["a", "b", "none"]))
)


@given(steps)
def test_every_index_finds_exactly_the_cached_objects(done: list[tuple[str, str, str]]) -> None:
    known = cache()
    for version, (what, name, group) in enumerate(done):
        match what:
            case "put":
                known.put(thing(name, version, group=group, value=version))
            case "remove":
                known.remove(thing(name, version, group=group))
            case _:
                known.retain({("n", name)})
    for group in ("a", "b"):
        expected = sorted(entry for entry in known if entry[0] == group)
        assert sorted(known.find("group", group)) == expected, f"of group {group}"
        assert known.has("group", group) == bool(expected)
    assert sorted(known.all("group")) == sorted(known)


def test_an_object_without_version_is_stored() -> None:
    known = cache()
    bare = {**thing("x", 1), "metadata": {"name": "x", "namespace": "n"}}
    known.put(bare)
    assert obj(bare)["group"] == "a"
    assert known.get("n", "x") == ("a", 0)


def pod(name: str, phase: str = "Running", **labels: str) -> Json:
    """A pod in the namespace `vision`."""
    return {"metadata": {"namespace": "vision", "name": name, "labels": labels}, "status": {"phase": phase}}


def phase(found: Json) -> str:
    """What is kept of a pod."""
    return str(obj(found["status"])["phase"])


@asynccontextmanager
async def following(api: FakeApi, labels: str | None = None) -> AsyncGenerator[Informer[str]]:
    """An informer at work that has seen everything once."""
    informer = Informer(Client(api), POD, Cache(phase), labels=labels)
    task = asyncio.create_task(informer.run())
    try:
        await informer.wait_synced()
        yield informer
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def names(informer: Informer[str]) -> list[str]:
    """What the informer knows."""
    return sorted(name for _, name in informer.cache.known())


@virtually
async def test_all_pages_of_a_list_are_taken_in() -> None:
    api = FakeApi(page=2)
    for number in range(5):
        await api.put(POD, pod(f"p{number}"))
    async with following(api) as informer:
        assert names(informer) == ["p0", "p1", "p2", "p3", "p4"]


@virtually
async def test_watch_events_update_the_cache() -> None:
    api = FakeApi()
    async with following(api) as informer:
        await api.put(POD, pod("new"))
        await until(lambda: names(informer) == ["new"])
        await api.put(POD, pod("new", "Failed"))
        await until(lambda: informer.cache.get("vision", "new") == "Failed")
        await api.drop(POD, "vision", "new")
        await until(lambda: not names(informer))
        assert informer.lists == 1


@virtually
async def test_only_objects_with_the_labels_are_requested() -> None:
    api = FakeApi()
    await api.put(POD, pod("mine", job="x"))
    await api.put(POD, pod("other"))
    async with following(api, labels="job") as informer:
        await api.put(POD, pod("later", job="y"))
        await api.put(POD, pod("stranger"))
        await until(lambda: names(informer) == ["later", "mine"])


@virtually
async def test_objects_deleted_during_a_lost_watch_are_removed() -> None:
    api = FakeApi()
    await api.put(POD, pod("old"))
    async with following(api) as informer:
        await api.drop(POD, "vision", "old")
        await api.put(POD, pod("new"))
        await api.break_watches(forget=True)
        await until(lambda: names(informer) == ["new"])
        await until(lambda: informer.lists == 2)


@virtually
async def test_a_server_that_rejects_watches_is_listed_with_backoff() -> None:
    api = FakeApi()
    async with following(api) as informer:

        def refuse(sent: Sent) -> None:
            if sent.method == "WATCH":
                raise ApiError(500, "InternalError", "broken")

        api.fail = refuse
        await api.break_watches()
        asked = len(api.sent)
        await asyncio.sleep(60)
        await api.put(POD, pod("unwatched"))
        await until(lambda: names(informer) == ["unwatched"])
        assert len(api.sent) - asked < 30


@virtually
async def test_a_server_that_ends_every_watch_is_retried_with_backoff() -> None:
    class Ending(FakeApi):
        """Ends each watch before it has begun."""

        async def lines(self, path: str, query: object, *, silent_seconds: float) -> AsyncGenerator[bytes]:
            self.sent.append(Sent(method="WATCH", path=path, query={}, body=None, seconds=silent_seconds))
            return
            yield b""

    api = Ending()
    async with following(api):
        await asyncio.sleep(60)
        assert len(api.sent) < 40


@virtually
async def test_a_kind_with_objects_is_removed_only_after_repeated_404s() -> None:
    api = FakeApi()
    await api.put(POD, pod("known"))
    async with following(api) as informer:
        gone: list[object] = []
        informer.cache.add_handler(gone.append)
        refusals = iter([True, True])

        def starting(sent: Sent) -> None:
            if sent.method == "GET" and next(refusals, False):
                raise ApiError(404, "NotFound", "404 page not found")

        api.fail = starting
        await api.break_watches(forget=True)
        await until(lambda: informer.lists >= 4)
        assert not gone, "a server that is starting says so too, and every job would have been forgotten"
        api.fail = lambda _: None
        api.absent.add("pods")
        await api.break_watches(forget=True)
        await until(lambda: not names(informer))


@virtually
async def test_an_unreachable_server_is_retried() -> None:
    api = FakeApi()

    def silent(_: Sent) -> None:
        raise Unreachable("fake", "refused")

    api.fail = silent
    informer = Informer(Client(api), POD, Cache(phase))
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(300)
    assert not informer.is_synced
    assert len(api.sent) < 40
    api.fail = lambda _: None
    await informer.wait_synced()
    task.cancel()


@virtually
async def test_one_answer_ends_the_waits_of_all_kinds() -> None:
    api, reconnection, forbidden = FakeApi(), Reconnection(), {"pods", "nodes"}

    def refuse(sent: Sent) -> None:
        if sent.path.rpartition("/")[2] in forbidden:
            raise ApiError(403, "Forbidden", "the roles are not known yet")

    api.fail = refuse
    pods, nodes = (
        Informer(Client(api), kind, Cache(phase), reconnection=reconnection) for kind in (POD, NODE)
    )
    tasks = [asyncio.create_task(each.run()) for each in (pods, nodes)]
    await asyncio.sleep(300)
    forbidden.clear()
    before = len(api.sent)
    await until(lambda: pods.is_synced or nodes.is_synced)
    await asyncio.sleep(0.1)
    assert pods.is_synced
    assert nodes.is_synced
    assert len(api.sent) - before < 8
    for each in tasks:
        each.cancel()


@virtually
async def test_relisting_adds_objects_that_were_ignored() -> None:
    api = FakeApi()
    await api.put(POD, pod("dropped"))
    wanted: set[str] = set()
    cache = Cache[str](lambda found: phase(found) if wanted else None)
    informer = Informer(Client(api), POD, cache)
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    assert not len(cache)
    wanted.add("everything")
    informer.relist()
    await until(lambda: len(cache) == 1)
    task.cancel()


@virtually
async def test_an_object_that_cannot_be_processed_is_skipped_and_counted() -> None:
    api = FakeApi()
    await api.put(POD, {"metadata": {"namespace": "vision", "name": "odd"}})
    await api.put(POD, pod("listed"))
    async with following(api) as informer:
        await api.put(POD, pod("watched"))
        await until(lambda: names(informer) == ["listed", "watched"])
        assert informer.errors == 1


@virtually
async def test_an_internal_error_of_the_informer_is_counted_and_retried() -> None:
    api = FakeApi()
    await api.put(POD, pod("a"))
    cache = Cache(phase)
    informer = Informer(Client(api), POD, cache)
    retain, fails = cache.retain, iter([True, False])

    def retain_later(known: set[Name]) -> None:
        if next(fails):
            raise KeyError("internal")
        retain(known)

    cache.retain = retain_later  # type: ignore[method-assign]  # it must fail once
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(informer.wait_synced(), 60)
    assert (names(informer), informer.errors) == (["a"], 1)
    task.cancel()
