"""What `JobValidation` registers, and what its policies say of themselves."""

from __future__ import annotations

import json
import re
from string import Formatter
from typing import TYPE_CHECKING

import pytest

from holdfast.components.admission import tier_checks as links
from holdfast.components.admission.job_admission import capacity_selections
from holdfast.components.admission.job_validation import (
    JobValidation,
    JobValidationArgs,
    job_validations,
)
from holdfast.components.admission.jobset import JOBSET
from holdfast.components.admission.rules import aks_rules, gke_rules, karpenter_rules
from holdfast.components.admission.tier_checks import fill_sentence, fill_template
from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.messages import MessageTemplate
from tests.support.builders.training_jobs import POOLS
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.components.admission.rules import AdmissionRule

POLICY = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
BINDING = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"
RULES = karpenter_rules(POOLS)
CAPACITY = capacity_selections(RULES)
KINDS = {"jobsets", "rayjobs"}

#: Said of shapes alone: a job names no kind of accelerator, and admission sees no zones.
OF_SHAPES = {"ACCELERATOR", "ZONES"}
WORDS = {name: value for name, value in vars(messages).items() if isinstance(value, MessageTemplate)}


def recorded() -> Recording:
    args = JobValidationArgs(rules=RULES, capacity=CAPACITY, claims=("checkpoints",))
    return record(lambda: JobValidation("job-validation", args))


def test_jobs_of_both_kinds_are_judged() -> None:
    found = recorded()
    for kind in (POLICY, BINDING):
        names = {str(obj(each.inputs["metadata"])["name"]) for each in found.of(kind)}
        assert names == {f"training-{each}-can-fall-back" for each in KINDS}, f"one {kind} for each"
    for binding in found.of(BINDING):
        assert binding.depends_on, "a binding to no policy would let every job pass"


def test_a_policy_arrives_at_the_engine_as_it_was_rendered() -> None:
    found = recorded()
    for each in job_validations(RULES, CAPACITY, ("checkpoints",)):
        assert found.one(POLICY, f"job-validation-{each.name}").inputs["spec"] == each.policy, each.name
        binding = found.one(BINDING, f"job-validation-{each.name}-binding")
        assert binding.inputs["spec"] == each.binding, each.name


def test_what_cannot_be_judged_is_in_nobodys_way() -> None:
    for each in job_validations(RULES, CAPACITY):
        assert each.policy["failurePolicy"] == "Ignore", "finalizers are taken off by updates"
        assert each.binding["paramRef"] == {"name": "ladder", "parameterNotFoundAction": "Allow"}, (
            "and the ladder of a namespace that goes may go first"
        )
        assert each.binding["validationActions"] == ["Deny"], (
            "what is judged is refused, and not merely warned of"
        )


def test_who_moves_jobs_is_not_judged() -> None:
    for each in job_validations(RULES, CAPACITY):
        conditions = {
            str(one["name"]): str(one["expression"]) for one in objects(each.policy["matchConditions"])
        }
        account = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"
        assert account in conditions["not-by-the-ladder"], "its suspension would be stopped half-way"
        assert "deletionTimestamp" in conditions["stays"], "nor is what goes"


def expressions(rules: tuple[AdmissionRule, ...] = RULES) -> str:
    return "\n".join(
        str(variable["expression"])
        for each in job_validations(rules, capacity_selections(rules))
        for variable in objects(each.policy["variables"])
    )


@pytest.mark.parametrize("name", sorted(WORDS.keys() - OF_SHAPES))
def test_the_api_server_has_every_word_of_every_reason_and_mend(name: str) -> None:
    found = expressions()
    for literal, *_ in Formatter().parse(WORDS[name].sentence):
        assert json.dumps(literal) in found, f"{literal!r} is said in Python and not in CEL"


def test_every_variable_is_there_before_it_is_used() -> None:
    for each in job_validations(RULES, CAPACITY):
        known: set[str] = set()
        for variable in objects(each.policy["variables"]):
            used = set(re.findall(r"variables\.(\w+)", str(variable["expression"])))
            assert used <= known, f"{each.name}: {variable['name']} uses {used - known}"
            known.add(str(variable["name"]))
        (validation,) = objects(each.policy["validations"])
        assert set(re.findall(r"variables\.(\w+)", json.dumps(validation))) <= known, each.name


@pytest.mark.parametrize(
    "rules", [RULES, gke_rules(POOLS), aks_rules(POOLS)], ids=["Karpenter", "GKE", "AKS"]
)
def test_what_admission_lets_pods_tolerate_is_held_against_nobody(rules: tuple[AdmissionRule, ...]) -> None:
    given = links.tolerated_taints(rules)
    for pool in POOLS:
        if pool.taints:
            assert f'"{pool.name}": [' in given, "pods that select a pool by its name are let in there"


def test_without_rules_nothing_is_tolerated_and_the_expressions_have_types() -> None:
    assert (links.tolerated_taints(()), links.tolerated_taints_with_gpus(())) == ('{"": [""]}', '[""]'), (
        "an empty list has no type"
    )


def test_a_template_becomes_an_expression_of_the_same_text() -> None:
    assert fill_template("a {b} c", b="x") == '("a " + (x) + " c")', (
        "texts and what is filled in, one after the other"
    )
    assert fill_template("{a}", a="x") == "((x))", "nothing is added"
    assert (
        fill_sentence(MessageTemplate(reason="no {a}", fix="Say {a}."), a="x")
        == '("no " + (x) + ". Say " + (x) + ".")'
    )


def test_a_name_without_an_expression_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        fill_template("{missing}", other="x")


def test_a_jobset_that_ends_is_judged_when_it_comes_and_not_when_it_changes() -> None:
    for each in job_validations(RULES, CAPACITY):
        terminal = next(one for one in objects(each.policy["variables"]) if one["name"] == "terminal")
        assert str(terminal["expression"]).startswith('request.operation == "CREATE" &&'), (
            f"{JOBSET.resource}: what can no longer be changed is no reason to refuse a change"
        )
