"""CEL expressions for the reachability checks of one tier `i` and one shape `s`.

They express `scheduling.reachability.checks` over the facts in the FallbackPolicy. A missing fact never fails a check.
Messages are the templates of the Python checks, filled by expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Final

from pulumi_holdfast.kubernetes.admission.expressions import affinity_terms, text, texts
from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, TolerationRule
from pulumi_holdfast.ladder.labels import GIVEN_LABEL_PATTERN, GPU_RESOURCE, ON_DEMAND, POOL
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.machine_capacity import NOT_IN_TABLES
from pulumi_holdfast.ladder.reachability.messages import MessageTemplate
from pulumi_holdfast.ladder.reachability.shape import (
    EPHEMERAL_STORAGE,
    HUGE_PAGES,
    MAX_PODS_PER_NODE,
    MOST_COUNTED,
    MOST_REQUESTED,
)
from pulumi_holdfast.ladder.taints import REPELLING, Taint


def fill_template(template: str, **values: str) -> str:
    """Return a message template as an expression; `values` are expressions for strings by their placeholder.

    Raises KeyError for a placeholder without an expression.
    """
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            parts.append(json.dumps(literal))
        if name is not None:
            parts.append(f"({values[name]})")
    return f"({' + '.join(parts)})"


def fill_sentence(words: MessageTemplate, **values: str) -> str:
    """Return a reason with its fix, filled."""
    return fill_template(words.sentence, **values)


def integer_string(value: str) -> str:
    """Return an integer as a string."""
    return f"string({value})"


def at_most_requested(amount: str) -> str:
    """Return an amount, limited to the largest request that is counted."""
    return f"[int({amount}), {MOST_REQUESTED}].min()"


def is_in_bytes(device: str) -> str:
    """Return whether a resource in `devices` is an amount of bytes."""
    return f"({device} == {text(EPHEMERAL_STORAGE)} || {device}.startsWith({text(HUGE_PAGES)}))"


def format_requests(resources: str, beside: str = "") -> str:
    """Return amounts as messages write them, from CPU in thousandths, memory in MiB, GPUs, fabric adapters and devices.

    Of its devices only those that are `beside`, if that is given.
    """
    r = resources
    requested = f".filter(n, n in {beside}.devices)" if beside else ""
    pieces = f'", " + string({r}.devices[n]) + ({is_in_bytes("n")} ? " MiB " : " ") + n'
    devices = f'{r}.devices.map(n, string(n)){requested}.sort().map(n, {pieces}).join("")'
    gpus = f'{r}.gpus == 0 ? "" : {r}.gpus == 1 ? "1 GPU, " : string({r}.gpus) + " GPUs, "'
    adapters = f'{r}.efa == 0 ? "" : string({r}.efa) + " EFA, "'
    tenths = f"({r}.memory * 10 / 1024)"
    memory = f'{r}.memory >= 1024 ? {_decimal(tenths, 10)} + " GiB" : string({r}.memory) + " MiB"'
    return f'({gpus}) + ({adapters}) + {_decimal(f"{r}.cpu", 1000)} + " CPU, " + ({memory}) + {devices}'


def _decimal(parts: str, of: int) -> str:
    # Only the fraction as a float, which would get an exponent from a million on.
    rest = f"string(double({parts} % {of}) / {of}.0).substring(1)"
    return f'(string({parts} / {of}) + ({parts} % {of} == 0 ? "" : {rest}))'


LABELS: Final = "variables.labels[i]"
#: The labels that follow from the machine type, of which each node has one of several values.
VALUES: Final = "variables.labelValues[i]"
#: The facts do not include the node labels.
UNLABELLED: Final = "!variables.tiers[i].?facts.?labels.hasValue()"


def affinity_check() -> str:
    """At least one term of the required node affinity may match the nodes."""
    terms = affinity_terms("s.spec")
    expressions = "a.?matchExpressions.orValue([])"
    empty = f"size({expressions}) == 0 && size(a.?matchFields.orValue([])) == 0"
    fails = f"{empty} || {expressions}.exists(e, {certainly_false('e')}) || {_no_value_meets(expressions)}"
    keys = (
        f"{terms}.map(a, {expressions}.map(e, string(e.key))).flatten().distinct().sort().join({text(', ')})"
    )
    why = fill_sentence(messages.AFFINITY, keys=keys)
    unknown = f"{UNLABELLED} && size({VALUES}) == 0"
    return f"{unknown} || size({terms}) == 0 || !{terms}.all(a, {fails}) ? [] : [{why}]"


def _no_value_meets(expressions: str) -> str:
    """Return whether none of the values of a label meets all expressions on it."""
    on_key = f"{expressions}.filter(e, e.key == k)"
    keys = f"{expressions}.map(e, string(e.key)).filter(k, k in {VALUES}).distinct()"
    return f"{keys}.exists(k, !{VALUES}[k].exists(v, {on_key}.all(e, {_accepts('e', 'v')})))"


def _accepts(expression: str, value: str) -> str:
    """Return whether a match expression may match a node with this value of its label."""
    e, v, whole = expression, value, text("^[+-]?[0-9]{1,18}$")
    values, bound = f"{e}.?values.orValue([])", f"string({e}.values[0])"
    compares = f"size({values}) != 1 || !{bound}.matches({whole}) || {v}.matches({whole}) && int({v})"
    ways = {
        "In": f"{v} in {values}",
        "NotIn": f"!({v} in {values})",
        "DoesNotExist": "false",
        "Gt": f"{compares} > int({bound})",
        "Lt": f"{compares} < int({bound})",
    }
    rejected = " || ".join(f"{e}.operator == {text(name)} && !({accepts})" for name, accepts in ways.items())
    return f"!({rejected})"


def _selected_with_no_term() -> str:
    """Return whether no term of the node affinity accepts the values that the selector has chosen."""
    selected, terms = "s.spec.?nodeSelector.orValue({})", affinity_terms("s.spec")
    conflict = f"e.key in {VALUES} && e.key in {selected} && !{_accepts('e', f'string({selected}[e.key])')}"
    rejects = f"{terms}.all(a, a.?matchExpressions.orValue([]).exists(e, {conflict}))"
    return f"size(variables.selecting[i][j]) + size(variables.requiring[i][j]) == 0 && size({terms}) > 0 && {rejects}"


def certainly_false(expression: str) -> str:
    """Return whether a match expression of a node affinity certainly does not match the nodes of tier `i`.

    Labels with several values are checked by themselves, all expressions on one of them together.
    """
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
    of_missing = (
        f"!({UNLABELLED}) && {e}.operator in {texts(['In', 'Exists', 'Gt', 'Lt'])} && "
        f"!{is_undeclared_label(f'string({e}.key)')}"
    )
    return f"({e}.key in {VALUES} ? false : {e}.key in {labels} ? ({of_known}) : ({of_missing}))"


def is_undeclared_label(key: str) -> str:
    """Return whether nodes may have this label although no pool declares it."""
    return f"{key}.matches({text(GIVEN_LABEL_PATTERN)})"


_TIER: Final = "variables.tiers[i]"
_FACTS: Final = f"{_TIER}.?facts"
_NODES: Final = f"{_FACTS}.?maxNodes"
_AMOUNTS: Final = ("cpu", "memory", "gpus", "efa")
_ROOMS: Final = "variables.rooms[i]"
IS_LAST: Final = "i == size(variables.tiers) - 1"


def tier_labels() -> str:
    """Return the known node labels of each tier."""
    return "variables.tiers.map(t, t.?facts.?labels.orValue({}))"


def tier_label_values() -> str:
    """Return the labels with several values of each tier."""
    return "variables.tiers.map(t, t.?facts.?labelValues.orValue({}))"


def tier_machines() -> str:
    """Return the machines of each tier as maps of `name`, `cpu`, `memory`, `gpus`, `efa`, `pods`, `devices` and `all`.

    `all`: it has no devices but these.
    """
    amount = "quantity(string({})).asApproximateFloat()"
    most = f"{MOST_REQUESTED}.0"
    cpu = f"int([{amount.format('m.cpu')} * 1000.0 + 0.5, {most}].min())"
    memory = f"int([{amount.format('m.memory')} / 1048576.0, {most}].min())"
    device = f"int({amount.format('a')} / ({is_in_bytes('n')} ? 1048576.0 : 1.0))"
    fields = {
        "name": "m.name",
        "cpu": cpu,
        "memory": memory,
        "gpus": "m.?gpus.orValue(0)",
        "efa": "m.?efa.orValue(0)",
        "pods": f"m.?pods.orValue({MAX_PODS_PER_NODE})",
        "devices": f"m.?devices.orValue({{}}).transformMap(n, a, {device})",
        "all": "m.?allDevices.orValue(false)",
    }
    room = f"{{{', '.join(f'{text(name)}: dyn({value})' for name, value in fields.items())}}}"
    return f"variables.tiers.map(t, t.?facts.?machines.orValue([]).map(m, {room}))"


def tolerated_taints(rules: Iterable[AdmissionRule]) -> str:
    """Return the taints for which admission adds tolerations, by the pool that the pods select."""
    pools: dict[str, list[str]] = {}
    for rule in rules:
        if isinstance(rule, TolerationRule):
            for selection in rule.selections:
                for pool in selection.values if selection.key == POOL else ():
                    pools.setdefault(pool, []).append(format_taint(rule.taint))
    pairs = ", ".join(f"{text(pool)}: {texts(taint_check)}" for pool, taint_check in sorted(pools.items()))
    # The type of an empty map literal cannot be inferred.
    return f"{{{pairs}}}" if pairs else f"{{{text('')}: {texts([''])}}}"


def tolerated_taints_with_gpus(rules: Iterable[AdmissionRule]) -> str:
    """Return the taints for which admission adds tolerations to pods that request GPUs."""
    found = [
        format_taint(rule.taint)
        for rule in rules
        if isinstance(rule, TolerationRule) and GPU_RESOURCE in rule.resources
    ]
    return texts(found) if found else texts([""])


def format_taint(taint: Taint) -> str:
    """Return a taint as messages write it."""
    return f"{taint.key}={taint.value}:{taint.effect}"


def tier_checks() -> Mapping[str, str]:
    """Return the checks in their order, by the name of the policy variable.

    Each variable holds, for each tier and each shape, a list of sentences. Each check is its own variable
    because the cost limit of one expression is a tenth of the limit of the policy.
    """
    found = {
        "selecting": selector_check(),
        "requiring": affinity_check(),
        "tolerating": taint_check(),
        "holding": machine_check(),
    }
    return {
        name: "variables.start < 0 ? [] : lists.range(size(variables.tiers)).map(i, "
        f"i < variables.start ? [] : lists.range(size(variables.shapes)).map(j, [variables.shapes[j]].map(s, {link})[0]))"
        for name, link in found.items()
    }


def capacity_check() -> str:
    """The last tier is on-demand, or has `maxFailures: -1`."""
    capacity = f"{_FACTS}.?capacity.orValue({text(ON_DEMAND)})"
    forever = f"{_TIER}.?maxFailures.orValue(0) == {UNLIMITED}"
    why = fill_sentence(messages.CAPACITY, title=f"{text('pool ')} + {_TIER}.pool", kinds=capacity)
    return f"{IS_LAST} && {capacity} != {text(ON_DEMAND)} && !({forever}) ? [{why}] : []"


def selector_check() -> str:
    """The nodes carry the labels that the pods select, beside the pool's name."""
    selected = "s.spec.?nodeSelector.orValue({})"
    several = fill_template(messages.OTHER_LABEL, key="k", there=f"{VALUES}[k].join({text(' or ')})")
    other = fill_template(messages.OTHER_LABEL, key="k", there=f"string({LABELS}[k])")
    has = f"k in {VALUES} ? {several} : k in {LABELS} ? {other} : {text(messages.NO_SUCH_LABEL)}"
    why = fill_sentence(messages.SELECTOR, key="k", value=f"string({selected}[k])", has=has)
    keys = f"{selected}.map(k, string(k)).filter(k, k != {text(POOL)}).sort()"
    missing = (
        f"k in {VALUES} ? !(string({selected}[k]) in {VALUES}[k]) : k in {LABELS} ? {LABELS}[k] != {selected}[k] : "
        f"!({UNLABELLED}) && !{is_undeclared_label('k')}"
    )
    return f"{keys}.filter(k, {missing}).map(k, {why})"


