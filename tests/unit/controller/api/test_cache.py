"""A cache has the newest version of each object from lists, watches and responses."""

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.api.cache import Cache, Change
from pulumi_holdfast.ladder.json import Json
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
    assert known.get("n", "x") == ("a", 5), "versions of an object only go up"
    known = cache()
    known.put(thing("x", 5, value=5))
    known.refresh(thing("x", 7, value=7))
    known.put(thing("x", 6, value=6))
    assert known.get("n", "x") == ("a", 7), "the watch is behind for a moment"
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
    assert [(change.before, change.after) for change in changes] == [(("a", 1), None), (None, ("a", 1))], (
        "it went and came, though the two look alike"
    )


def test_the_last_version_of_a_deleted_object_is_stored_first() -> None:
    known = cache()
    seen: list[object] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(lambda change: seen.append(change.after))
    known.remove(thing("x", 6, value=2))
    assert seen == [("a", 2), None], "only the deletion may show why a pod ended"


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
    assert known.known() == [("n", "y")], "a deletion that no watch has shown"


def test_a_change_of_trimmed_fields_calls_no_handler() -> None:
    known = cache()
    seen: list[object] = []
    known.put(thing("x", 5, value=1))
    known.add_handler(seen.append)
    known.put(thing("x", 6, value=1))
    assert not seen, "a heartbeat is a new version of the same"


def test_a_version_that_cannot_be_cached_or_indexed_is_counted_and_ignored() -> None:
    known = cache()
    known.put(thing("x", 5, value=5))
    known.put({**thing("x", 6), "value": "many"})
    assert known.get("n", "x") == ("a", 5), "the version before it stays"
    unsorted: Cache[tuple[str, int]] = Cache(
        trimmed, indexes={"group": lambda _, entry: (str(1 // entry[1]),)}
    )
    unsorted.put(thing("x", 5, value=1))
    unsorted.put(thing("x", 6, value=0))
    unsorted.put(thing("y", 6, value=1))
    assert unsorted.find("group", "1") == [("a", 1), ("a", 1)], "an index has whole objects only"
    assert (known.errors, unsorted.errors) == (1, 1), "an alert reports it"
    known.remove({**thing("x", 7), "value": "many"})
    assert len(known) == 0, "a deleted object goes, whatever its last version is"


names = st.sampled_from(["x", "y", "z"])
steps = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "retain"]), names, st.sampled_from(["a", "b", "none"]))
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
        assert known.has("group", group) == bool(expected), "an empty group is none"
    assert sorted(known.all("group")) == sorted(known), "every object is in some group"


def test_an_object_without_version_is_stored() -> None:
    known = cache()
    bare = {**thing("x", 1), "metadata": {"name": "x", "namespace": "n"}}
    known.put(bare)
    assert obj(bare)["group"] == "a", "the object is left as it was"
    assert known.get("n", "x") == ("a", 0), "and kept"
