"""The simulated IAM."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.provider_calls import Engine, Provider, invoke, refused
from tests.support.fakes.spot_role_account import ARN, PATH, create_spot_role

_TRUST = "{}"
_ROLES = "aws:iam/getRoles:getRoles"
_SPOT: Properties = {"awsServiceName": "spot.amazonaws.com"}


def an_engine(aws: Provider, kind: str, name: str = "one") -> Engine:
    module = kind[0].lower() + kind[1:]
    return Engine(provider=aws, type=f"aws:iam/{module}:{kind}", name=name)


def a_role(aws: Provider, name: str = "nodes", **more: Value) -> tuple[Engine, str]:
    engine = an_engine(aws, "Role", name)
    return engine, engine.create({"name": name, "assumeRolePolicy": _TRUST, **more})[0]


def test_a_service_linked_role_is_named_by_aws_and_exists_once(aws: Provider) -> None:
    role = an_engine(aws, "ServiceLinkedRole")
    made, outputs = role.create(_SPOT)
    assert made == ARN
    assert (outputs["name"], outputs["path"]) == ("AWSServiceRoleForEC2Spot", PATH)
    taken = "InvalidInput: Service role name AWSServiceRoleForEC2Spot has been taken in this account"
    an_engine(aws, "ServiceLinkedRole", "two").refuses_create(_SPOT, taken)
    unknown = "of es.amazonaws.com is not simulated; use one of: spot.amazonaws.com"
    role.refuses_create({"awsServiceName": "es.amazonaws.com"}, unknown)


def test_arns_contain_the_path_and_an_import_shows_all_inputs(aws: Provider, state_file: Path) -> None:
    create_spot_role(CloudState(state_file))
    found, _, inputs = an_engine(aws, "ServiceLinkedRole").read(ARN)
    assert found == ARN
    assert inputs["description"] == "Made by the platform team"
    _, outputs = an_engine(aws, "Role").create({"name": "n", "path": "/ml/", "assumeRolePolicy": _TRUST})
    assert outputs["arn"] == "arn:aws:iam::123456789012:role/ml/n", "a document that names it must match"
    profile = an_engine(aws, "InstanceProfile").create({"name": "n"})[1]
    assert profile["arn"] == "arn:aws:iam::123456789012:instance-profile/n"


def test_roles_are_found_by_name_and_by_path(aws: Provider, state_file: Path) -> None:
    a_role(aws)
    assert (
        invoke(aws, "aws:iam/getRole:getRole", {"name": "nodes"})["arn"]
        == "arn:aws:iam::123456789012:role/nodes"
    )
    missing = "reading IAM Role (AWSServiceRoleForEC2Spot): couldn't find resource"
    refused(lambda: invoke(aws, "aws:iam/getRole:getRole", {"name": "AWSServiceRoleForEC2Spot"}), missing)
    assert invoke(aws, _ROLES, {"pathPrefix": PATH})["arns"] == []
    create_spot_role(CloudState(state_file))
    assert invoke(aws, _ROLES, {"pathPrefix": PATH})["arns"] == [ARN]
    names = invoke(aws, _ROLES, {})["names"]
    assert names == ["nodes", "AWSServiceRoleForEC2Spot"]
    assert invoke(aws, _ROLES, {"nameRegex": "^nod"})["names"] == ["nodes"]


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
