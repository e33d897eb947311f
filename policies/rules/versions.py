"""Versions of custom resources that the rules know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.policies.findings import StackResource


def version_problems(resource: StackResource, known: str) -> Iterator[str]:
    """Yield a statement where the version in the type is another one than the rules are written for."""
    version = resource.type.rpartition(":")[0].rpartition("/")[2]
    if version != known:
        yield f"is of version {version}, which the rules do not know: it is read as if it were {known}."
