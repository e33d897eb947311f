"""Objects with extreme values of the types that an API server's schemas allow: huge numbers, odd times, missing fields."""

import copy
from typing import Final, TypeAlias

from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence

_Path: TypeAlias = tuple[str | int, ...]

# What the API server sets itself, and checks.
_SET_BY_SERVER: Final = frozenset({"name", "namespace", "uid", "resourceVersion"})

# Grace periods are int64; the API server adds them to the time of day, and the sum wraps.
INTEGERS: Final = (0, 1, -1, 2**31 - 1, -(2**31), 70_000_000_000, 2**63 - 1, -(2**63))
TIMES: Final = (
    "0001-01-01T00:00:01Z",
    "0001-01-01T00:00:00+14:00",
    "1715-03-01T00:00:00Z",
    "2026-11-21T12:00:00.123456789Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "292277026596-12-04T15:30:07Z",
)
TEXTS: Final = ("", "NewInAVersionToCome", "\u0663\u00b2", "9" * 5000, "1e999999999", "x" * 300)


def damaged(valid: Json) -> st.SearchStrategy[Json]:
    """The object with up to four of its fields missing, empty or extreme; types stay as the schemas demand."""
    paths = list(_paths(valid, ()))
    changes = st.lists(st.sampled_from(paths).flatmap(lambda path: _change(valid, path)), max_size=4)
    return changes.map(lambda drawn: _with(valid, drawn))


def _paths(value: JsonValue, at: _Path) -> list[_Path]:
    found: list[_Path] = []
    for name, each in mapping(value).items():
        if at != ("metadata",) or name not in _SET_BY_SERVER:
            found += [(*at, name), *_paths(each, (*at, name))]
    for place, each in enumerate(sequence(value)):
        found += [(*at, place), *_paths(each, (*at, place))]
    return [path for path in found if path != ("metadata",)]


def _change(valid: Json, path: _Path) -> st.SearchStrategy[tuple[_Path, JsonValue]]:
    value: JsonValue = valid
    for step in path:
        value = mapping(value)[step] if isinstance(step, str) else sequence(value)[step]
    return st.tuples(st.just(path), st.none() | _extreme(value))


def _extreme(value: JsonValue) -> st.SearchStrategy[JsonValue]:
    match value:
        case bool():
            return st.booleans()
        case int():
            return st.sampled_from(INTEGERS) | st.integers(-(2**63), 2**63 - 1)
        case str() if value.endswith("Z") and "T" in value:
            return st.sampled_from(TIMES)
        case str():
            return st.sampled_from(TEXTS) | st.text(max_size=5)
        case list():
            return st.sampled_from(([], [*value, *value]))
        case _:
            return st.just({})


def _with(valid: Json, changes: list[tuple[_Path, JsonValue]]) -> Json:
    """The object with the changes that are still possible after the ones before; None removes a field."""
    changed = copy.deepcopy(dict(valid))
    for path, value in changes:
        at: JsonValue = changed
        try:
            for step in path[:-1]:
                at = at[step]  # type: ignore[index,call-overload]  # an earlier change may have removed it
            if value is None:
                del at[path[-1]]  # type: ignore[attr-defined]  # as above
            else:
                at[path[-1]] = copy.deepcopy(value)  # type: ignore[index]  # as above
        except (KeyError, IndexError, TypeError):
            continue
    return changed
