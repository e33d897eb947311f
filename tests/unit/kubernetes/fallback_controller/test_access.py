"""The fallback controller's permissions: those of the calls that it makes."""

from collections.abc import Iterable

from pulumi_holdfast.controller.kube import client
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.kubernetes.fallback_controller.access import (
    CLUSTER_RULES,
    COPIES_ROLE,
    COPY_RULES,
    JOB_RULES,
    JOBS_ROLE,
    LEASE_RULES,
    PLACEHOLDER_RULES,
    TRANSFER_RULES,
    ControllerAccess,
)
from pulumi_holdfast.ladder.json import Json
from tests.support.controller_calls import CALLS, Place
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects

ROLES = {
    Place.EVERYWHERE: CLUSTER_RULES,
    Place.TRAINING: JOB_RULES,
    Place.OWN: LEASE_RULES,
    Place.RESERVING: PLACEHOLDER_RULES,
}


def granted(rules: Iterable[Json]) -> set[tuple[str, str, str]]:
    """The group, resource and verb of all that the rules allow."""
    return {
        (str(group), str(resource), str(verb))
        for rule in rules
        for group in objects(rule["apiGroups"])
        for resource in objects(rule["resources"])
        for verb in objects(rule["verbs"])
    }


def test_each_role_allows_exactly_the_calls_that_are_made() -> None:
    for place, rules in ROLES.items():
        made = {(call.group, call.resource, call.verb) for call in CALLS if call.place is place}
        assert granted(rules) == made, f"{place.value}: an unused permission is a risk"


def test_every_kind_of_the_client_is_covered_by_the_permissions() -> None:
    known = {each.plural for each in vars(client).values() if isinstance(each, client.Kind)}
    reached = {call.resource.partition("/")[0] for call in CALLS}
    assert known == reached, "a new kind needs a permission, and an unused permission must be removed"


def test_roles_have_no_wildcard_and_only_the_controllers_lease() -> None:
    for rules in ROLES.values():
        for rule in rules:
            assert "*" not in [
                *objects(rule["apiGroups"]),
                *objects(rule["resources"]),
                *objects(rule["verbs"]),
            ]
    (bound,) = [rule for rule in LEASE_RULES if "resourceNames" in rule]
    assert bound["resourceNames"] == ["holdfast-fallback"]


def test_the_role_for_jobs_is_not_bound_cluster_wide() -> None:
    access = record(lambda: ControllerAccess("access"))
    bound = {str(obj(each.inputs["roleRef"])["name"]) for each in access.of(":ClusterRoleBinding")}
    assert bound == {"fallback-controller"}, "namespaces without training must be out of reach"
    assert JOBS_ROLE in {name_of(each.inputs) for each in access.of(":ClusterRole")}
    subjects = [*access.of(":ClusterRoleBinding"), *access.of(":RoleBinding")]
    for each in subjects:
        assert each.inputs["subjects"] == [
            {"kind": "ServiceAccount", "name": "fallback-controller", "namespace": "holdfast-system"}
        ], f"{each.name} is for the controller only"


def test_rights_for_other_clusters_exist_only_where_jobs_leave_or_are_accepted() -> None:
    roles = {
        (leaves, accepts): {
            name_of(each.inputs): granted(objects(each.inputs["rules"]))
            for each in record(
                lambda leaves=leaves, accepts=accepts: ControllerAccess(
                    "access", leaves=leaves, accepts=accepts
                )
            ).of(":ClusterRole")
        }
        for leaves in (False, True)
        for accepts in (False, True)
    }
    for (leaves, accepts), found in roles.items():
        assert (found[JOBS_ROLE] == granted([*JOB_RULES, *TRANSFER_RULES])) is leaves
        assert found.get(COPIES_ROLE) == (granted(COPY_RULES) if accepts else None)
    written = {resource for _, resource, verb in granted(COPY_RULES) if verb not in {"get", "list"}}
    assert written == {"jobsets", "rayjobs"}
