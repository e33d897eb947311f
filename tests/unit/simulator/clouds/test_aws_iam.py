"""The simulated IAM."""

from pathlib import Path

import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.pulumi.values import Properties, Value, from_struct, to_struct
from tests.support.clusters.provider_calls import Engine, Provider, refusal
from tests.support.fakes.spot_role_account import (
    ARN,
    PATH,
    ROLE,
    create_spot_role,
    deny_iam_writes,
)

_TRUST = "{}"
_SPOT: Properties = {"awsServiceName": "spot.amazonaws.com"}


def an_engine(aws: Provider, kind: str, name: str = "one") -> Engine:
    module = kind[0].lower() + kind[1:]
    return Engine(provider=aws, type=f"aws:iam/{module}:{kind}", name=name)


def a_role(aws: Provider, name: str = "nodes", **more: Value) -> tuple[Engine, str]:
    engine = an_engine(aws, "Role", name)
    return engine, engine.create({"name": name, "assumeRolePolicy": _TRUST, **more})[0]


def invoke(aws: Provider, function: str, arguments: Properties) -> dict[str, Value]:
    request = provider_pb2.InvokeRequest(tok=f"aws:iam/{function}:{function}", args=to_struct(arguments))
    return from_struct(getattr(aws.Invoke(request), "return"))


def test_a_service_linked_role_is_named_and_identified_by_aws(aws: Provider) -> None:
    made, outputs = an_engine(aws, "ServiceLinkedRole").create(_SPOT)
    assert made == ARN, "its ARN is its id"
    assert (outputs["name"], outputs["path"]) == ("AWSServiceRoleForEC2Spot", PATH), "neither can be chosen"


def test_a_second_service_linked_role_is_refused_in_awss_words(aws: Provider) -> None:
    an_engine(aws, "ServiceLinkedRole").create(_SPOT)
    reason = refusal(lambda: an_engine(aws, "ServiceLinkedRole", "two").create(_SPOT))
    assert reason == (
        "InvalidInput: Service role name AWSServiceRoleForEC2Spot has been taken in this account, "
        "please try a different suffix."
    ), reason


def test_a_service_whose_roles_name_is_not_known_is_refused_rather_than_made_up(aws: Provider) -> None:
    other: Properties = {"awsServiceName": "es.amazonaws.com"}
    reason = refusal(lambda: an_engine(aws, "ServiceLinkedRole").create(other))
    assert "of es.amazonaws.com is not simulated; use one of: spot.amazonaws.com" in reason, reason


def test_a_role_that_somebody_made_is_read_with_what_they_gave_it(aws: Provider, state_file: Path) -> None:
    create_spot_role(CloudState(state_file))
    found, _, inputs = an_engine(aws, "ServiceLinkedRole").read(ARN)
    assert found == ARN, "an import finds it"
    assert inputs["description"] == "Made by the platform team", (
        "and sees where it differs from the program's"
    )


def test_roles_are_found_under_a_path_and_none_is_no_error(aws: Provider, state_file: Path) -> None:
    a_role(aws)
    assert invoke(aws, "getRoles", {"pathPrefix": PATH})["arns"] == [], "an account without it, plainly"
    create_spot_role(CloudState(state_file))
    assert invoke(aws, "getRoles", {"pathPrefix": PATH})["arns"] == [ARN], "and with it"
    names = invoke(aws, "getRoles", {})["names"]
    assert names == ["nodes", "AWSServiceRoleForEC2Spot"], "without a path, all"
    assert invoke(aws, "getRoles", {"nameRegex": "^nod"})["names"] == ["nodes"], "or by name"


def test_asking_for_one_role_that_is_not_there_is_an_error(aws: Provider) -> None:
    a_role(aws)
    assert invoke(aws, "getRole", {"name": "nodes"})["arn"] == "arn:aws:iam::123456789012:role/nodes", (
        "a role that is there is shown"
    )
    reason = refusal(lambda: invoke(aws, "getRole", {"name": "AWSServiceRoleForEC2Spot"}))
    assert reason == "reading IAM Role (AWSServiceRoleForEC2Spot): couldn't find resource", reason


