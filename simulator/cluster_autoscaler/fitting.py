"""Whether a pod may run on a node, and finds room there. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.scheduling.json import Json
from holdfast.simulator.cluster_autoscaler.pods import PodNeeds, Resources
from holdfast.simulator.kubernetes_client.objects import mapping, sequence


@dataclass(frozen=True, kw_only=True)
class Room:
    """A node, one that is there or one that might be bought, and what of it is free.

    `since` is when it came, None for one that is not there yet.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    free: Resources
    since: datetime | None = None

    def without(self, taken: Resources) -> "Room":
        """Return the same node with less free."""
        return replace(self, free={name: free - taken.get(name, 0) for name, free in self.free.items()})


def obstacle(pod: PodNeeds, room: Room) -> str | None:
    """Return why a pod cannot run on a node, in the scheduler's words; None where it can."""
    if not _is_selected(pod, room.labels):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in room.taints:
        if taint.get("effect") != "PreferNoSchedule" and not _is_tolerated(taint, pod.tolerations):
            return f"node(s) had untolerated taint {{{taint.get('key')}: {taint.get('value') or ''}}}"
    short = [name for name, asked in pod.requests.items() if asked and asked > room.free.get(name, 0)]
    return ", ".join(f"Insufficient {name}" for name in sorted(short)) or None


def _is_selected(pod: PodNeeds, labels: Mapping[str, str]) -> bool:
    chosen = all(labels.get(key) == value for key, value in pod.selector.items())
    return chosen and (not pod.terms or any(_term_holds(term, labels) for term in pod.terms))


def _term_holds(term: Json, labels: Mapping[str, str]) -> bool:
    # A rule about fields names one node: nothing that might be bought.
    rules = [mapping(each) for each in sequence(term.get("matchExpressions"))]
    return bool(rules) and not term.get("matchFields") and all(_rule_holds(rule, labels) for rule in rules)


def _rule_holds(rule: Json, labels: Mapping[str, str]) -> bool:
    found = labels.get(str(rule.get("key")))
    values = [str(each) for each in sequence(rule.get("values"))]
    match rule.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt":
            return _is_number(found) and int(str(found)) > int(values[0])
        case "Lt":
            return _is_number(found) and int(str(found)) < int(values[0])
        case _:
            return False


def _is_number(text: str | None) -> bool:
    return text is not None and text.removeprefix("-").isdecimal()


def _is_tolerated(taint: Json, tolerations: Sequence[Json]) -> bool:
    return any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Json, taint: Json) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    if effect and effect != taint.get("effect"):
        return False
    if toleration.get("operator") == "Exists":
        return not key or key == taint.get("key")
    return key == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
