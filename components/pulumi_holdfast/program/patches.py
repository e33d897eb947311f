"""Applies patches of Kubernetes objects, such as a NodePoolPatch, to the objects of the program that they change.

A patch adds fields, or takes fields over from the object's own resource. Which value of such a field holds depends on forced
conflicts and on later updates, and a program does not show that: the field is UNKNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.resources import StackResource, Value, at, is_object, text_at

_OBJECT: Final = re.compile(r"kubernetes:(?:([^:/]+)/)?v\d\w*:(\w+)")
_SUFFIX: Final = "Patch"
_CHANGED: Final = (
    "the patch {name!r} changes it, and the program does not show which of both holds. Write the change into the object "
    "itself, and remove the patch"
)
_ALONE: Final = "another program makes it, and the patch {name!r} does not show all of it"


def unshown_by_patches(resource: StackResource) -> tuple[str, ...]:
    """Return why an object is not shown by the program, not even by its update: one reason for each patch."""
    if is_patch(resource):
        return (_ALONE.format(name=resource.logical_name),)
    return tuple(_CHANGED.format(name=name) for name in resource.patched_by)


def is_patch(resource: StackResource, kind: str = "") -> bool:
    """Whether a resource patches an object; of this kind, if one is given."""
    return resource.type.endswith(f"{kind}{_SUFFIX}") and _OBJECT.fullmatch(resource.type) is not None


def with_patches(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the resources with each patch applied to its object. A patch of an object that is not among them stays."""
    patches = [each for each in resources if is_patch(each)]
    if not patches:
        return tuple(resources)
    found, by_kind = list(resources), dict[str, list[int]]()
    for index, each in enumerate(resources):
        by_kind.setdefault(_kind(each), []).append(index)
    applied: set[int] = set()
    for patch in patches:
        for index in by_kind.get(_kind(patch).removesuffix(_SUFFIX), ()):
            is_its_object = _is_its_object(patch, found[index], resources)
            if is_its_object is not False:
                applied.add(id(patch))
                found[index] = _patched(found[index], patch, is_certain=is_its_object is True)
    return tuple(each for each in found if id(each) not in applied)


def _kind(resource: StackResource) -> str:
    """Return group and kind, without the version."""
    found = _OBJECT.fullmatch(resource.type)
    return f"{found[1] or ''}/{found[2]}" if found else ""


def _is_its_object(
    patch: StackResource, resource: StackResource, resources: Sequence[StackResource]
) -> bool | Unknown:
    """Whether a patch is one of this object; UNKNOWN if the program does not show it."""
    if made_of := patch.refers_to.get("metadata"):
        # Its name is an output, most likely of the object.
        return resource.urn in made_of
    same = is_same_cluster(patch, resource, resources)
    for name, default in (("name", ""), ("namespace", "default")):
        names = {text_at(each.props, "metadata", name) or default for each in (patch, resource)}
        if UNKNOWN not in names and len(names) > 1:
            return False
        same = UNKNOWN if same and UNKNOWN in names else same
    return same


def _patched(resource: StackResource, patch: StackResource, *, is_certain: bool) -> StackResource:
    metadata = at(patch.props, "metadata")
    given: Mapping[str, Value] = {
        "metadata": {
            key: value
            for key, value in (metadata.items() if is_object(metadata) else ())
            if key in ("labels", "annotations")
        },
        "spec": at(patch.props, "spec") or {},
    }
    is_open = not is_certain or _conflict(resource.props, given)
    names = (patch.logical_name,) if is_open else ()

    def merged(before: Mapping[str, Value]) -> Mapping[str, Value]:
        changed = {
            key: _merged(before.get(key), value, is_certain=is_certain) for key, value in given.items()
        }
        return {**before, **changed}

    return replace(
        resource,
        props=merged(resource.props),
        inputs=None if resource.inputs is None else merged(resource.inputs),
        patched_by=(*resource.patched_by, *names),
    )


def _merged(before: Value, given: Value, *, is_certain: bool) -> Value:
    """Return a field after a patch. Lists are not merged: only the schema of an object tells which are, and by which keys."""
    if is_object(given) and (is_object(before) or before is None):
        old = before or {}
        return {
            **old,
            **{key: _merged(old.get(key), value, is_certain=is_certain) for key, value in given.items()},
        }
    return given if before == given or (before is None and is_certain) else UNKNOWN


def _conflict(before: Value, given: Value) -> bool:
    """Whether both set a field, to different values."""
    if is_object(before) and is_object(given):
        return any(_conflict(before.get(key), value) for key, value in given.items())
    return before is not None and given is not None and before != given
