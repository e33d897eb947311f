"""The rule of pools whose machines are named one by one, or by family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def one_way_problems(
    named: tuple[str, str], parts: Mapping[str, str], given: frozenset[str], at: str
) -> Iterator[Problem]:
    """Machines that are named in no way, in two ways, or by half of one.

    `named` is the field of the one way, `parts` are those of the other, which go together; each with an example. `given`
    are the fields that stand there.
    """
    field, example = named
    ways = f"either {field}, or {' and '.join(parts)}"
    there = [part for part in parts if part in given]
    if field in given and there:
        yield Problem(
            field=f"{at}.{there[0]}",
            value=f"{' and '.join(there)} beside {field}",
            allowed=ways,
            fix="Leave out the one or the other.",
        )
    elif field not in given and not there:
        others = " and ".join(f"`{part}: {written}`" for part, written in parts.items())
        yield Problem(
            field=f"{at}.{field}",
            value="nothing",
            allowed=ways,
            fix=f"Add `{field}: {example}`, or {others}.",
        )
    elif field not in given:
        for part in parts:
            if part not in given:
                yield Problem(
                    field=f"{at}.{part}", value="nothing", allowed=ways, fix=f"Add `{part}: {parts[part]}`."
                )
