"""A cache shows what a list and a watch say, in their order, and nothing that is older than what it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from holdfast.fallback.api.cache import Cache, Change
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


def thing(name: str, version: int, *, uid: str = "u", group: str = "a", value: int = 0) -> Json:
    """An object of namespace `n`."""
    return {
        "metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": str(version)},
        "group": group,
        "value": value,
    }


def kept(found: Json) -> tuple[str, int] | None:
    """Group and value; nothing of the group `none`."""
    return None if found["group"] == "none" else (str(found["group"]), int(str(found["value"])))


def of_group(_: object, entry: tuple[str, int]) -> tuple[str]:
    """What the index finds it by."""
    return (entry[0],)


def cache() -> Cache[tuple[str, int]]:
    """A cache with an index by group."""
    return Cache(kept, indexes={"group": of_group})


def test_an_answer_that_comes_late_does_not_undo_what_the_watch_has_shown() -> None:
    known = cache()
    known.put(thing("x", 5, value=5))
    known.put(thing("x", 4, value=4))
    assert known.get("n", "x") == ("a", 5), "versions of an object only go up"


def test_our_own_write_is_known_before_the_watch_shows_it() -> None:
    known = cache()
    known.put(thing("x", 5, value=5))
    known.refresh(thing("x", 7, value=7))
    known.put(thing("x", 6, value=6))
    assert known.get("n", "x") == ("a", 7), "the watch is behind for a moment"


def test_an_answer_about_an_object_that_is_gone_does_not_bring_it_back() -> None:
    known = cache()
    known.put(thing("x", 5))
    known.remove(thing("x", 6))
    known.refresh(thing("x", 5))
    known.refresh(thing("y", 9))
    assert len(known) == 0, "it would stay for ever: nothing will ever say again that it is gone"


def test_an_object_made_again_under_its_name_is_another() -> None:
    known = cache()
    changes: list[Change[tuple[str, int]]] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(changes.append)
    known.put(thing("x", 9, uid="v", value=1))
    assert [(change.before, change.after) for change in changes] == [(("a", 1), None), (None, ("a", 1))], (
        "it went and came, though the two look alike"
    )


def test_the_last_state_of_an_object_is_shown_before_it_is_gone() -> None:
    known = cache()
    seen: list[object] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(lambda change: seen.append(change.after))
    known.remove(thing("x", 6, value=2))
    assert seen == [("a", 2), None], "what a pod ended of may be told by its deletion alone"


def test_a_list_is_right_even_where_versions_have_gone_back() -> None:
    known = cache()
    known.put(thing("x", 900, value=1))
    known.put(thing("x", 5, value=2), is_listed=True)
    known.put(thing("x", 6, value=3))
    assert known.get("n", "x") == ("a", 3), "an etcd that was restored would else be believed nothing"


def test_nobody_is_woken_by_a_change_of_what_nobody_reads() -> None:
    known = cache()
    seen: list[object] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(seen.append)
    known.put(thing("x", 6, value=1))
    assert not seen, "a heartbeat is a new version of the same"


def test_a_list_takes_away_what_is_not_in_it() -> None:
    known = cache()
    known.put(thing("x", 5))
    known.put(thing("y", 5))
    known.retain({("n", "y")})
    assert known.known() == [("n", "y")], "a deletion that no watch has shown"


names = st.sampled_from(["x", "y", "z"])
steps = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "retain"]), names, st.sampled_from(["a", "b", "none"]))
)


@given(steps)
def test_every_index_finds_exactly_what_is_kept(done: list[tuple[str, str, str]]) -> None:
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
        assert known.has("group", group) == bool(expected), "an empty group is none"
    assert sorted(known.all("group")) == sorted(known), "every object is in some group"


def test_an_object_without_a_version_is_taken_as_it_comes() -> None:
    known = cache()
    bare = {**thing("x", 1), "metadata": {"name": "x", "namespace": "n"}}
    known.put(bare)
    assert obj(bare)["group"] == "a", "the object is left as it was"
    assert known.get("n", "x") == ("a", 0), "and kept"
