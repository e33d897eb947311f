"""What `JobValidation` registers, and the expressions of its policies."""

import json
import re
from string import Formatter

import pytest

from pulumi_holdfast.kubernetes.admission import tier_checks as links
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, capacity_selections
from pulumi_holdfast.kubernetes.admission.job_validation import (
    JobValidation,
    JobValidationArgs,
    job_validations,
)
from pulumi_holdfast.kubernetes.admission.jobset import JOBSET
from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, aks_rules, gke_rules, karpenter_rules
from pulumi_holdfast.kubernetes.admission.tier_checks import fill_sentence, fill_template
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.messages import MessageTemplate
from tests.support.builders.training_jobs import POOLS
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj, objects

POLICY = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
BINDING = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"
RULES = karpenter_rules(POOLS)
CAPACITY = capacity_selections(RULES)
KINDS = {"jobsets", "rayjobs"}

#: Used by the pack only: a job names no accelerator, and admission knows neither zones nor what a pool is made of.
OF_THE_PACK = {
    "ACCELERATOR",
    "ARCHITECTURE",
    "ENDED",
    "EXPENDABLE",
    "GROUP_OF_ONE_ZONE",
    "MIN_VALUES",
    "NOT_COMPACT",
    "NOT_CONFIDENTIAL",
    "NOT_SOLD",
    "NO_AUTO_MODE",
    "NO_IMAGE",
    "NO_LOCAL_DISK",
    "NO_RESERVATION",
    "NO_ZONE",
    "OTHER_ZONE",
    "STOPPED",
    "UNSATISFIABLE",
    "WRONG_DISK",
    "ZONES",
}
WORDS = {name: value for name, value in vars(messages).items() if isinstance(value, MessageTemplate)}


def recorded() -> Recording:
    args = JobValidationArgs(rules=RULES, capacity=CAPACITY, claims=("checkpoints",))
    return record(lambda: JobValidation("job-validation", args))


def test_both_kinds_have_a_validating_policy_as_rendered() -> None:
    found = recorded()
    for kind in (POLICY, BINDING):
        names = {str(obj(each.inputs["metadata"])["name"]) for each in found.of(kind)}
        wanted = {
            f"training-{each}-{what}"
            for each in KINDS
            for what in ("can-fall-back", "not-checked", "warnings")
        }
        assert names == wanted, f"one {kind} for each"
    for binding in found.of(BINDING):
        assert binding.depends_on, "a policy without a binding has no effect"
    for each in job_validations(RULES, CAPACITY, ("checkpoints",)):
        assert found.one(POLICY, f"job-validation-{each.name}").inputs["spec"] == each.policy, each.name
        binding = found.one(BINDING, f"job-validation-{each.name}-binding")
        assert binding.inputs["spec"] == each.binding, each.name


def rejecting() -> list[Manifest]:
    """The policies that reject jobs."""
    return [
        each for each in job_validations(RULES, CAPACITY) if each.binding["validationActions"] == ["Deny"]
    ]


def test_jobs_that_cannot_be_checked_deletions_and_the_controller_are_allowed() -> None:
    assert len(rejecting()) == len(KINDS), "the others warn"
    for each in job_validations(RULES, CAPACITY):
        creates_only = "UPDATE" not in json.dumps(each.policy["matchConstraints"])
        assert (each.policy["failurePolicy"] == "Fail") == creates_only, (
            f"{each.name}: an error is a warning when a job is created, and never keeps one from being deleted"
        )
    for each in rejecting():
        assert each.policy["failurePolicy"] == "Ignore", "finalizers are removed by updates"
        assert each.binding["paramRef"] == {"name": "ladder", "parameterNotFoundAction": "Allow"}, (
            "a namespace's ladder may be deleted before its jobs"
        )
        (resources,) = objects(obj(each.policy["matchConstraints"])["resourceRules"])
        assert resources["operations"] == ["CREATE", "UPDATE"], (
            "an update could add what a creation may not have"
        )
        conditions = {
            str(one["name"]): str(one["expression"]) for one in objects(each.policy["matchConditions"])
        }
        account = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"
        assert account in conditions["not-by-the-ladder"], "its suspension would be interrupted"
        assert "deletionTimestamp" in conditions["stays"], "nor is a deletion"


def test_no_expression_is_long_because_type_checks_take_the_square_of_its_length() -> None:
    for each in job_validations(RULES, CAPACITY):
        for variable in objects(each.policy["variables"]):
            assert len(str(variable["expression"])) < 5_500, (
                f"{each.name}: split `{variable['name']}`; each API server checks it several times"
            )


def expressions(rules: tuple[AdmissionRule, ...] = RULES) -> str:
    return "\n".join(
        str(variable["expression"])
        for each in job_validations(rules, capacity_selections(rules))
        for variable in (*objects(each.policy["variables"]), *messages_of(each))
    )


def messages_of(manifest: Manifest) -> list[Json]:
    """The expressions of a policy's messages."""
    return [{"expression": each["messageExpression"]} for each in objects(manifest.policy["validations"])]


@pytest.mark.parametrize("name", sorted(WORDS.keys() - OF_THE_PACK))
def test_every_reason_and_fix_of_the_python_checks_is_in_the_policies(name: str) -> None:
    found = expressions()
    for literal, *_ in Formatter().parse(WORDS[name].sentence):
        assert json.dumps(literal) in found, f"{literal!r} is in the Python checks and not in CEL"


def test_every_variable_is_defined_before_its_use() -> None:
    for each in job_validations(RULES, CAPACITY):
        known: set[str] = set()
        for variable in objects(each.policy["variables"]):
            used = set(re.findall(r"variables\.(\w+)", str(variable["expression"])))
            assert used <= known, f"{each.name}: {variable['name']} uses {used - known}"
            known.add(str(variable["name"]))
        validation = each.policy["validations"]
        assert set(re.findall(r"variables\.(\w+)", json.dumps(validation))) <= known, each.name
    for each in rejecting():
        terminal = next(one for one in objects(each.policy["variables"]) if one["name"] == "terminal")
        assert str(terminal["expression"]).startswith('request.operation == "CREATE" &&'), (
            f"{JOBSET.resource}: an immutable field is no reason to reject an update"
        )


@pytest.mark.parametrize(
    "rules", [RULES, gke_rules(POOLS), aks_rules(POOLS)], ids=["Karpenter", "GKE", "AKS"]
)
def test_tolerations_that_admission_adds_are_not_reported_as_missing(
    rules: tuple[AdmissionRule, ...],
) -> None:
    given = links.tolerated_taints(rules)
    for pool in POOLS:
        if pool.taints:
            assert f'"{pool.name}": [' in given, "admission adds it to pods that select the pool by name"
    assert set(re.findall(r'"([^"]+)": \[', given)) <= {pool.name for pool in POOLS}, (
        "a value of a capacity label is no pool"
    )


def test_a_template_becomes_an_expression_with_the_same_text() -> None:
    assert fill_template("a {b} c", b="x") == '("a " + (x) + " c")', "literals and values in their order"
    assert fill_template("{a}", a="x") == "((x))", "nothing is added"
    assert (
        fill_sentence(MessageTemplate(reason="no {a}", fix="Say {a}."), a="x")
        == '("no " + (x) + ". Say " + (x) + ".")'
    )
    with pytest.raises(KeyError):
        fill_template("{missing}", other="x")
    assert (links.tolerated_taints(()), links.tolerated_taints_with_gpus(())) == ('{"": [""]}', '[""]'), (
        "empty lists need a type"
    )
