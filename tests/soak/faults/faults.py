"""What can be done to a cluster and its controller. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Shortage(StrEnum):
    """How a pool comes to have no machines to give."""

    STOCK = "stock"  #: the cloud has none
    LIMITS = "limits"  #: its NodePool may have none


@dataclass(frozen=True, kw_only=True)
class Evict:
    """One pod of each of these jobs is evicted; jobs by their numbers."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TakeNode:
    """A machine is taken, with a notice that drains it or without any: the one at a place among those of a tier.

    `place` is between 0 and 1.
    """

    tier: int
    place: float
    is_told: bool


@dataclass(frozen=True, kw_only=True)
class RunOut:
    """A tier gives no machine any more, and those it gave are taken without notice."""

    tier: int
    shortage: Shortage


@dataclass(frozen=True, kw_only=True)
class Recover:
    """Every tier gives machines again."""


@dataclass(frozen=True, kw_only=True)
class SlowDown:
    """A tier's machines take so many seconds more to come up."""

    tier: int
    seconds: int


@dataclass(frozen=True, kw_only=True)
class Complete:
    """These jobs come to their end; jobs by their numbers."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class KillController:
    """The controller is killed at its `write`-th write from now, before the API server has it or after it was done."""

    write: int
    is_done: bool


@dataclass(frozen=True, kw_only=True)
class KillServer:
    """The API server is killed, and etcd with it if so said; both come back."""

    with_etcd: bool


Fault: TypeAlias = Evict | TakeNode | RunOut | Recover | SlowDown | Complete | KillController | KillServer
