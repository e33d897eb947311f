"""What `JobValidation` registers, and the expressions of its policies."""

import json
import re
from string import Formatter

import pytest

from pulumi_holdfast.kubernetes.admission.expressions import fill_sentence, fill_template
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, capacity_selections
from pulumi_holdfast.kubernetes.admission.job_validation import JobValidation, job_validations
from pulumi_holdfast.kubernetes.admission.jobset import JOBSET
from pulumi_holdfast.kubernetes.admission.rules import karpenter_rules
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

#: What the policies say: faults of a job by itself.
SAID = {
    "AFTER_MAX_COST_ALONE",
    "AFTER_MAX_COST_VALUE",
    "APART",
    "CANNOT_STOP",
    "CLAIM",
    "ENDS_AT_ONCE",
    "ENDS_ON_FAILURE",
    "MAX_COST_AMOUNT",
    "NOTHING_FOLLOWS",
    "NOT_ON_LADDER",
    "NOWHERE_TO_WAIT",
    "PINNED",
}
WORDS = {name: value for name, value in vars(messages).items() if isinstance(value, MessageTemplate)}


def recorded() -> Recording:
    return record(lambda: JobValidation("job-validation", capacity=CAPACITY, claims=("checkpoints",)))


def test_both_kinds_have_a_validating_policy_as_rendered() -> None:
    found = recorded()
    for kind in (POLICY, BINDING):
        names = {str(obj(each.inputs["metadata"])["name"]) for each in found.of(kind)}
        wanted = {f"training-{each}-can-fall-back" for each in KINDS}
        assert names == wanted, f"one {kind} for each"
    for binding in found.of(BINDING):
        assert binding.depends_on
    for each in job_validations(CAPACITY, ("checkpoints",)):
        assert found.one(POLICY, f"job-validation-{each.name}").inputs["spec"] == each.policy, each.name
        binding = found.one(BINDING, f"job-validation-{each.name}-binding")
        assert binding.inputs["spec"] == each.binding, each.name


def test_jobs_with_faults_are_denied_and_those_that_cannot_be_checked_deletions_and_the_controller_allowed() -> (
    None
):
    for each in job_validations(CAPACITY):
        assert each.policy["failurePolicy"] == "Ignore"
        assert each.binding["paramRef"] == {"name": "ladder", "parameterNotFoundAction": "Allow"}
        assert each.binding["validationActions"] == ["Deny"]
        (resources,) = objects(obj(each.policy["matchConstraints"])["resourceRules"])
        assert resources["operations"] == ["CREATE", "UPDATE"]
        conditions = {
            str(one["name"]): str(one["expression"]) for one in objects(each.policy["matchConditions"])
        }
        account = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"
        assert account in conditions["not-by-the-ladder"], "its suspension would be interrupted"
        assert "deletionTimestamp" in conditions["stays"]


def test_no_expression_is_long_because_type_checks_take_the_square_of_its_length() -> None:
    for each in job_validations(CAPACITY):
        for variable in objects(each.policy["variables"]):
            assert len(str(variable["expression"])) < 5_500, (
                f"{each.name}: split `{variable['name']}`; each API server checks it several times"
            )


def expressions() -> str:
    return "\n".join(
        str(variable["expression"])
        for each in job_validations(CAPACITY)
        for variable in (*objects(each.policy["variables"]), *messages_of(each))
    )


def messages_of(manifest: Manifest) -> list[Json]:
    """The expressions of a policy's messages."""
    found = objects(manifest.policy["validations"])
    return [{"expression": each.get("messageExpression", json.dumps(each["message"]))} for each in found]


@pytest.mark.parametrize("name", sorted(SAID))
def test_every_reason_and_fix_of_a_fault_is_in_the_policies(name: str) -> None:
    found = expressions()
    for words in (WORDS[name].reason, WORDS[name].fix):
        for literal, *_ in Formatter().parse(words):
            assert json.dumps(literal)[1:-1] in found, f"{literal!r} is in the messages and not in CEL"


def test_every_variable_is_defined_before_its_use() -> None:
    for each in job_validations(CAPACITY):
        known: set[str] = set()
        for variable in objects(each.policy["variables"]):
            used = set(re.findall(r"variables\.(\w+)", str(variable["expression"])))
            assert used <= known, f"{each.name}: {variable['name']} uses {used - known}"
            known.add(str(variable["name"]))
        validation = each.policy["validations"]
        assert set(re.findall(r"variables\.(\w+)", json.dumps(validation))) <= known, each.name
        terminal = next(one for one in objects(each.policy["variables"]) if one["name"] == "terminal")
        assert str(terminal["expression"]).startswith('request.operation == "CREATE" &&'), (
            f"{JOBSET.resource}: an immutable field is no reason to reject an update"
        )


def test_a_template_becomes_an_expression_with_the_same_text() -> None:
    assert fill_template("a {b} c", b="x") == '("a " + (x) + " c")'
    assert fill_template("{a}", a="x") == "((x))"
    assert (
        fill_sentence(MessageTemplate(reason="no {a}", fix="Say {a}."), a="x")
        == '("no " + (x) + ". Say " + (x) + ".")'
    )
    with pytest.raises(KeyError):
        fill_template("{missing}", other="x")
