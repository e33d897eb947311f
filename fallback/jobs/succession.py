"""How a job that has ended is made anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


@dataclass(frozen=True, kw_only=True)
class Succession:
    """Two writes in this order, both harmless when repeated; nothing is deleted, so no kill between them loses a job.

    `manifest`: the successor, to be created; that it is there already is as good. `patch`: the merge patch by which
    the ended job says so, and asks for none again.
    """

    manifest: Json
    patch: Json
