"""CEL expressions for the JSON patches of both kinds of job.

The second half restores an adjusted job when its manifest is applied again. The manifest has the original
values and would undo both the adjustment and the tier that the job has reached. KubeRay accepts such an
update, and the next attempt would run on spot again. JobSet accepts it for a suspended JobSet, for example
during a move, and rejects it for a running one, so that no manifest could be applied twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.admission.expressions import affinity_terms, expression_selects, text, texts
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME
from pulumi_holdfast.ladder.labels import (
    FOLLOWS,
    FOLLOWS_VALUE,
    ORIGINAL,
    POOL,
    RESERVED_FOR,
    STATE,
    STOP,
    SUSPENDED_FOR,
)
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind
    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection


def json_object(fields: Mapping[str, str]) -> str:
    """Return a JSON object from expressions for optional JSON values; absent values are left out.

    CEL has no function that writes JSON.
    """
    pairs = ", ".join(
        f"[{value}].filter(v, v.hasValue()).map(v, {text(f'{text(name)}:')} + v.value())"
        for name, value in fields.items()
    )
    return f'"{{" + [{pairs}].flatten().join(",") + "}}"'


def json_texts(mapping: str) -> str:
    """Return an optional map of strings as optional JSON with sorted keys."""
    pair = 'strings.quote(string(k)) + ":" + strings.quote(string(m[k]))'
    return f'{mapping}.optMap(m, "{{" + m.map(k, string(k)).sort().map(k, {pair}).join(",") + "}}")'


def json_text(value: str) -> str:
    """Return an optional string as optional JSON."""
    return f"{value}.optMap(t, strings.quote(string(t)))"


def json_plain(value: str) -> str:
    """Return an optional number or boolean as optional JSON."""
    return f"{value}.optMap(n, string(n))"


def json_of_each(indexes: str, key: str, value: str) -> str:
    """Return a JSON object with one value for each index `i`; `key` is an expression for a string."""
    return f'"{{" + {indexes}.map(i, strings.quote({key}) + ":" + {value}).join(",") + "}}"'


def pointer_below(path: str, steps: str) -> str:
    """Return the JSON pointer `steps` (`/spec`) below a JSON pointer that is an expression."""
    return f"{path} + {text(steps)}"


def pointer_step(key: str) -> str:
    """Escape a key for a JSON pointer. CEL's `jsonpatch.escapeKey` is available in mutations only."""
    return key.replace("~", "~0").replace("/", "~1")


def set_field(path: str, value: str) -> str:
    """Return the patch that sets a field, whether or not it exists."""
    return mapping({"op": text("add"), "path": path, "value": value})


def remove_field(path: str) -> str:
    """Return the patch that removes a field."""
    return mapping({"op": text("remove"), "path": path})


def as_json_patches(patches: str) -> str:
    """Convert patches from maps to `JSONPatch`, a type that only mutations know."""
    patch = "JSONPatch{op: string(p.op), path: string(p.path), ?value: p.?value}"
    return f"{patches}.map(p, {patch})"


def only_if(condition: str, *patches: str) -> str:
    """Return the patches if the condition holds, and an empty list otherwise."""
    return f"({condition} ? [{', '.join(patches)}] : [])"


def mapping(fields: Mapping[str, str]) -> str:
    """Return a map literal; the values are expressions of any type."""
    return "{" + ", ".join(f"{text(key)}: dyn({value})" for key, value in fields.items()) + "}"


def label_patches(path: str, metadata: str) -> str:
    """Return the patches that label an object as following a ladder.

    `path` points to the parent of `metadata`, which is an optional.
    """
    pair = f"{{{text(FOLLOWS)}: {text(FOLLOWS_VALUE)}}}"
    one = set_field(pointer_below(path, f"/metadata/labels/{pointer_step(FOLLOWS)}"), text(FOLLOWS_VALUE))
    all_labels = set_field(pointer_below(path, "/metadata/labels"), pair)
    whole = set_field(pointer_below(path, "/metadata"), f'{{"labels": {pair}}}')
    return f"({metadata}.?labels.hasValue() ? [{one}] : {metadata}.hasValue() ? [{all_labels}] : [{whole}])"


