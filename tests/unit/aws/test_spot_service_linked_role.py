"""The account's service-linked role for EC2 Spot: created or imported, never deleted."""

import pytest
from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.aws.karpenter.iam_roles import PATH, spot_service_linked_role
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text

ACCOUNT = "123456789012"
ARN = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"


class SpotPool(ComponentResource):
    """A resource that needs spot instances."""

    def __init__(self, opts: ResourceOptions) -> None:
        super().__init__("test:index:SpotPool", "spot-pool", None, opts)


def recorded(existing_arn: str | None = None, *, preview: bool = False) -> Recording:
    def build() -> None:
        role = spot_service_linked_role("spot-role", account=ACCOUNT, existing_arn=existing_arn)
        SpotPool(ResourceOptions(depends_on=[role]))

    return record(build, preview=preview)


def the_role(existing_arn: str | None = None) -> Recorded:
    return recorded(existing_arn).one(":ServiceLinkedRole")


def test_the_role_is_that_of_ec2_spot() -> None:
    assert text(the_role(), "awsServiceName") == "spot.amazonaws.com"
    assert ARN.partition(":role")[2].startswith(PATH)
    recording = recorded()
    before = recording.everything_before(recording.one(":SpotPool"))
    assert "spot-role" in before, "an earlier pool would fail with ServiceLinkedRoleCreationNotPermitted"


@pytest.mark.parametrize("preview", [False, True])
def test_the_role_is_imported_only_if_the_account_has_it(preview: bool) -> None:
    assert recorded(preview=preview).one(":ServiceLinkedRole").import_id == ""
    assert the_role(ARN).import_id == ARN


@pytest.mark.parametrize("existing_arn", [None, ARN])
def test_a_created_and_an_imported_role_have_the_same_inputs_and_are_never_changed_or_deleted(
    existing_arn: str | None,
) -> None:
    role = the_role(existing_arn)
    assert role.retain_on_delete
    assert role.ignore_changes == {"description", "tags", "tagsAll", "customSuffix"}
    assert set(role.inputs) == {"awsServiceName"}, "otherwise the second `up` would show a change"


def test_clusters_of_one_program_share_the_role_of_an_account() -> None:
    def build() -> None:
        for cluster, account in (("east", ACCOUNT), ("west", ACCOUNT), ("other", "210987654321")):
            spot_service_linked_role(f"{cluster}-spot-role", account=account, existing_arn=None)

    made = [each.name for each in record(build).of(":ServiceLinkedRole")]
    assert made == ["east-spot-role", "other-spot-role"], "AWS refuses a second one of an account"
