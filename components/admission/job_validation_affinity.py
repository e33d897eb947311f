"""CEL, as text: required node affinity of a shape `s`, over the labels of the tier at `i` that are known."""

from __future__ import annotations

from typing import Final

from holdfast.components.admission.expressions import affinity_terms, text, texts
from holdfast.components.admission.job_validation_text import sentence
from holdfast.scheduling.labels import GIVEN_LABEL_PATTERN
from holdfast.scheduling.reachability import words

LABELS: Final = "variables.labels[i]"
#: Nothing is known of the labels.
UNLABELLED: Final = "!variables.tiers[i].?facts.?labels.hasValue()"


def affinity() -> str:
    """One alternative of the required node affinity may be true of the nodes."""
    terms = affinity_terms("s.spec")
    expressions = "a.?matchExpressions.orValue([])"
    empty = f"size({expressions}) == 0 && size(a.?matchFields.orValue([])) == 0"
    fails = f"{empty} || {expressions}.exists(e, {is_false('e')})"
    keys = (
        f"{terms}.map(a, {expressions}.map(e, string(e.key))).flatten().distinct().sort().join({text(', ')})"
    )
    why = sentence(words.AFFINITY, keys=keys)
    return f"{UNLABELLED} || size({terms}) == 0 || !{terms}.all(a, {fails}) ? [] : [{why}]"


def is_false(expression: str) -> str:
    """Return whether an expression of a node affinity is certainly not true of the nodes of the tier at `i`."""
    e, labels = expression, LABELS
    values = f"{e}.?values.orValue([])"
    there, whole = f"string({labels}[{e}.key])", text("^-?[0-9]{1,18}$")
    bound = f"string({values}[0])"
    comparable = f"size({values}) > 0 && {there}.matches({whole}) && {bound}.matches({whole})"
    known = {
        "In": f"!({labels}[{e}.key] in {values})",
        "NotIn": f"{labels}[{e}.key] in {values}",
        "DoesNotExist": "true",
        "Gt": f"!({comparable} && int({there}) > int({bound}))",
        "Lt": f"!({comparable} && int({there}) < int({bound}))",
    }
    of_known = " || ".join(
        f"{e}.operator == {text(operator)} && ({fails})" for operator, fails in known.items()
    )
    of_missing = f"{e}.operator in {texts(['In', 'Exists', 'Gt', 'Lt'])} && !{is_given(f'string({e}.key)')}"
    return f"({e}.key in {labels} ? ({of_known}) : ({of_missing}))"


def is_given(key: str) -> str:
    """Return whether nodes may have a label of this key that nobody declares."""
    return f"{key}.matches({text(GIVEN_LABEL_PATTERN)})"