def annotation_patches(original: str) -> str:
    """Return the patches that save the original values, unless they are already saved."""
    one = set_field(text(f"/metadata/annotations/{pointer_step(ORIGINAL)}"), original)
    whole = set_field('"/metadata/annotations"', f"{{{text(ORIGINAL)}: {original}}}")
    return f"(variables.adjusted ? [] : has(object.metadata.annotations) ? [{one}] : [{whole}])"


def start_pool() -> str:
    """Return the pool on which the template at `i` starts: the tier that it selects, or the first tier."""
    own = f'variables.specs[i].?nodeSelector[?{text(POOL)}].orValue("")'
    return f"{own} in variables.pools ? {own} : variables.pools[0]"


def select_tier(kind: JobKind, capacity: Sequence[NodeSelection], pool: str) -> str:
    """Return the patches that make the template at `i` select its tier by the pool's name only.

    `pool` is an expression for the name; an empty name adds no selector. Kueue sets the selectors of its own
    jobs.
    """
    path = pointer_below(kind.path_of("i"), f"{kind.template_path}/spec")
    selector = "variables.specs[i].?nodeSelector.orValue({})"
    keys = texts([POOL, *(selection.key for selection in capacity)])
    kept = f"[{text(POOL)}] + {selector}.map(k, k).filter(k, !(k in {keys}))"
    entries = f"({kept}).transformMapEntry(n, k, {{k: k == {text(POOL)} ? ({pool}) : string({selector}[k])}})"
    return " + ".join(
        [
            only_if(
                f'!variables.queued && ({pool}) != ""',
                set_field(pointer_below(path, "/nodeSelector"), entries),
            ),
            remove_spot_affinity("variables.specs[i]", path, capacity, unless="variables.queued"),
        ]
    )


def remove_spot_selectors(spec: str, path: str, capacity: Sequence[NodeSelection], is_spot_pool: str) -> str:
    """Return the patches that remove all selections of spot from a pod, so that it uses the default pool.

    `is_spot_pool` is whether the pool that the pod selects by name, if any, is a spot pool.
    """
    selector = f"{spec}.?nodeSelector"
    by_capacity = " || ".join(
        f'k == {text(selection.key)} && {selector}[?k].orValue("") in {texts(selection.values)}'
        for selection in capacity
    )
    by_name = f"k == {text(POOL)} && {is_spot_pool}"
    removed = remove_field(
        pointer_below(path, "/nodeSelector/") + ' + k.replace("~", "~0").replace("/", "~1")'
    )
    gone = (
        f"{selector}.orValue({{}}).map(k, string(k)).filter(k, {by_capacity} || {by_name}).map(k, {removed})"
    )
    return f"{gone} + {remove_spot_affinity(spec, path, capacity)}"


def remove_spot_affinity(
    spec: str, path: str, capacity: Sequence[NodeSelection], *, unless: str = "false"
) -> str:
    """Return the patches that remove selections of spot from a required node affinity.

    The terms are alternatives: if one of them selects only spot, the whole requirement is removed.
    """
    terms = affinity_terms(spec)
    named = " || ".join(f"({expression_selects(selection, 'e')})" for selection in capacity)
    required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    rest = f"t.?matchExpressions.orValue([]).filter(e, !({named}))"
    term = f'{{"matchExpressions": dyn({rest}), ?"matchFields": t.?matchFields}}'
    without = set_field(pointer_below(path, f"{required}/nodeSelectorTerms"), f"{terms}.map(t, {term})")
    removed = remove_field(pointer_below(path, required))
    is_named = f"{terms}.exists(t, t.?matchExpressions.orValue([]).exists(e, {named}))"
    empties = f"{terms}.exists(t, size({rest}) == 0 && !t.?matchFields.hasValue())"
    return f"({unless} || !{is_named} ? [] : {empties} ? [{removed}] : [{without}])"


#: The pod specification of the template at `i` before the update.
_BEFORE: Final = "variables.before[i]"

#: What precedes a selector in the original values of a job, after the name of its template.
_SELECTOR: Final = ':{"nodeSelector":'


