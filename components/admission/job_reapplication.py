"""CEL, as text: what admission does when a manifest is applied again over a job that it has mended.

The manifest still says what it said at first: it would undo the mending, and with it the tier the job has reached. KubeRay
takes that, and the next attempt would be on spot again; JobSet takes it from a JobSet that is suspended, as in the middle of
a move, and refuses it of one that runs, so that nobody could apply a manifest twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.admission.expressions import text
from holdfast.components.admission.job_expressions import QUEUE_NAME
from holdfast.components.admission.job_patches import below, labelled, only_if, put, selecting, step
from holdfast.scheduling.labels import FOLLOWS, FOLLOWS_VALUE, HELD_FOR, ORIGINAL, POOL, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.admission.job_expressions import JobKind
    from holdfast.components.admission.rules import NodeSelection

#: The specification of the pods of the template at `i`, as it was.
_BEFORE: Final = "variables.before[i]"


def reapplication_variables(kind: JobKind) -> Mapping[str, str]:
    """Return what the patches refer to; `following` are the templates that were marked before the update."""
    label = f"metadata.?labels[?{text(FOLLOWS)}]"
    item = "variables.items[i]"
    marked = f'{kind.template_of("o")}.?{label}.orValue("") == {text(FOLLOWS_VALUE)}'
    same = f"variables.oldItems.filter(o, o.?{kind.name} == {item}.?{kind.name} && {marked})"
    spec = f"{kind.template_of('o')}.?spec.orValue({{}})"
    return {
        "items": kind.items_of("object"),
        "oldItems": kind.items_of("oldObject"),
        "specs": f"variables.items.map(r, {kind.template_of('r')}.?spec.orValue({{}}))",
        # A list of one or none for each item: what it was made from.
        "origins": f"lists.range(size(variables.items)).map(i, {same}.map(o, {spec}))",
        "before": "variables.origins.map(o, size(o) == 0 ? {} : o[0])",
        "queued": f'object.metadata.?labels[?{text(QUEUE_NAME)}].orValue("") != ""',
        "mended": (
            f'oldObject.{label}.orValue("") == {text(FOLLOWS_VALUE)} && '
            f"oldObject.metadata.?annotations[?{text(ORIGINAL)}].hasValue()"
        ),
        "kept": f'object.{label}.orValue("") in ["", {text(FOLLOWS_VALUE)}]',
        "following": (
            "variables.mended && variables.kept ? lists.range(size(variables.items)).filter(i, "
            f"size(variables.origins[i]) > 0 && {kind.template_of(item)}.?spec.hasValue()) : []"
        ),
    }


def restored(kind: JobKind, capacity: Sequence[NodeSelection]) -> str:
    """Return the patches that give the template at `i` the tier back that it was on, unless it names one."""
    template = below(kind.path_of("i"), kind.template_path)
    own = f'variables.specs[i].?nodeSelector[?{text(POOL)}].orValue("")'
    pool = f'{own} != "" ? {own} : {_BEFORE}.?nodeSelector[?{text(POOL)}].orValue("")'
    metadata = f"{kind.template_of('variables.items[i]')}.?metadata"
    return " + ".join(
        [
            labelled(template, metadata),
            selecting(kind, capacity, pool),
            # What lets its pods onto capacity that is held for them.
            _tolerating_hold(below(template, "/spec/tolerations")),
        ]
    )


def restored_annotations() -> str:
    """Return the patches that give back the annotations without which nobody knows where the job is."""
    each = (_annotation(ORIGINAL), _annotation(STATE))
    made = only_if("!has(object.metadata.annotations)", put(text("/metadata/annotations"), "{}"))
    return " + ".join([made, *each])


def _annotation(name: str) -> str:
    old = f"oldObject.metadata.?annotations[?{text(name)}]"
    missing = f"!object.metadata.?annotations[?{text(name)}].hasValue() && {old}.hasValue()"
    path = text(f"/metadata/annotations/{step(name)}")
    return only_if(missing, put(path, f"{old}.value()"))


def _tolerating_hold(path: str) -> str:
    is_hold = f't.?key.orValue("") == {text(HELD_FOR)}'
    held = f"{_BEFORE}.?tolerations.orValue([]).filter(t, {is_hold})"
    others = f"variables.specs[i].?tolerations.orValue([]).filter(t, !({is_hold}))"
    return only_if(f"size({held}) > 0", put(path, f"{others} + {held}"))
