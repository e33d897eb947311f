"""The pack's rules, in the order in which a report shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.tables.ladders import LADDERS
from holdfast.policies.tables.pools import POOLS
from holdfast.policies.tables.reading import READING
from holdfast.policies.tables.surroundings import SURROUNDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.rule import Rule

RULES: Final[Sequence[Rule]] = (*LADDERS, *POOLS, *SURROUNDINGS, READING)
