"""The pack's rules, in the order in which a report shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.tables.ladders import LADDERS
from policies.tables.pools import POOLS
from policies.tables.reading import READING
from policies.tables.surroundings import SURROUNDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.rule import Rule

RULES: Final[Sequence[Rule]] = (*LADDERS, *POOLS, *SURROUNDINGS, READING)
