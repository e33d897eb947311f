"""CEL, as text: the patches that let a job follow its ladder, of both kinds of job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.admission.expressions import affinity_terms, names, text, texts
from holdfast.components.admission.job_expressions import QUEUE_NAME
from holdfast.scheduling.labels import FOLLOWS, FOLLOWS_VALUE, HELD_FOR, ORIGINAL, POOL, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.admission.job_expressions import JobKind
    from holdfast.components.admission.rules import NodeSelection


def json_object(fields: Mapping[str, str]) -> str:
    """Return an object whose values are expressions for optional JSON; those without a value are left out."""
    pairs = ", ".join(
        f"[{value}].filter(v, v.hasValue()).map(v, {text(f'{text(name)}:')} + v.value())"
        for name, value in fields.items()
    )
    return f'"{{" + [{pairs}].flatten().join(",") + "}}"'


def json_texts(mapping: str) -> str:
    """Return an optional map of texts as optional JSON, its keys in order."""
    pair = 'strings.quote(string(k)) + ":" + strings.quote(string(m[k]))'
    return f'{mapping}.optMap(m, "{{" + m.map(k, string(k)).sort().map(k, {pair}).join(",") + "}}")'


def json_text(value: str) -> str:
    """Return an optional text as optional JSON."""
    return f"{value}.optMap(t, strings.quote(string(t)))"


def json_plain(value: str) -> str:
    """Return an optional number or truth as optional JSON."""
    return f"{value}.optMap(n, string(n))"


def json_of_each(indexes: str, key: str, value: str) -> str:
    """Return an object with a value for each index `i`, under a key that is a text."""
    return f'"{{" + {indexes}.map(i, strings.quote({key}) + ":" + {value}).join(",") + "}}"'


def below(path: str, steps: str) -> str:
    """Return the JSON pointer `steps` (`/spec`) below one that is an expression."""
    return f"{path} + {text(steps)}"


def step(key: str) -> str:
    """Return a key as a step of a JSON pointer. `jsonpatch.escapeKey` is for mutations alone."""
    return key.replace("~", "~0").replace("/", "~1")


def put(path: str, value: str) -> str:
    """Return the patch that gives a field this value, whether or not it has one."""
    return mapping({"op": text("add"), "path": path, "value": value})


def drop(path: str) -> str:
    """Return the patch that removes a field."""
    return mapping({"op": text("remove"), "path": path})


def as_json_patches(patches: str) -> str:
    """Return patches, which are maps, as the type that a mutation returns and that nothing else knows."""
    patch = "JSONPatch{op: string(p.op), path: string(p.path), ?value: p.?value}"
    return f"{patches}.map(p, {patch})"


def only_if(condition: str, *patches: str) -> str:
    """Return these patches, or none."""
    return f"({condition} ? [{', '.join(patches)}] : [])"


def mapping(fields: Mapping[str, str]) -> str:
    """Return a map literal; its values, expressions, may be of different types."""
    return "{" + ", ".join(f"{text(key)}: dyn({value})" for key, value in fields.items()) + "}"


def labelled(path: str, metadata: str) -> str:
    """Return the patches that mark an object as following; `path` is that of what holds its `metadata`, optional."""
    pair = f"{{{text(FOLLOWS)}: {text(FOLLOWS_VALUE)}}}"
    one = put(below(path, f"/metadata/labels/{step(FOLLOWS)}"), text(FOLLOWS_VALUE))
    all_labels = put(below(path, "/metadata/labels"), pair)
    whole = put(below(path, "/metadata"), f'{{"labels": {pair}}}')
    return f"({metadata}.?labels.hasValue() ? [{one}] : {metadata}.hasValue() ? [{all_labels}] : [{whole}])"


def annotated(original: str) -> str:
    """Return the patches that keep what is about to be replaced; what was kept before is kept."""
    one = put(text(f"/metadata/annotations/{step(ORIGINAL)}"), original)
    whole = put('"/metadata/annotations"', f"{{{text(ORIGINAL)}: {original}}}")
    return f"(variables.mended ? [] : has(object.metadata.annotations) ? [{one}] : [{whole}])"


def first_tier() -> str:
    """Return the pool on which the template at `i` starts: that of the tier which it names, or the first."""
    own = f'variables.specs[i].?nodeSelector[?{text(POOL)}].orValue("")'
    return f"{own} in variables.pools ? {own} : variables.pools[0]"


def selecting(kind: JobKind, capacity: Sequence[NodeSelection], pool: str) -> str:
    """Return the patches that make the template at `i` select its tier by the pool's name, and by nothing else.

    `pool` is the name, an expression; where it is empty nothing is selected. Kueue's jobs get their selectors from Kueue.
    """
    path = below(kind.path_of("i"), f"{kind.template_path}/spec")
    selector = "variables.specs[i].?nodeSelector.orValue({})"
    keys = texts([POOL, *(selection.key for selection in capacity)])
    kept = f"[{text(POOL)}] + {selector}.map(k, k).filter(k, !(k in {keys}))"
    entries = f"({kept}).transformMapEntry(n, k, {{k: k == {text(POOL)} ? ({pool}) : string({selector}[k])}})"
    return " + ".join(
        [
            only_if(f'!variables.queued && ({pool}) != ""', put(below(path, "/nodeSelector"), entries)),
            affinity("variables.specs[i]", path, capacity, unless="variables.queued"),
        ]
    )


def stripped(spec: str, path: str, capacity: Sequence[NodeSelection], is_spot_pool: str) -> str:
    """Return the patches that take a pod off spot: what asks for it goes, and the default pool is what remains.

    `is_spot_pool` says whether the pool that it selects by name, if it does, is one of spot.
    """
    selector = f"{spec}.?nodeSelector"
    by_capacity = " || ".join(
        f'k == {text(selection.key)} && {selector}[?k].orValue("") in {texts(selection.values)}'
        for selection in capacity
    )
    by_name = f"k == {text(POOL)} && {is_spot_pool}"
    removed = drop(below(path, "/nodeSelector/") + ' + k.replace("~", "~0").replace("/", "~1")')
    gone = (
        f"{selector}.orValue({{}}).map(k, string(k)).filter(k, {by_capacity} || {by_name}).map(k, {removed})"
    )
    return f"{gone} + {affinity(spec, path, capacity)}"


def affinity(spec: str, path: str, capacity: Sequence[NodeSelection], *, unless: str = "false") -> str:
    """Return the patches that take spot out of a required node affinity.

    Its terms are alternatives: where one of them asked for nothing but spot, nothing is required any more.
    """
    terms = affinity_terms(spec)
    named = " || ".join(f"({names(selection, 'e')})" for selection in capacity)
    required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    rest = f"t.?matchExpressions.orValue([]).filter(e, !({named}))"
    term = f'{{"matchExpressions": dyn({rest}), ?"matchFields": t.?matchFields}}'
    without = put(below(path, f"{required}/nodeSelectorTerms"), f"{terms}.map(t, {term})")
    removed = drop(below(path, required))
    is_named = f"{terms}.exists(t, t.?matchExpressions.orValue([]).exists(e, {named}))"
    empties = f"{terms}.exists(t, size({rest}) == 0 && !t.?matchFields.hasValue())"
    return f"({unless} || !{is_named} ? [] : {empties} ? [{removed}] : [{without}])"


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
