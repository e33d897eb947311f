"""Reads pod templates as shapes: what a pod requests, selects and tolerates, and how it is placed beside its own kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, JsonValue, Unknown, mapping
from pulumi_holdfast.ladder.labels import CHECKPOINTS, HOSTNAME, ZONE
from pulumi_holdfast.ladder.quantities import effective_requests
from pulumi_holdfast.ladder.reachability.affinity import Requirement, Term
from pulumi_holdfast.ladder.reachability.pod_shape import SPOT_SELECTIONS as SPOT_SELECTIONS
from pulumi_holdfast.ladder.reachability.pod_shape import resources_of
from pulumi_holdfast.ladder.reachability.shape import MOVED_LABELS, Placement, Resources, Shape
from pulumi_holdfast.program.namespaces.shapes import selector_at, tolerations_at
from pulumi_holdfast.program.resources import (
    Value,
    at,
    is_list,
    is_object,
    items_at,
    known_items,
    text_at,
    whole_number,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

#: Lists of a term about pods, with which it may select others than its selector does alone.
_NARROWING: Final = ("namespaces", "matchLabelKeys", "mismatchLabelKeys")

#: The taints of nodes that fail: pods that tolerate them for a while wait for the node to come back.
_OF_NODE_STATES: Final = "node.kubernetes.io/"

_EMPTY_TERM: Final = (
    "its node affinity starts with an empty term, for which Karpenter makes nodes that the scheduler rejects"
)


#: What a volume may be from, with the field that names it; the others are made with the pod.
_NAMED_VOLUMES: Final = (
    ("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
    ("ConfigMap", "configMap", "name"),
    ("Secret", "secret", "secretName"),
)
_MADE_WITH_PODS: Final = frozenset({"name", "emptyDir", "downwardAPI", "projected", "ephemeral", "image"})
#: Each training namespace has it.
_CHECKPOINTS: Final = ("ConfigMap", CHECKPOINTS)


def _of_one_cluster(volume: Value) -> str | None:
    """Return a volume as a message names it; None for one that each pod makes, and for what is not known of it."""
    if not is_object(volume):
        return None
    for kind, field_name, key in _NAMED_VOLUMES:
        name = text_at(volume, field_name, key)
        if name is not None:
            is_common = name is UNKNOWN or (kind, name) == _CHECKPOINTS
            return None if is_common else f"{kind} {name!r}"
    return None if set(volume) <= _MADE_WITH_PODS else f"volume {text_at(volume, 'name')!r}"


@dataclass(frozen=True, kw_only=True)
class PodTemplate:
    """A pod template of a job: the name of its item, how many such pods run at once, and its value.

    `labels` are those of its pods, those that the job's controller adds included. `one_per_node`, `apart_by`, `zones` and `unmodeled` are
    those of a shape, as far as the job and its volumes decide them, so is `after`, the names of templates; `defaults` are the
    requests that a LimitRange gives to its containers.
    """

    name: str
    pods: int | Unknown
    template: Value
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    one_per_node: bool = False
    apart_by: tuple[str, int] | None = None
    after: frozenset[str] = frozenset()
    zones: frozenset[str] | None = None
    value_of_priority: int | None = None
    unmodeled: tuple[str, ...] = ()
    defaults: Mapping[str, Value] | None = None

    @property
    def selector(self) -> Mapping[str, str] | Unknown:
        """Its node selector."""
        return selector_at(self.template, "spec", "nodeSelector")

    def selected(self, key: str) -> str | Unknown | None:
        """Return the value that its node selector has for a label; None for none."""
        return text_at(self.template, "spec", "nodeSelector", key)

    @property
    def selects_spot(self) -> bool:
        """Whether it certainly selects spot by a label, or by required affinity."""
        by_label = any(self.selected(key) == value for key, value in SPOT_SELECTIONS.items())
        return by_label or self.has_spot_affinity

    @property
    def has_spot_affinity(self) -> bool:
        """Whether its required affinity certainly has spot in a term."""
        terms = self.terms
        return terms is not UNKNOWN and any(_is_spot(each) for term in terms for each in term)

    @property
    def terms(self) -> tuple[Term, ...] | Unknown:
        """The terms of its required node affinity."""
        return terms_of(at(self.template, "spec", "affinity", "nodeAffinity", _REQUIRED))

    @property
    def pinned_by(self) -> tuple[str, ...]:
        """The labels of its required affinity that bind it to one kind of capacity, so that no move can place it."""
        terms = () if self.terms is UNKNOWN else self.terms
        pinned = [
            {each.key for each in term if not _is_spot(each) and each.key in MOVED_LABELS} for term in terms
        ]
        # Terms are alternatives: one without such a label takes it to any capacity.
        return tuple(sorted(set[str]().union(*pinned))) if all(pinned) else ()

    @property
    def requests(self) -> Resources | Unknown:
        """The effective requests of one pod."""
        spec = _requesting_parts(at(self.template, "spec"))
        defaults = _known(self.defaults or {})
        if spec is UNKNOWN or defaults is UNKNOWN:
            return UNKNOWN
        return resources_of(effective_requests(spec, mapping(defaults)))

    @property
    def images(self) -> tuple[str, ...]:
        """The images of its containers, as far as they are known."""
        parts = (known_items(self.template, "spec", each) for each in ("initContainers", "containers"))
        found = (text_at(container, "image") for part in parts for container in part)
        return tuple(each for each in found if isinstance(each, str))

    @property
    def volumes_of_cluster(self) -> tuple[str, ...]:
        """The volumes of its pods that are objects or disks of one cluster, as a message names them."""
        volumes = known_items(self.template, "spec", "volumes")
        return tuple(name for each in volumes if (name := _of_one_cluster(each)) is not None)

    @property
    def priority(self) -> str | Unknown | None:
        """The name of its PriorityClass, None if it names none."""
        return text_at(self.template, "spec", "priorityClassName")

    @property
    def lacks_requests(self) -> bool:
        """Whether any of its containers leaves CPUs or memory to a default."""
        containers = [
            each
            for kind in ("initContainers", "containers")
            for each in known_items(self.template, "spec", kind)
        ]
        given = [
            {**_object(at(each, "resources", "limits")), **_object(at(each, "resources", "requests"))}
            for each in containers
        ]
        return any(not {"cpu", "memory"} <= each.keys() for each in given)

    @property
    def shape(self) -> Shape | Unknown:
        """The shape of its pods on any tier: without the labels that a move sets or removes."""
        spec = at(self.template, "spec")
        requests, selector = self.requests, self.selector
        tolerations = tolerations_at(spec, "tolerations")
        affinity = at(spec, "affinity")
        terms = self.terms
        if requests is UNKNOWN or selector is UNKNOWN or tolerations is UNKNOWN or terms is UNKNOWN:
            return UNKNOWN
        if self.pods is UNKNOWN or affinity is UNKNOWN:
            return UNKNOWN
        together, apart = (
            [*self._own_topologies(at(affinity, kind, _REQUIRED))]
            for kind in ("podAffinity", "podAntiAffinity")
        )
        return Shape(
            name=self.name,
            pods=self.pods,
            requests=requests,
            selector={key: value for key, value in selector.items() if key not in MOVED_LABELS},
            affinity=tuple(tuple(each for each in term if not _is_spot(each)) for term in terms)
            if all(not term or any(not _is_spot(each) for each in term) for term in terms)
            else (),
            tolerations=tolerations,
            zones=self.zones,
            priority=self.value_of_priority,
            same_placement=Placement.ZONE if ZONE in together else None,
            one_per_node=self.one_per_node or HOSTNAME in apart or bool(host_ports(spec)),
            after=self.after,
            apart_by=self.apart_by,
            unmodeled=(
                *self.unmodeled,
                *_unmodeled(spec),
                *(_EMPTY_TERM for term in terms[:1] if not term and any(terms)),
                *self._unmodeled_affinity(together, apart),
            ),
        )

    @property
    def written(self) -> Shape | Unknown:
        """The shape of one of its pods as it is written: with the labels that a move sets or removes."""
        shape, selector, terms = self.shape, self.selector, self.terms
        if shape is UNKNOWN or selector is UNKNOWN or terms is UNKNOWN:
            return UNKNOWN
        return replace(shape, pods=1, selector=selector, affinity=terms)

    def _own_topologies(self, terms: Value) -> Iterator[str]:
        """Yield the topology keys of the terms that are about its own pods; the empty one for those about others."""
        for term in terms if is_list(terms) else ():
            key = text_at(term, "topologyKey")
            yield key if isinstance(key, str) and self._selects_itself(term) else ""

    def _selects_itself(self, term: Value) -> bool:
        selector = at(term, "labelSelector")
        labels = selector_at(selector, "matchLabels")
        is_narrowed = (
            any(items_at(term, field) for field in _NARROWING) or at(term, "namespaceSelector") is not None
        )
        by_expression = items_at(selector, "matchExpressions")
        return (
            is_object(selector)
            and labels is not UNKNOWN
            and not by_expression
            and not is_narrowed
            and labels.items() <= self.labels.items()
        )

    @staticmethod
    def _unmodeled_affinity(together: Sequence[str], apart: Sequence[str]) -> Iterator[str]:
        if any(key != ZONE for key in together):
            yield "whether its required pod affinity can be met is not judged"
        if any(key != HOSTNAME for key in apart):
            yield "whether its required pod anti-affinity can be met is not judged"


def _requesting_parts(spec: Value) -> Mapping[str, JsonValue] | Unknown:
    """Return the parts of a pod specification that decide its requests; UNKNOWN if any of them is."""

    def container(value: Value) -> Value:
        return {"resources": at(value, "resources"), "restartPolicy": at(value, "restartPolicy")}

    parts: dict[str, Value] = {"overhead": at(spec, "overhead"), "resources": at(spec, "resources")}
    for name in ("containers", "initContainers"):
        listed = items_at(spec, name)
        parts[name] = UNKNOWN if listed is UNKNOWN else [container(each) for each in listed]
    known = _known(parts)
    return UNKNOWN if known is UNKNOWN else mapping(known)


def _object(value: Value) -> Mapping[str, Value]:
    return value if is_object(value) else {}


def _known(value: Value) -> JsonValue | Unknown:
    """Return the value as JSON; UNKNOWN if any part of it is."""
    if value is UNKNOWN:
        return UNKNOWN
    if is_object(value):
        pairs = {key: _known(each) for key, each in value.items()}
        known = {key: each for key, each in pairs.items() if each is not UNKNOWN}
        return known if len(known) == len(pairs) else UNKNOWN
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    items = [_known(each) for each in value] if is_list(value) else []
    found = [each for each in items if each is not UNKNOWN]
    return found if len(found) == len(items) else UNKNOWN


def terms_of(required: Value) -> tuple[Term, ...] | Unknown:
    """Return the terms of a required node selector; UNKNOWN if any part of them is."""
    known = _known(required)
    if known is UNKNOWN:
        return UNKNOWN
    return tuple(
        tuple(
            Requirement(
                key=str(at(each, "key")),
                # What fields a node has is not known before it exists.
                operator=str(at(each, "operator")) if field == "matchExpressions" else "",
                values=tuple(str(value) for value in known_items(each, "values")),
            )
            for field in ("matchExpressions", "matchFields")
            for each in known_items(term, field)
        )
        for term in known_items(known, "nodeSelectorTerms")
    )


def _is_spot(requirement: Requirement) -> bool:
    wanted = SPOT_SELECTIONS.get(requirement.key)
    return wanted is not None and requirement.operator == "In" and requirement.values == (wanted,)


def host_ports(spec: Value) -> frozenset[int]:
    """Return the ports that a pod takes of its node."""
    field = "containerPort" if at(spec, "hostNetwork") is True else "hostPort"
    found = (
        whole_number(at(port, "hostPort") or at(port, field))
        for kind in ("initContainers", "containers")
        for each in known_items(spec, kind)
        for port in known_items(each, "ports")
    )
    return frozenset(each for each in found if isinstance(each, int) and each)


def _unmodeled(spec: Value) -> Iterator[str]:
    for each in known_items(spec, "tolerations"):
        seconds, key = whole_number(at(each, "tolerationSeconds")), text_at(each, "key") or ""
        if seconds is not None and not str(key).startswith(_OF_NODE_STATES):
            yield f"its pods tolerate {key or 'any taint'} for {seconds} seconds, after which they are evicted from nodes with it"
    spread = items_at(spec, "topologySpreadConstraints")
    if spread is UNKNOWN or any(at(each, "whenUnsatisfiable") != "ScheduleAnyway" for each in spread):
        yield "whether its topologySpreadConstraints can be met is not judged"
