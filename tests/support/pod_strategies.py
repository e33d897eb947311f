"""A hypothesis strategy for pods that select, tolerate and request in every way admission looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from holdfast.components.admission.rules import DO_NOT_DISRUPT
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, POOL
from tests.support.training_pods import container, expression, pod

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue

#: The keys admission knows with values it knows and others, and a key it does not know with a value it does.
VALUES = {
    CAPACITY_TYPE: ("spot", "on-demand", "reserved"),
    POOL: ("cpu", "cpu-spot", "a100", "a100-spot", "unheard-of"),
    "topology.kubernetes.io/zone": ("spot", "zone-a"),
}
KEYS = tuple(VALUES)


@st.composite
def expressions(draw: st.DrawFn) -> Json:
    """An expression of a node affinity term."""
    key = draw(st.sampled_from(KEYS))
    operator = draw(st.sampled_from(("In", "In", "NotIn", "Exists", "DoesNotExist")))
    if operator in {"Exists", "DoesNotExist"}:
        return expression(key, operator)
    return expression(key, operator, *draw(st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=3)))


@st.composite
def terms(draw: st.DrawFn) -> Json:
    """A node affinity term, over labels or over fields."""
    if draw(st.integers(0, 5)) == 0:
        return {"matchFields": [expression("metadata.name", "In", "spot")]}
    return {"matchExpressions": draw(st.lists(expressions(), min_size=1, max_size=3))}


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    """No affinity, one that is not about nodes, a preference, or a requirement."""
    match draw(st.sampled_from(("none", "pods", "preferred", "required", "required"))):
        case "pods":
            return {"podAntiAffinity": {}}
        case "preferred":
            preference: Json = {"weight": 1, "preference": draw(terms())}
            return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
        case "required":
            selector: Json = {"nodeSelectorTerms": draw(st.lists(terms(), min_size=1, max_size=3))}
            return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
        case _:
            return {}


@st.composite
def node_selectors(draw: st.DrawFn) -> Json:
    """A node selector over some of the keys."""
    chosen = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    return {key: draw(st.sampled_from(VALUES[key])) for key in chosen}


@st.composite
def tolerations(draw: st.DrawFn) -> Json:
    """A toleration that the API accepts, near to those admission adds."""
    key = draw(st.sampled_from(("", CAPACITY_TYPE, GPU_RESOURCE, "example.com/other")))
    operator = draw(st.sampled_from(("", "Equal", "Exists"))) if key else "Exists"
    value = "" if operator == "Exists" else draw(st.sampled_from(("", "spot", "present", "other")))
    effect = draw(st.sampled_from(("", "NoSchedule", "NoExecute", "PreferNoSchedule")))
    fields = {"key": key, "operator": operator, "value": value, "effect": effect}
    return {field: given for field, given in fields.items() if given}


@st.composite
def containers(draw: st.DrawFn, name: str) -> Json:
    """A container with some GPUs, with none, or with 0 of them in so many words."""
    return container(draw(st.sampled_from((None, None, "0", "1", "8"))), name=name)


@st.composite
def annotation_sets(draw: st.DrawFn) -> dict[str, str]:
    """Annotations, among them the one that spot pods must not carry."""
    names = draw(st.lists(st.sampled_from((DO_NOT_DISRUPT, "example.com/note")), unique=True))
    return {name: draw(st.sampled_from(("true", ""))) for name in names}


@st.composite
def pods(draw: st.DrawFn, namespace: str) -> Json:
    """A pod that the API accepts."""
    fields: dict[str, JsonValue] = {
        "nodeSelector": draw(node_selectors()),
        "affinity": draw(affinities()),
        "tolerations": draw(st.lists(tolerations(), max_size=3)),
        "initContainers": draw(st.lists(containers("fetch"), max_size=1)),
    }
    beside = draw(st.lists(containers("beside"), max_size=1))
    written = {field: given for field, given in fields.items() if given or draw(st.booleans())}
    return pod(
        namespace=namespace,
        annotations=draw(annotation_sets()),
        containers=[draw(containers("train")), *beside],
        spec=written,
    )
