"""Ties a value to resources beside the one it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi import Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulumi import Resource


def tied_to(value: Output[str], resources: Iterable[Resource]) -> Output[str]:
    """The same value, whose users are made after these resources and deleted before them.

    By their URNs and not their ids: a URN is known on preview, so that a resource that is new among them does not make
    the value unknown, which would show replacements of all that uses it.
    """
    return Output.all(value, *(resource.urn for resource in resources)).apply(
        lambda known: cast("str", known[0])
    )