def repelling_taints() -> str:
    """Return the distinct taints of all tiers that keep pods away."""
    repels = f"t.effect in {texts(sorted(REPELLING))}"
    return f"variables.tiers.map(p, p.?facts.?taints.orValue([]).filter(t, {repels})).flatten().distinct()"


def untolerated_taints(spec: str) -> str:
    """Return the taints that a pod specification itself does not tolerate, as messages write them."""
    effect = f"o.?effect.orValue({text('')}) in [{text('')}, string(t.effect)]"
    key = f"o.?key.orValue({text('')}) in [{text('')}, string(t.key)]"
    value = f"t.?value.orValue({text('')})"
    same = f"o.?operator.orValue({text('')}) == {text('Exists')} || o.?value.orValue({text('')}) == {value}"
    own = f"{spec}.?tolerations.orValue([]).exists(o, {effect} && {key} && ({same}))"
    return f"variables.taints.filter(t, !{own}).map(t, {_written('t')})"


def taint_check() -> str:
    """The pods tolerate every taint, with the tolerations that admission adds."""
    by_admission = (
        f"x in variables.given[?string({_TIER}.pool)].orValue([]) || s.gpus > 0 && x in variables.givenToGpus"
    )
    why = fill_sentence(messages.TAINT, taint="x")
    found = f"{_FACTS}.?taints.orValue([]).map(t, {_written('t')})"
    return f"{found}.filter(x, x in s.untolerated && !({by_admission})).map(x, {why})"


