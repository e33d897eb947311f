"""Reads what of a program closes the network of a namespace: its pods do not reach each other, or not what they need outside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.program.namespaces.interceptors import Concerned, concerned
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_object,
    items_at,
    known_items,
    of_types,
    text_at,
    texts_at,
    whole_number,
)

NETWORK_POLICY: Final = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
#: Those of Cilium, Calico, Antrea, AWS and SIG Network, whose rules are not read.
_OTHERS: Final = re.compile(
    r"kubernetes:(?:cilium\.io|(?:crd\.)?projectcalico\.org|crd\.antrea\.io|networking\.k8s\.aws|policy\.networking\.k8s\.io)"
    r"/v\w+:(?!Staged)\w*NetworkPolicy"
)
#: The labels by which Cilium's policies for a whole cluster select the namespace of pods.
_CILIUM_NAMESPACE: Final = ("k8s:io.kubernetes.pod.namespace", "io.kubernetes.pod.namespace")
_DNS: Final = 53


def other_network_policies(
    namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[tuple[StackResource, str]]:
    """Yield the network policies of other kinds that may be about pods of a namespace, and that they are not judged."""
    own = concerned(namespace, resources)
    for each in of_types(resources, _OTHERS):
        if _may_cover(each, own):
            kind = each.type.rpartition(":")[2]
            yield each, f"what {kind} {each.logical_name!r} lets its pods reach is not judged"


def closed(policies: Sequence[StackResource], own: Concerned) -> Iterator[str]:
    """Yield what no pod of a namespace with these network policies reaches."""
    for direction, peers in (("Ingress", "from"), ("Egress", "to")):
        closing = [each for each in policies if _isolates_all(each, direction)]
        rules = _rules(policies, direction)
        if not closing or rules is UNKNOWN:
            continue
        who = f"NetworkPolicy {closing[0].logical_name!r} closes {direction.lower()} of all pods, and no other one of this program opens it"
        if not any(_joins(rule, peers, own) for rule in rules):
            yield f"{who} between pods of the namespace"
        if direction == "Egress":
            leading_out = [rule for rule in rules if _leads_out(rule)]
            if not any(_has_dns(rule) for rule in leading_out):
                yield f"{who} for DNS, port {_DNS}, by which pods find each other and their checkpoints"
            elif not any(_has_more_than_dns(rule) for rule in leading_out):
                yield f"{who} for more than DNS, and checkpoints in a bucket are reached over the network"


def _may_cover(policy: StackResource, own: Concerned) -> bool:
    """Whether a network policy of another kind may be about pods of a namespace."""
    spec, place = at(policy.props, "spec"), text_at(policy.props, "metadata", "namespace")
    named = (place, *(at(spec, "endpointSelector", "matchLabels", each) for each in _CILIUM_NAMESPACE))
    selectors = (at(spec, "subject", "namespaces"), at(spec, "subject", "pods", "namespaceSelector"))
    return all(each is None or own.may_be_one_of([each]) for each in named) and all(
        map(own.may_have, selectors)
    )


def _isolates_all(policy: StackResource, direction: str) -> bool:
    """Whether it allows all pods of its namespace nothing in this direction but what policies name."""
    spec = at(policy.props, "spec")
    types = texts_at(spec, "policyTypes")
    listed = frozenset({"Ingress", *(("Egress",) if at(spec, "egress") else ())}) if types is None else types
    selector = at(spec, "podSelector")
    is_for_all = (
        is_object(selector) and not at(selector, "matchLabels") and not at(selector, "matchExpressions")
    )
    return listed is not UNKNOWN and direction in listed and is_for_all


def _rules(policies: Sequence[StackResource], direction: str) -> list[Value] | Unknown:
    listed = [items_at(each.props, "spec", direction.lower()) for each in policies]
    known = [each for each in listed if each is not UNKNOWN]
    return [rule for each in known for rule in each] if len(known) == len(listed) else UNKNOWN


def _joins(rule: Value, peers: str, own: Concerned) -> bool:
    """Whether a rule may let pods of the namespace reach each other."""
    return not at(rule, peers) or any(
        at(peer, "ipBlock") is None and own.may_have(at(peer, "namespaceSelector"))
        for peer in known_items(rule, peers)
    )


def _leads_out(rule: Value) -> bool:
    """Whether a rule may let pods reach what is outside their namespace."""
    return not at(rule, "to") or any(
        peer is UNKNOWN or at(peer, "ipBlock") is not None or at(peer, "namespaceSelector") is not None
        for peer in known_items(rule, "to")
    )


def _ranges(rule: Value) -> list[tuple[int, int] | None]:
    """Return the first and the last of its ports; None for those that have names, or are not known."""
    found = [
        (whole_number(at(each, "port")), whole_number(at(each, "endPort")))
        for each in known_items(rule, "ports")
    ]
    return [
        (first, last if isinstance(last, int) else first) if isinstance(first, int) else None
        for first, last in found
    ]


def _has_dns(rule: Value) -> bool:
    ranges = _ranges(rule)
    return not ranges or any(each is None or each[0] <= _DNS <= each[1] for each in ranges)


def _has_more_than_dns(rule: Value) -> bool:
    ranges = _ranges(rule)
    return not ranges or any(each != (_DNS, _DNS) for each in ranges)
