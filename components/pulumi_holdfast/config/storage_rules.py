"""The rules on the volumes of data of every cloud: their namespaces, sizes and zones, and the fields of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.rules import duplicate_name_problems, training_namespace_problems
from pulumi_holdfast.config.storage import VolumeKind, VolumeSection
from pulumi_holdfast.ladder.errors import Problem

if TYPE_CHECKING:
    from pulumi_holdfast.config.namespace import NamespaceSection

STORAGE: Final = f"{PLATFORM}.storage"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes in GiB of a file system: from `least` to `most` in steps, counted from `least` or from 0."""

    least: int
    most: int
    step: int
    from_zero: bool = False

    def allow(self, size: int) -> bool:
        """Whether there is a file system of this size."""
        start = 0 if self.from_zero else self.least
        return size == self.least or (self.least <= size <= self.most and (size - start) % self.step == 0)

    def __str__(self) -> str:
        """The text in messages."""
        return f"{self.least} to {self.most}, in steps of {self.step}"


#: The fields that only some kinds have. `sizes` decides whether a kind has a size.
_ONLY: Final[Mapping[str, frozenset[VolumeKind]]] = {
    "existing": frozenset({VolumeKind.BUCKET}),
    "zone": frozenset({VolumeKind.PARALLEL}),
    "throughput": frozenset({VolumeKind.PARALLEL}),
    "imports": frozenset({VolumeKind.PARALLEL}),
    "subnetId": frozenset({VolumeKind.PARALLEL}),
    "cidr": frozenset({VolumeKind.PARALLEL}),
}


def storage_problems(
    storage: Sequence[VolumeSection],
    namespaces: Sequence[NamespaceSection],
    sizes: Mapping[int, Sizes],
    *,
    zones: Sequence[str] = (),
) -> Iterator[Problem]:
    """The problems of a stack's volumes; `sizes` are those of its file systems with a size, by the number of the volume.

    A parallel file system is in one of `zones`, unless the region has none.
    """
    yield from duplicate_name_problems([volume.name for volume in storage], "volume", STORAGE)
    for number, volume in enumerate(storage):
        at = f"{STORAGE}[{number}]"
        yield from training_namespace_problems(volume.namespaces, namespaces, f"{at}.namespaces")
        yield from _other_kinds(volume, at)
        yield from _size(volume, sizes.get(number), at)
        if volume.kind is VolumeKind.PARALLEL and zones:
            yield from _zone(volume, zones, at)


def _other_kinds(volume: VolumeSection, at: str) -> Iterator[Problem]:
    """The fields that a volume of this kind does not have."""
    given = {str(type(volume).model_fields[name].alias) for name in volume.model_fields_set}
    for field, kinds in _ONLY.items():
        if field in given and volume.kind not in kinds:
            allowed = f"nothing: {field} is for {' and '.join(sorted(kinds))}"
            yield Problem(f"{at}.{field}", f"a value on kind {volume.kind.value}", allowed, "Leave it out.")


def _size(volume: VolumeSection, sizes: Sizes | None, at: str) -> Iterator[Problem]:
    size, field = volume.size_gib, f"{at}.sizeGiB"
    if sizes is None and size is not None:
        allowed = f"nothing: a {volume.kind.value} volume has no size here, it grows with its files"
        yield Problem(field, str(size), allowed, "Leave it out.")
    elif sizes is not None and (size is None or not sizes.allow(size)):
        fix = f"Write {sizes.least}, the smallest."
        yield Problem(field, "nothing" if size is None else str(size), str(sizes), fix)


def _zone(volume: VolumeSection, zones: Sequence[str], at: str) -> Iterator[Problem]:
    zone = volume.zone
    if zone not in zones:
        got = "nothing" if zone is None else format_value(str(zone))
        yield Problem(f"{at}.zone", got, f"one of {', '.join(zones)}", f"Write {zones[0]}.")