def _written(taint: str) -> str:
    value = f"string({taint}.?value.orValue({text('')}))"
    return f"string({taint}.key) + {text('=')} + {value} + {text(':')} + string({taint}.effect)"


def machine_check() -> str:
    """A pod fits on a machine, and all pods fit on `maxNodes` machines."""
    fitting = f"[{_ROOMS}.map(m, {_pods_on('m')}).max(), s.onePerNode ? 1 : {MOST_COUNTED}].min()"
    largest = f"{_ROOMS}[0]"
    none = fill_sentence(
        messages.MACHINE,
        requests=format_requests("s"),
        machine=f"{largest}.name",
        room=format_requests(largest, beside="s"),
    )
    most = f"int({_NODES}.orValue(0)) * w"
    few = fill_sentence(
        messages.TOO_MANY,
        field=text("maxNodes"),
        room=integer_string(most),
        pods=integer_string("s.pods"),
        nodes=integer_string("((s.pods + w - 1) / w)"),
    )
    gang = f"{_NODES}.hasValue() && {most} < s.pods ? [{few}] : []"
    keys = (
        f"(s.spec.?nodeSelector.orValue({{}}).map(k, string(k)) + {affinity_terms('s.spec')}.map(a, "
        f"a.?matchExpressions.orValue([]).map(e, string(e.key))).flatten())"
    )
    known = f"{keys}.filter(k, k != {text(POOL)}).distinct().sort().join({text(', ')})"
    at_once = f"[{fill_sentence(messages.NO_TYPE, keys=known)}]"
    held = f"w == 0 ? [{none}] : ({gang})"
    apart = f"{_selected_with_no_term()} ? {at_once} + (w == 0 ? [] : ({gang})) : ({held})"
    return f"size({_ROOMS}) == 0 ? [] : [{fitting}].map(w, {apart}).flatten()"


