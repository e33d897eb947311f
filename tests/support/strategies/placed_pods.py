"""Draws what decides whether the pods of a template share a node, and what only seems to."""

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import EXCLUSIVE_TOPOLOGY, HOSTNAME, JOBSET_NAME, REPLICATED_JOB, ZONE
from tests.support.builders.training_jobs import pod_template
from tests.support.json_objects import obj, objects

_PORTS: Final[tuple[Json, ...]] = (
    *(({},) * 8),
    *({"containerPort": 80, **each} for each in ({}, {"hostPort": 0}, {"hostPort": 80})),
)
#: The names of a JobSet and of its second job, and labels of a template.
_SELECTED: Final[tuple[Json, ...]] = (
    {"app": "train"},
    {JOBSET_NAME: "train"},
    {REPLICATED_JOB: "worker-1"},
    {"app": "other"},
)
#: With each of these a term may select other pods than those of its own template.
_NARROWED: Final[tuple[Json, ...]] = (
    {"namespaces": ["default"]},
    {"namespaceSelector": {}},
    {"matchLabelKeys": ["app"]},
    {"mismatchLabelKeys": ["app"]},
)
_NOT_EXCLUSIVE: Final[Mapping[str, str]] = {}
_EXCLUSIVE: Final[tuple[Mapping[str, str], ...]] = (
    *((_NOT_EXCLUSIVE,) * 6),
    {EXCLUSIVE_TOPOLOGY: HOSTNAME},
    {EXCLUSIVE_TOPOLOGY: ZONE},
)


@st.composite
def placed(draw: st.DrawFn, selector: Mapping[str, str], spec: Json) -> Json:
    """A template with this specification, whose pods may be kept apart by its affinity or by a port of its first container."""
    first, *others = objects(spec["containers"])
    port = draw(st.sampled_from(_PORTS))
    containers: list[JsonValue] = [{**first, **({"ports": [port]} if port else {})}, *others]
    terms = draw(st.lists(_terms(), min_size=1, max_size=2)) if not draw(st.integers(0, 2)) else []
    apart: Json = (
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}} if terms else {}
    )
    affinity: Json = {**obj(spec.get("affinity")), **apart}
    # JobSet replaces one of the labels.
    labels: Json = {"app": "train", REPLICATED_JOB: draw(st.sampled_from(("worker-1", "worker-9")))}
    return pod_template(
        selector,
        metadata={"labels": labels} if draw(st.booleans()) else {},
        spec={
            **spec,
            "containers": containers,
            **({"affinity": affinity} if affinity else {}),
            **({} if draw(st.integers(0, 9)) else {"hostNetwork": True}),
        },
    )


@st.composite
def _terms(draw: st.DrawFn) -> Json:
    labels = draw(st.lists(st.sampled_from(_SELECTED), max_size=2))
    listed: Json = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    selector: Json = {
        **({"matchLabels": {key: value for each in labels for key, value in each.items()}} if labels else {}),
        **({} if draw(st.integers(0, 4)) else listed),
    }
    return {
        "topologyKey": draw(st.sampled_from((HOSTNAME, HOSTNAME, ZONE))),
        **({"labelSelector": selector} if draw(st.integers(0, 5)) else {}),
        **({} if draw(st.integers(0, 5)) else draw(st.sampled_from(_NARROWED))),
    }


def exclusive_topologies() -> st.SearchStrategy[Mapping[str, str]]:
    """The annotations of a JobSet, or of one of its jobs, with which JobSet gives each child Job a domain for itself."""
    return st.sampled_from(_EXCLUSIVE)
