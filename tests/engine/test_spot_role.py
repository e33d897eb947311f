"""The account's Spot role on the real engine: created once, adopted where it exists, never deleted."""

from pathlib import Path

import pytest
from pulumi import ResourceOptions

from pulumi_holdfast.aws.karpenter.iam_roles import PATH, spot_service_linked_role
from pulumi_holdfast.kubernetes.labels import aws_tags
from pulumi_holdfast.rehearsal.engine import EngineFailure
from pulumi_holdfast.rehearsal.engine.faults import Faults
from tests.support.clusters.cloud_program import CloudProgram
from tests.support.fakes.spot_role_account import ARN, ROLE, create_spot_role

pytestmark = pytest.mark.engine


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path)


def found_by_looking() -> None:
    """Look for the role as the program does, and see to it that it is there."""
    from pulumi_aws import iam

    # Default tags reach every resource of a stack: one more difference to the role of the account.
    tags = ResourceOptions(transformations=[aws_tags({"stack": "dev"})])
    arns = iam.get_roles(path_prefix=PATH).arns
    spot_service_linked_role("role", account="a", existing_arn=arns[0] if arns else None, opts=tags)


def overlooked() -> None:
    """Answer that the account has no role, as to a run that asked before the role was created."""
    spot_service_linked_role("role", account="a", existing_arn=None)


def test_the_role_is_created_where_it_is_missing_and_retained(stack: CloudProgram) -> None:
    made = stack.up(found_by_looking)
    assert made.changes["create"] == 2, "the stack and the role are created"
    assert [role.id for role in stack.objects(ROLE)] == [ARN], "there is one role, and this is its ARN"

    again = stack.up(found_by_looking)
    assert again.changed == 0
    stack.refresh(found_by_looking)
    assert stack.up(found_by_looking).changed == 0

    stack.destroy()
    assert [role.id for role in stack.objects(ROLE)] == [ARN]


def test_an_existing_role_is_adopted_with_read_access(stack: CloudProgram) -> None:
    create_spot_role(stack.cloud())
    (before,) = stack.objects(ROLE)

    adopted = stack.up(found_by_looking)
    assert adopted.changes["import"] == 1
    assert "update" not in adopted.changes, "an import that updates cannot be done by one who only reads"
    assert stack.up(found_by_looking).changed == 0
    assert stack.up(overlooked).changed == 0

    stack.destroy()
    assert stack.objects(ROLE) == [before]


def test_a_concurrent_creation_is_adopted_by_the_next_run(stack: CloudProgram) -> None:
    create_spot_role(stack.cloud())
    with pytest.raises(EngineFailure) as caught:
        stack.up(overlooked)
    message = str(caught.value)
    assert "has been taken in this account" in message
    assert "Run `pulumi up` again: it finds the role and imports it" in message
    assert stack.up(found_by_looking).changes["import"] == 1


def test_a_caller_without_permission_gets_the_error_of_aws(stack: CloudProgram) -> None:
    faults = Faults()
    faults.fail_create(
        1, "AccessDenied: the caller is not authorized to perform: iam:CreateServiceLinkedRole"
    )
    with pytest.raises(EngineFailure) as caught:
        stack.up(found_by_looking, faults=faults)
    assert "is not authorized to perform: iam:CreateServiceLinkedRole" in str(caught.value), str(caught.value)
    assert "run again" not in str(caught.value), "running again would not help"