def reapplication_variables(kind: JobKind) -> Mapping[str, str]:
    """Return the policy variables; `following` are the templates that had the label before the update."""
    label = f"metadata.?labels[?{text(FOLLOWS)}]"
    item = "variables.items[i]"
    marked = f'{kind.template_of("o")}.?{label}.orValue("") == {text(FOLLOWS_VALUE)}'
    same = f"variables.oldItems.filter(o, o.?{kind.name} == {item}.?{kind.name} && {marked})"
    spec = f"{kind.template_of('o')}.?spec.orValue({{}})"
    return {
        "items": kind.items_of("object"),
        "oldItems": kind.items_of("oldObject"),
        "specs": f"variables.items.map(r, {kind.template_of('r')}.?spec.orValue({{}}))",
        "original": f'oldObject.metadata.?annotations[?{text(ORIGINAL)}].orValue("")',
        # For each item a list with the previous pod specification, or an empty list.
        "origins": f"lists.range(size(variables.items)).map(i, {same}.map(o, {spec}))",
        "before": "variables.origins.map(o, size(o) == 0 ? {} : o[0])",
        "asCreated": f"lists.range(size(variables.items)).map(i, {_is_as_created(kind)})",
        "queued": f'object.metadata.?labels[?{text(QUEUE_NAME)}].orValue("") != ""',
        "adjusted": (
            f'oldObject.{label}.orValue("") == {text(FOLLOWS_VALUE)} && '
            f"oldObject.metadata.?annotations[?{text(ORIGINAL)}].hasValue()"
        ),
        "kept": f'object.{label}.orValue("") in ["", {text(FOLLOWS_VALUE)}]',
        "following": (
            "variables.adjusted && variables.kept ? lists.range(size(variables.items)).filter(i, "
            f"size(variables.origins[i]) > 0 && {kind.template_of(item)}.?spec.hasValue()) : []"
        ),
    }


def _is_as_created(kind: JobKind) -> str:
    """Whether the template at `i` names a pool and has the whole selector that it was created with, as its manifest has.

    The controller writes that selector too, in a failback, and so does an owner who moves a job that is stopped.
    """
    moves = (
        f"request.userInfo.username == {text(CONTROLLER_ACCOUNT)} || "
        f'oldObject.metadata.?annotations[?{text(STOP)}].orValue("") == "true"'
    )
    selector = "variables.specs[i].?nodeSelector"
    name = f"strings.quote(string(variables.items[i].{kind.name}))"
    written = f'{name} + {text(_SELECTOR)} + {json_texts(selector)}.orValue("")'
    return f"!({moves}) && {selector}[?{text(POOL)}].hasValue() && variables.original.contains({written})"


def restore_tier(kind: JobKind, capacity: Sequence[NodeSelection]) -> str:
    """Return the patches that restore the tier of the template at `i`, unless it selects another than it was created with.

    The selector that the job was created with is its manifest, applied again: nothing asks for a move.
    """
    template = pointer_below(kind.path_of("i"), kind.template_path)
    own = f'variables.specs[i].?nodeSelector[?{text(POOL)}].orValue("")'
    before = f'{_BEFORE}.?nodeSelector[?{text(POOL)}].orValue("")'
    pool = f'{own} != "" && !variables.asCreated[i] ? {own} : {before}'
    metadata = f"{kind.template_of('variables.items[i]')}.?metadata"
    return " + ".join(
        [
            label_patches(template, metadata),
            select_tier(kind, capacity, pool),
            # The toleration that lets its pods run on nodes reserved for them.
            _tolerating_hold(pointer_below(template, "/spec/tolerations")),
        ]
    )


def restore_annotations() -> str:
    """Return the patches that restore the annotations that hold the job's original values and state."""
    each = (_annotation(name) for name in (ORIGINAL, STATE, SUSPENDED_FOR))
    made = only_if("!has(object.metadata.annotations)", set_field(text("/metadata/annotations"), "{}"))
    return " + ".join([made, *each])


def _annotation(name: str) -> str:
    old = f"oldObject.metadata.?annotations[?{text(name)}]"
    missing = f"!object.metadata.?annotations[?{text(name)}].hasValue() && {old}.hasValue()"
    path = text(f"/metadata/annotations/{pointer_step(name)}")
    return only_if(missing, set_field(path, f"{old}.value()"))


def _tolerating_hold(path: str) -> str:
    is_hold = f't.?key.orValue("") == {text(RESERVED_FOR)}'
    held = f"{_BEFORE}.?tolerations.orValue([]).filter(t, {is_hold})"
    others = f"variables.specs[i].?tolerations.orValue([]).filter(t, !({is_hold}))"
    return only_if(f"size({held}) > 0", set_field(path, f"{others} + {held}"))
