"""The checkpoints of accepted jobs: which homes a stack can share a store with, and what it says of the others."""

from typing import Final, cast

import pulumi
import pytest

from pulumi_holdfast.aws.checkpoints import require_account
from pulumi_holdfast.azure.checkpoints import account_at_home
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.other_clusters import Home, address_at_home, bucket_in
from pulumi_holdfast.ladder.json import Json, JsonValue

HOME: Final = Home(
    stack="acme/holdfast/home",
    field="holdfast:platform.acceptsFrom[0].checkpoints",
    reference=cast("pulumi.StackReference", None),
)
ADDRESSES: Final = {
    "AWS": "s3://store/vision",
    "Google Cloud": "gs://store/vision",
    "Azure": "abfss://vision@store.blob.core.windows.net",
}
ACCOUNT: Final = "/subscriptions/1/resourceGroups/kept/providers/Microsoft.Storage/storageAccounts/store"


@pytest.mark.parametrize("home", ADDRESSES)
@pytest.mark.parametrize("cloud", ADDRESSES)
def test_a_stack_shares_the_store_of_a_home_on_its_own_cloud_alone(cloud: str, home: str) -> None:
    uris: Json = {"vision": ADDRESSES[home]}
    if home == cloud:
        found = address_at_home(uris, home=HOME, namespace="vision", cloud=cloud)
        assert found == ADDRESSES[home]
        return
    with pytest.raises(pulumi.RunError) as refused:
        address_at_home(uris, home=HOME, namespace="vision", cloud=cloud)
    said = str(refused.value)
    assert said.startswith(
        f'{HOME.field}: got "acme/holdfast/home", which exports the address "{ADDRESSES[home]}"'
    )
    assert f"allowed: a stack on {cloud} " in said
    assert "leave checkpoints out" in said


@pytest.mark.parametrize("uris", [None, {}, {"tabular": "s3://store/tabular"}])
def test_a_home_without_the_namespace_is_refused(uris: JsonValue) -> None:
    with pytest.raises(pulumi.RunError, match="exports no address for the namespace vision"):
        address_at_home(uris, home=HOME, namespace="vision", cloud="AWS")


@pytest.mark.parametrize("cloud", ["AWS", "Google Cloud"])
def test_the_bucket_is_the_one_in_the_address(cloud: str) -> None:
    assert bucket_in(ADDRESSES[cloud]) == "store"


@pytest.mark.parametrize(
    ("account", "uri", "message"),
    [
        (None, ADDRESSES["Azure"], "exports no storage account.* Update that stack"),
        (
            {"id": ACCOUNT, "tenantId": "other"},
            ADDRESSES["Azure"],
            "in the tenant other.* Leave checkpoints out",
        ),
        (
            {"id": ACCOUNT, "tenantId": "ours"},
            "abfss://vision@another.blob.core.windows.net",
            "in the account of another stack.* Write the stack",
        ),
    ],
)
def test_an_account_that_identities_here_cannot_use_is_refused(
    account: JsonValue, uri: str, message: str
) -> None:
    with pytest.raises(pulumi.RunError, match=message):
        account_at_home(HOME, uri, account, tenant="ours")


ROLE: Final = "arn:aws:iam::123456789012:role/of-jobs-at-home"


def test_a_bucket_of_the_same_account_is_accepted() -> None:
    require_account(HOME, ROLE, "123456789012")


@pytest.mark.parametrize(
    ("role", "message"),
    [
        (ROLE, "a bucket in the account 123456789012"),
        (None, "the identity null"),
        ("role", 'identity "role"'),
    ],
)
def test_a_bucket_that_roles_of_this_account_cannot_use_is_refused(role: JsonValue, message: str) -> None:
    with pytest.raises(
        pulumi.RunError, match=f"{message}.* in the account 210987654321.* Leave checkpoints out"
    ):
        require_account(HOME, role, "210987654321")


def test_the_stores_of_two_stacks_have_endpoints_of_different_names() -> None:
    stacks = (
        "acme/holdfast/home",
        "acme/holdfast-home/home",
        "acme-holdfast/home/home",
        f"acme/holdfast/{'a' * 90}",
    )
    names = {naming.home_endpoint("main", stack) for stack in stacks}
    assert len(names) == len(stacks), "Azure would replace the one with the other"
    assert all(len(name) <= 64 for name in names)