def test_an_arn_has_the_path_in_it(aws: Provider) -> None:
    _, outputs = an_engine(aws, "Role").create({"name": "n", "path": "/ml/", "assumeRolePolicy": _TRUST})
    assert outputs["arn"] == "arn:aws:iam::123456789012:role/ml/n", "a document that names it must match"
    profile = an_engine(aws, "InstanceProfile").create({"name": "n"})[1]
    assert profile["arn"] == "arn:aws:iam::123456789012:instance-profile/n", "AWS spells it with a hyphen"


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("RolePolicy", {"policy": "{}"}),
        ("RolePolicyAttachment", {"policyArn": "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"}),
        ("InstanceProfile", {}),
    ],
)
def test_what_is_put_on_a_role_needs_the_role(aws: Provider, kind: str, inputs: Properties) -> None:
    engine = an_engine(aws, kind)
    reason = refusal(lambda: engine.create({"role": "nodes", **inputs}))
    assert reason == "NoSuchEntity: The role with name nodes cannot be found.", reason
    a_role(aws)
    assert engine.create({"role": "nodes", **inputs})[0], "with the role it is made"


def test_a_policy_of_the_account_must_be_there_to_be_attached(aws: Provider) -> None:
    a_role(aws)
    arn = "arn:aws:iam::123456789012:policy/own"
    attach: Properties = {"role": "nodes", "policyArn": arn}
    reason = refusal(lambda: an_engine(aws, "RolePolicyAttachment").create(attach))
    assert reason == f"NoSuchEntity: Policy {arn} does not exist or is not attachable.", reason
    assert an_engine(aws, "Policy").create({"name": "own", "policy": "{}"})[0] == arn, "its ARN is its id"
    assert an_engine(aws, "RolePolicyAttachment").create(attach)[0], "now it is attached"


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
def test_a_role_with_policies_is_not_deleted(
    aws: Provider, kind: str, inputs: Properties, reason: str
) -> None:
    role, role_id = a_role(aws)
    policy = an_engine(aws, kind)
    policy_id, _ = policy.create({"role": "nodes", **inputs})
    refused = refusal(lambda: role.delete(role_id))
    assert refused == f"DeleteConflict: Cannot delete entity, {reason}", refused
    policy.delete(policy_id)
    role.delete(role_id)


def test_a_policy_that_is_attached_is_not_deleted(aws: Provider) -> None:
    a_role(aws)
    policy = an_engine(aws, "Policy")
    arn, _ = policy.create({"name": "own", "policy": "{}"})
    an_engine(aws, "RolePolicyAttachment").create({"role": "nodes", "policyArn": arn})
    refused = refusal(lambda: policy.delete(arn))
    assert refused == "DeleteConflict: Cannot delete a policy attached to entities.", refused


def test_a_caller_who_only_reads_changes_nothing(aws: Provider, state_file: Path) -> None:
    role, role_id = a_role(aws)
    cloud = CloudState(state_file)
    create_spot_role(cloud)
    deny_iam_writes(cloud)
    spot = Engine(provider=aws, type=ROLE)
    actions = {
        "iam:CreateRole": lambda: a_role(aws, "another"),
        "iam:UpdateRole": lambda: spot.update(ARN, _SPOT),
        "iam:DeleteRole": lambda: role.delete(role_id),
        "iam:DeleteServiceLinkedRole": lambda: spot.delete(ARN),
    }
    for action, act in actions.items():
        reason = refusal(act)
        assert f"user/rehearsal is not authorized to perform: {action} on resource: arn:" in reason, reason
    assert spot.read(ARN)[0] == ARN, "reading is what such a caller may do"
