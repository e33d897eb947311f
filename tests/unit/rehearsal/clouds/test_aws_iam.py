"""The simulated IAM."""

import pytest

from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.provider_calls import Engine, Provider

_TRUST = "{}"


def an_engine(aws: Provider, kind: str, name: str = "one") -> Engine:
    module = kind[0].lower() + kind[1:]
    return Engine(provider=aws, type=f"aws:iam/{module}:{kind}", name=name)


def a_role(aws: Provider, name: str = "nodes", **more: Value) -> tuple[Engine, str]:
    engine = an_engine(aws, "Role", name)
    return engine, engine.create({"name": name, "assumeRolePolicy": _TRUST, **more})[0]


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("RolePolicy", {"policy": "{}"}),
        ("RolePolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"}),
        ("InstanceProfile", {}),
    ],
)
def test_what_is_put_on_a_role_needs_the_role(aws: Provider, kind: str, inputs: Properties) -> None:
    engine, on_role = an_engine(aws, kind), {"role": "nodes", **inputs}
    engine.refuses_create(on_role, "NoSuchEntity: The role with name nodes cannot be found.")
    a_role(aws)
    assert engine.create(on_role)[0]


def test_a_policy_of_the_account_is_attached_while_it_exists(aws: Provider) -> None:
    a_role(aws)
    arn = "arn:aws:iam::123456789012:policy/own"
    attach: Properties = {"role": "nodes", "policyArn": arn}
    attachment, policy = an_engine(aws, "RolePolicyAttachment"), an_engine(aws, "Policy")
    attachment.refuses_create(attach, f"NoSuchEntity: Policy {arn} does not exist or is not attachable.")
    assert policy.create({"name": "own", "policy": "{}"})[0] == arn
    assert attachment.create(attach)[0]
    policy.refuses_delete(arn, "DeleteConflict: Cannot delete a policy attached to entities.")


@pytest.mark.parametrize(
    ("kind", "inputs", "reason"),
    [
        ("RolePolicy", {"policy": "{}"}, "must delete policies first."),
        (
            "RolePolicyAttachment",
            {"policyArn": "arn:aws:iam::aws:policy/X"},
            "must detach all policies first.",
        ),
    ],
)
def test_a_role_with_policies_is_kept(aws: Provider, kind: str, inputs: Properties, reason: str) -> None:
    role, role_id = a_role(aws)
    policy = an_engine(aws, kind)
    policy_id, _ = policy.create({"role": "nodes", **inputs})
    role.refuses_delete(role_id, f"DeleteConflict: Cannot delete entity, {reason}")
    policy.delete(policy_id)
    role.removes(role_id)


def test_spot_interruptions_have_a_queue_with_a_policy_and_a_rule_that_its_target_keeps(
    aws: Provider,
) -> None:
    queue, policy, rule, target = (
        Engine(provider=aws, type=token)
        for token in (
            "aws:sqs/queue:Queue",
            "aws:sqs/queuePolicy:QueuePolicy",
            "aws:cloudwatch/eventRule:EventRule",
            "aws:cloudwatch/eventTarget:EventTarget",
        )
    )
    to_queue: Properties = {"rule": "spot", "arn": "arn:aws:sqs:us-east-1:1:q", "targetId": "one"}
    target.refuses_create(to_queue, "Rule spot does not exist on EventBus default.")
    policy.refuses_create({"queueUrl": "https://sqs/missing", "policy": "{}"}, "NonExistentQueue")
    url, outputs = queue.create({"name": "notices"})
    assert outputs["arn"] == "arn:aws:sqs:us-east-1:123456789012:notices"
    assert policy.create({"queueUrl": url, "policy": "{}"})[0] == url
    made, outputs = rule.create({"name": "spot", "eventPattern": "{}"})
    assert outputs["arn"] == "arn:aws:events:us-east-1:123456789012:rule/spot"
    targeted, outputs = target.create(to_queue)
    assert (targeted, outputs["arn"]) == ("spot-one", to_queue["arn"])
    rule.refuses_delete(made, "ValidationException: Rule can't be deleted since it has targets.")
    target.delete(targeted)
    rule.removes(made)
