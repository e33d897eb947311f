"""Makes the users of an output depend on further resources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from pulumi import Output, Resource


def tied_to(value: Output[str], resources: Iterable[Resource]) -> Output[str]:
    """Return the same value; its users are created after these resources and deleted before them.

    It uses URNs instead of IDs: URNs are known on preview, so a new resource does not make the value unknown,
    which would show a replacement of all its users.
    """
    return Output.all(value, *(resource.urn for resource in resources)).apply(
        lambda known: cast("str", known[0])
    )
