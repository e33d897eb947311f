"""The account's role for EC2 Spot: ensured, never deleted."""

from __future__ import annotations

import pytest
from pulumi import ComponentResource, ResourceOptions

from holdfast.components.spot_service_linked_role import (
    PATH,
    SpotServiceLinkedRole,
    SpotServiceLinkedRoleArgs,
)
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text

ARN = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"


class SpotPool(ComponentResource):
    """Anything that needs spot machines."""

    def __init__(self, opts: ResourceOptions) -> None:
        super().__init__("test:index:SpotPool", "spot-pool", None, opts)


def recorded(existing_arn: str | None = None, *, preview: bool = False) -> Recording:
    def build() -> None:
        role = SpotServiceLinkedRole("spot-role", SpotServiceLinkedRoleArgs(existing_arn=existing_arn))
        SpotPool(ResourceOptions(depends_on=[role]))

    return record(build, preview=preview)


def the_role(existing_arn: str | None = None) -> Recorded:
    return recorded(existing_arn).one(":ServiceLinkedRole")


def test_the_role_is_the_one_of_ec2_spot() -> None:
    assert text(the_role(), "awsServiceName") == "spot.amazonaws.com", "EC2 Spot's, not the fleet's"
    assert ARN.partition(":role")[2].startswith(PATH), "where a program looks for it is where it is"


@pytest.mark.parametrize("preview", [False, True])
def test_an_account_without_the_role_gets_it(preview: bool) -> None:
    assert recorded(preview=preview).one(":ServiceLinkedRole").import_id == "", (
        "there is nothing to import, so the role is made"
    )


def test_a_role_that_is_there_is_imported() -> None:
    assert the_role(ARN).import_id == ARN, "an account can have one only: a second would be refused"


@pytest.mark.parametrize("existing_arn", [None, ARN])
def test_the_role_is_never_deleted(existing_arn: str | None) -> None:
    assert the_role(existing_arn).retain_on_delete, "other stacks and people of the account use the role"


@pytest.mark.parametrize("existing_arn", [None, ARN])
def test_nothing_of_the_role_is_changed(existing_arn: str | None) -> None:
    assert the_role(existing_arn).ignore_changes == {"description", "tags", "tagsAll", "customSuffix"}, (
        "an import is followed by an update wherever these differ, which one who only reads cannot make"
    )


@pytest.mark.parametrize("existing_arn", [None, ARN])
def test_nothing_is_asked_for_that_could_differ(existing_arn: str | None) -> None:
    assert set(the_role(existing_arn).inputs) == {"awsServiceName"}, (
        "a made role and an adopted one are asked for in the same words: the second `up` changes nothing"
    )


def test_what_needs_spot_machines_waits_for_the_role() -> None:
    recording = recorded()
    before = recording.everything_before(recording.one(":SpotPool"))
    assert "spot-role-role" in before, (
        "a pool that came first would meet ServiceLinkedRoleCreationNotPermitted"
    )