def total_checks() -> str:
    """Return for each tier why the shapes that run together do not fit on it: a list of one sentence or none."""
    return (
        "variables.start < 0 ? [] : lists.range(size(variables.tiers)).map(i, "
        f"i < variables.start ? [] : ({_total_check()}))"
    )


def _total_check() -> str:
    nodes, total = f"int({_NODES}.orValue(0))", "variables.total"
    most = {name: f"{_ROOMS}.map(m, int(m.{name})).max() * {nodes}" for name in _AMOUNTS}
    # Of devices only what the pods request; where one machine has none, the others decide.
    listed = f"{_ROOMS}.exists(m, n in m.devices)"
    pieces = f"{_ROOMS}.map(m, int(m.devices[?n].orValue(0))).max() * {nodes}"
    devices = (
        f"{total}.devices.map(n, string(n)).filter(n, {listed}).transformMapEntry(_, n, {{n: {pieces}}})"
    )
    amounts = ", ".join(f"{text(name)}: dyn({value})" for name, value in {**most, "devices": devices}.items())
    known = f"{_ROOMS}.all(m, !({_is_unknown('m')}))"
    lacking = f"{total}.devices.exists(n, {known} && {total}.devices[n] > r.devices[?n].orValue(0))"
    exceeds = " || ".join([*(f"{total}.{name} > r.{name}" for name in _AMOUNTS), lacking])
    why = fill_sentence(
        messages.TOO_MUCH, field=text("maxNodes"), room=format_requests("r"), total=format_requests(total)
    )
    judged = f"size(variables.beside) > 1 && size({_ROOMS}) > 0 && {_NODES}.hasValue()"
    return f"{judged} ? [{{{amounts}}}].filter(r, {exceeds}).map(r, {why}) : []"


def total_requests() -> str:
    """Return the sum of the requests of all pods of the shapes that run together."""
    pods = f"[int(s.pods), {MOST_COUNTED}].min()"
    sums = {name: f"variables.beside.map(s, {pods} * int(s.{name})).sum()" for name in _AMOUNTS}
    names = "variables.beside.map(s, s.devices.map(n, string(n))).flatten().distinct()"
    pieces = f"variables.beside.map(s, {pods} * int(s.devices[?n].orValue(0))).sum()"
    sums["devices"] = f"{names}.transformMapEntry(_, n, {{n: {pieces}}})"
    return f"{{{', '.join(f'{text(name)}: dyn({value})' for name, value in sums.items())}}}"


def _is_unknown(machine: str) -> str:
    """Return whether a machine may have the device `n` although its facts do not list it."""
    return f"!(n in {machine}.devices) && (!{machine}.all || n in {texts(sorted(NOT_IN_TABLES))})"


def _pods_on(machine: str) -> str:
    m = machine
    parts = [f"int(s.{name} > 0 ? {m}.{name} / s.{name} : {m}.pods)" for name in _AMOUNTS]
    of_device = f"{_is_unknown(m)} ? int({m}.pods) : int({m}.devices[?n].orValue(0)) / int(s.devices[n])"
    return f"([{', '.join([*parts, f'int({m}.pods)'])}] + s.devices.map(n, {of_device})).min()"
