"""What the fallback controller may do: what it does, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_controller.access import (
    CLUSTER_RULES,
    HOLDING_RULES,
    JOB_RULES,
    JOBS_ROLE,
    OWN_RULES,
    ControllerAccess,
)
from holdfast.fallback.api import client
from tests.support.controller_calls import CALLS, Place
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.scheduling.json import Json

ROLES = {
    Place.EVERYWHERE: CLUSTER_RULES,
    Place.TRAINING: JOB_RULES,
    Place.OWN: OWN_RULES,
    Place.RESERVING: HOLDING_RULES,
}


def granted(rules: Iterable[Json]) -> set[tuple[str, str, str]]:
    """Group, resource and verb of everything that rules allow."""
    return {
        (str(group), str(resource), str(verb))
        for rule in rules
        for group in objects(rule["apiGroups"])
        for resource in objects(rule["resources"])
        for verb in objects(rule["verbs"])
    }


def test_each_role_allows_the_calls_that_are_made_and_no_other() -> None:
    for place, rules in ROLES.items():
        made = {(call.group, call.resource, call.verb) for call in CALLS if call.place is place}
        assert granted(rules) == made, f"{place.value}: a right too many is somebody else's way in"


def test_every_kind_that_the_controller_knows_is_one_it_may_reach() -> None:
    known = {each.plural for each in vars(client).values() if isinstance(each, client.Kind)}
    reached = {call.resource.partition("/")[0] for call in CALLS}
    assert known == reached, "a kind that was added needs a right, and one that has gone needs none"


def test_no_rule_is_for_everything() -> None:
    for rules in ROLES.values():
        for rule in rules:
            assert "*" not in [
                *objects(rule["apiGroups"]),
                *objects(rule["resources"]),
                *objects(rule["verbs"]),
            ], "what is not named is not meant"


def test_only_its_own_lease_is_read_or_written() -> None:
    (bound,) = [rule for rule in OWN_RULES if "resourceNames" in rule]
    assert bound["resourceNames"] == ["holdfast-fallback"], "another's election is none of its business"


def test_what_it_does_to_jobs_is_bound_nowhere_in_the_whole_cluster() -> None:
    access = record(lambda: ControllerAccess("access"))
    bound = {str(obj(each.inputs["roleRef"])["name"]) for each in access.of(":ClusterRoleBinding")}
    assert bound == {"fallback-controller"}, "a namespace that trains nothing is out of its reach"
    assert JOBS_ROLE in {str(obj(each.inputs["metadata"])["name"]) for each in access.of(":ClusterRole")}, (
        "training namespaces bind it"
    )
    subjects = [*access.of(":ClusterRoleBinding"), *access.of(":RoleBinding")]
    for each in subjects:
        assert each.inputs["subjects"] == [
            {"kind": "ServiceAccount", "name": "fallback-controller", "namespace": "holdfast-system"}
        ], f"{each.name} is for the controller alone"
