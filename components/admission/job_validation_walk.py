"""CEL, as text: the walk of `scheduling.reachability.walk` down the ladder, for all shapes of a job at once."""

from __future__ import annotations

from typing import Final

from holdfast.components.admission.expressions import text
from holdfast.components.admission.job_validation_links import IS_LAST, capacity, links, together
from holdfast.components.admission.job_validation_shapes import title
from holdfast.components.admission.job_validation_text import number, said
from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.ladder import FOREVER
from holdfast.scheduling.reachability import words

_TIER: Final = "variables.tiers[i]"


def start() -> str:
    """Return the tier at which the job begins, -1 where its templates name none of the ladder's or several."""
    return "size(variables.chosen) == 1 ? variables.pools.indexOf(variables.chosen[0]) : -1"


def broken() -> str:
    """Return for each tier why the job cannot be there: a sentence for each shape, and one for all together.

    A tier above the first one is left out: the job does not come by it.
    """
    why = "w.join(" + text(" ") + f') + ({IS_LAST} ? "" : " " + {text(words.NO_WAY_PAST)})'
    where = said(words.TIER, number=number("i + 1"), pool=f"{_TIER}.pool")
    of_shape = said(words.CANNOT_FALL_BACK, who=title("variables.shapes[j]"), where=where, why=why)
    of_all = said(words.CANNOT_FALL_BACK, who=text(words.THE_JOB), where=where, why=why)
    found = " + ".join([f"({capacity()})", *(f"variables.{link}[i][j]" for link in links())])
    shapes = f"lists.range(size(variables.shapes)).map(j, [{found}].filter(w, size(w) > 0).map(w, {of_shape})).flatten()"
    job = f"[{together()}].filter(w, size(w) > 0).map(w, {of_all})"
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers)).map(i, "
        f"i < variables.start ? [] : ({shapes} + {job}))"
    )


def end() -> str:
    """Return the tier on which the walk ends: a list of its index, or of nothing.

    It ends where the job would be stuck or fall off, where it may be on on-demand nodes, or where it may stay for ever.
    """
    has_timeout = f"{_TIER}.?procurementTimeout.hasValue()"
    is_spot = f"{_TIER}.?facts.?capacity.orValue({text(ON_DEMAND)}) == {text(SPOT)}"
    stays = f"{_TIER}.?maxFailures.orValue(0) == {FOREVER} && ({IS_LAST} || !{has_timeout})"
    ends = f"size(variables.broken[i]) > 0 ? ({IS_LAST} || !{has_timeout}) : (!({is_spot}) || {stays})"
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers))"
        f".filter(i, i >= variables.start && ({ends}))"
    )


def ending() -> str:
    """Return why the job does not come to its ladder's end: nothing where it does, or where that is not known."""
    return "size(variables.end) == 0 ? [] : variables.broken[variables.end[0]]"
