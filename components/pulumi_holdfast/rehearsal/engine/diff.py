"""Compares old and new inputs property by property, and converts the result to the engine's message."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.rehearsal.engine.values import Properties, Unknown, Value, strip_secrets


class ChangeKind(Enum):
    """What happens to a property: the engine's kind, and that of a change that replaces the resource."""

    ADD = (provider_pb2.PropertyDiff.ADD, provider_pb2.PropertyDiff.ADD_REPLACE)
    DELETE = (provider_pb2.PropertyDiff.DELETE, provider_pb2.PropertyDiff.DELETE_REPLACE)
    UPDATE = (provider_pb2.PropertyDiff.UPDATE, provider_pb2.PropertyDiff.UPDATE_REPLACE)


@dataclass(frozen=True, kw_only=True)
class PropertyChange:
    """A changed property, by path: `tags.team`, `rules[0].port`, `tags["a.b"]`."""

    path: str
    kind: ChangeKind

    @property
    def top(self) -> str:
        """The top-level property of the path."""
        return self.path.split(".")[0].split("[")[0]

    def within(self, paths: Iterable[str]) -> bool:
        """Whether the change is at or below one of the paths, or removes a parent of one."""
        return any(_covers(path, self.path) or _covers(self.path, path) for path in paths)


def changes(old: Properties, new: Properties) -> list[PropertyChange]:
    """Return the changes from old to new inputs; null equals absent, and an unknown value is a change."""
    return list(_of_maps(old, new, ""))


def _of_maps(old: Properties, new: Properties, path: str) -> Iterator[PropertyChange]:
    for key in dict.fromkeys((*old, *new)):
        yield from _of_values(strip_secrets(old.get(key)), strip_secrets(new.get(key)), _join(path, key))


def _of_values(old: Value, new: Value, path: str) -> Iterator[PropertyChange]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _of_maps(old, new, path)
    elif _is_list(old) and _is_list(new):
        yield from _of_lists(old, new, path)
    elif old is None or new is None:
        if old is not new:
            yield PropertyChange(path=path, kind=ChangeKind.ADD if old is None else ChangeKind.DELETE)
    elif isinstance(new, Unknown) or old != new:
        yield PropertyChange(path=path, kind=ChangeKind.UPDATE)


def _of_lists(old: Value, new: Value, path: str) -> Iterator[PropertyChange]:
    before = old if isinstance(old, Sequence) else ()
    after = new if isinstance(new, Sequence) else ()
    for at in range(max(len(before), len(after))):
        yield from _of_values(
            before[at] if at < len(before) else None, after[at] if at < len(after) else None, f"{path}[{at}]"
        )


def _is_list(value: Value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _join(path: str, key: str) -> str:
    """Join in the engine's syntax for property paths: keys with special characters are quoted."""
    if path and any(character in key for character in '.[]"'):
        quoted = key.replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key


def _covers(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


def diff_response(
    found: Sequence[PropertyChange],
    *,
    replacing: Collection[PropertyChange] = (),
    deletes_first: bool = False,
) -> provider_pb2.DiffResponse:
    """Return changes as the engine's message; `replacing` are those that replace the resource."""
    detailed = {
        one.path: provider_pb2.PropertyDiff(kind=one.kind.value[1 if one in replacing else 0], inputDiff=True)
        for one in found
    }
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if found else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=list(dict.fromkeys(one.top for one in found)),
        replaces=[one.path for one in found if one in replacing],
        detailedDiff=detailed,
        hasDetailedDiff=True,
        deleteBeforeReplace=bool(replacing) and deletes_first,
    )
