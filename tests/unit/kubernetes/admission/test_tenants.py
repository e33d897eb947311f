"""What `TenantBounds` registers."""

from collections.abc import Sequence

import pytest
from pulumi import Output

from pulumi_holdfast.kubernetes.admission.expressions import expression_selects
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
from pulumi_holdfast.kubernetes.admission.tenants import TenantBounds
from pulumi_holdfast.ladder import labels
from pulumi_holdfast.ladder.labels import AUTHORS_ANNOTATIONS, OF_LADDER, POOL, RECORDS_PREFIX
from tests.support.clusters.admitted_examples import STACKS
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.json_objects import obj, objects

VALIDATING = ":ValidatingAdmissionPolicy"
MUTATING = ":MutatingAdmissionPolicy"


def recorded(accepted: Sequence[Output[str]] = ()) -> Recording:
    return record(lambda: TenantBounds("tenants", defaults=["cpu"], accepted=accepted))


def policies(recording: Recording) -> list[Recorded]:
    return [*recording.of(VALIDATING), *recording.of(MUTATING)]


def spec(resource: Recorded) -> dict[str, object]:
    return {**obj(resource.inputs["spec"])}


def test_each_policy_fails_closed_in_training_namespaces_alone() -> None:
    assert len(policies(recorded())) == 6
    for policy in policies(recorded()):
        assert spec(policy)["failurePolicy"] == "Fail"
        selector = obj(obj(spec(policy)["matchConstraints"])["namespaceSelector"])
        assert selector == {"matchLabels": {"holdfast.dev/training": "true"}}


def test_each_policy_has_a_binding_that_denies() -> None:
    recording = recorded()
    for policy in policies(recording):
        binding = recording.one("Binding", f"{policy.name}-binding")
        assert policy.name in binding.depends_on
        assert spec(binding)["policyName"] == obj(policy.inputs["metadata"])["name"]
        if policy.type.endswith(VALIDATING):
            assert spec(binding)["validationActions"] == ["Deny"]


def test_only_the_policies_of_pools_read_the_ladder_and_no_pod_passes_without_one() -> None:
    recording = recorded()
    for policy in policies(recording):
        parameter = spec(recording.one("Binding", f"{policy.name}-binding")).get("paramRef")
        if "pools" in policy.name:
            assert parameter == {"name": "ladder", "parameterNotFoundAction": "Deny"}
            assert obj(spec(policy)["paramKind"])["kind"] == "FallbackPolicy"
            (rule,) = objects(obj(spec(policy)["matchConstraints"])["resourceRules"])
            assert rule["operations"] == ["CREATE"]
        else:
            assert parameter is None


def test_controllers_of_accepted_clusters_write_the_records_of_their_copies() -> None:
    user = "home:system:serviceaccount:holdfast-system:fallback-controller"
    accepting = recorded([Output.from_input(user)]).one(VALIDATING, "tenants-training-records")
    assert user in str(spec(accepting))
    assert "home:" not in str(spec(recorded().one(VALIDATING, "tenants-training-records")))


def test_an_annotation_of_ours_is_a_record_unless_authors_set_it() -> None:
    ours = {
        value
        for value in vars(labels).values()
        if isinstance(value, str) and value.startswith(RECORDS_PREFIX) and value != RECORDS_PREFIX
    }
    assert ours >= AUTHORS_ANNOTATIONS
    assert {each.removeprefix(RECORDS_PREFIX) for each in ours - AUTHORS_ANNOTATIONS} == {
        "checkpoint-requested",
        "copy-of",
        "first-created",
        "permit",
        "predecessor",
        "state",
        "successor",
        "successor-of",
        "suspended-for",
        "transfer",
        "work-done",
    }


def test_the_affinity_of_admission_selects_no_pool() -> None:
    expression = expression_selects(NodeSelection(key=POOL, values=("cpu-spot",)), "e")
    assert f'!("{OF_LADDER}" in ' in expression


@pytest.mark.parametrize("cloud", STACKS)
def test_every_stack_has_the_bounds_before_its_namespaces(cloud: str) -> None:
    stack = STACKS[cloud]()
    bounds = {each.name for each in stack.of("Binding") if each.name.startswith("main-tenants-")}
    assert len(bounds) == 6
    for ladder in stack.of(":FallbackPolicy"):
        assert bounds <= stack.everything_before(ladder)
    defaults = str(spec(stack.one(MUTATING, "main-tenants-training-pools-added"))["variables"])
    assert '"cpu' in defaults
