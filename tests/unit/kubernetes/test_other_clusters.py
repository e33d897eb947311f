import json
from collections.abc import Mapping
from typing import Final, cast

import pulumi
import pytest

from pulumi_holdfast.aws.checkpoints import require_account
from pulumi_holdfast.azure.checkpoints import account_at_home
from pulumi_holdfast.clouds import pool_summaries
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.clusters import OtherClusterSection
from pulumi_holdfast.config.namespace import NamespaceSection, TierSection
from pulumi_holdfast.controller.kube.access import EXTENSION, GoogleExchange, exchange_of
from pulumi_holdfast.gcp.control_plane.access import token_exchange
from pulumi_holdfast.kubernetes.fallback_controller.clusters import config_map_data, volumes
from pulumi_holdfast.kubernetes.fallback_policy import facts_object
from pulumi_holdfast.kubernetes.other_clusters import (
    Home,
    address_at_home,
    bucket_in,
    exported_fields,
    other_clusters,
    tier_warnings,
)
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from tests.support.builders.configurations import aws_platform
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import asking_component, record
from tests.support.json_objects import obj, objects

ISSUER: Final = "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"
PROVIDER: Final = "projects/1/locations/global/workloadIdentityPools/holdfast-2/providers/home"
SERVER: Final = "https://there.example.com"
KUBECONFIG: Final = json.dumps(
    {"clusters": [{"name": "there", "cluster": {"server": SERVER, "certificate-authority-data": "Q0E="}}]}
)


def read(outputs: Mapping[str, object]) -> tuple[Json, Json, list[str]]:
    """The kubeconfig of the other cluster, the controller's volumes, and the warnings."""
    section = OtherClusterSection.model_validate({"name": "there", "stack": "acme/holdfast/there"})
    found: list[object] = []

    def build() -> None:
        others = other_clusters([section], issuer=ISSUER, parent=asking_component())
        pulumi.Output.all(
            config_map_data(others.connections)["there"], list(volumes(others.connections))
        ).apply(found.extend)

    warnings = record(build, other=OtherStack({"kubeconfig": KUBECONFIG, **outputs})).logged
    kubeconfig, mounted = found
    return json.loads(str(kubeconfig)), {"volumes": mounted}, warnings  # pyright: ignore[reportReturnType] - json.loads has no type


def user_of(kubeconfig: Json) -> Json:
    (entry,) = objects(kubeconfig["users"])
    return obj(entry["user"])


def test_a_cluster_whose_cloud_exchanges_tokens_gets_one_for_that_cloud() -> None:
    exchange = token_exchange(PROVIDER, "from-home@ml.iam.gserviceaccount.com")
    exchanges = {ISSUER: exchange, "https://another": token_exchange("projects/2", "x@y")}
    kubeconfig, mounted, warnings = read({"tokenExchanges": exchanges})
    assert warnings == []
    assert f"'audience': 'https://iam.googleapis.com/{PROVIDER}'" in str(mounted)
    user = user_of(kubeconfig)
    read_back = exchange_of(user)
    assert isinstance(read_back, GoogleExchange)
    assert read_back.audience == f"//iam.googleapis.com/{PROVIDER}"
    (extension,) = objects(user["extensions"])
    google = obj(obj(extension["extension"])["google"])
    assert obj(google["credential_source"])["file"] == user["tokenFile"]
    assert extension["name"] == EXTENSION


def test_a_cluster_that_takes_tokens_as_they_are_gets_one_for_its_api_server() -> None:
    kubeconfig, mounted, warnings = read({})
    assert warnings == []
    assert f"'audience': '{SERVER}'" in str(mounted)
    assert user_of(kubeconfig).keys() == {"tokenFile"}


def test_a_cluster_that_does_not_accept_jobs_of_this_one_is_a_warning_with_the_entry() -> None:
    kubeconfig, _, warnings = read({"tokenExchanges": {"https://another": {}}})
    (warning,) = warnings
    assert ISSUER in warning
    assert "acceptsFrom" in warning
    assert user_of(kubeconfig).keys() == {"tokenFile"}


URI: Final = "s3://checkpoints-0a1b2c3/vision"
PLATFORM: Final = aws_platform()
POOLS: Final = pool_summaries(PLATFORM)
#: The outputs of a stack like this one in another region.
THERE: Final[Json] = {
    "stack": "acme/holdfast/aws-us-east-2",
    "pools": {name: {"facts": facts_object(each)} for name, each in POOLS.items()},
    "ladders": {"vision": ["a100-spot", "a100"]},
    "checkpointUris": {"vision": URI},
    "network": {"region": "us-east-2", "isolated": False},
}


def vision(pool: str = "a100-spot") -> tuple[NamespaceSection, TierSection]:
    """The namespace, whose second tier is a pool of that name in another cluster; and the tier."""
    (found,) = (each for each in PLATFORM.namespaces if each.name == "vision")
    first, *others = found.ladder
    there = first.model_copy(update={"cluster": "us-east-2", "pool": pool})
    return found.model_copy(update={"ladder": (first, there, *others)}), there


def warnings(outputs: Json, *, pool: str = "a100-spot", region: str = "us-east-1", uri: str = URI) -> str:
    """What is said of the tier, with the outputs of its stack."""
    namespace, tier = vision(pool)
    fields = exported_fields(outputs, namespace="vision", pool=pool, region=region)
    return "\n".join(tier_warnings(namespace, 2, tier, fields, checkpoint_uri=uri, pools=POOLS))


def test_tier_has_the_facts_that_its_own_stack_judges_by() -> None:
    fields = exported_fields(THERE, namespace="vision", pool="a100", region="us-east-1")
    assert fields["facts"] == facts_object(POOLS["a100"])
    exported = {"ladder": ["a100-spot", "a100"], "checkpoints": URI, "reachesCheckpoints": True}
    assert fields["exported"] == {"stack": THERE["stack"], **exported}
    assert not warnings(THERE)


@pytest.mark.parametrize(
    "uri", ["gs://checkpoints-0a1b2c3/vision", "abfss://vision@checkpoints0a1b2c3d.blob.core.windows.net"]
)
def test_checkpoints_are_judged_alike_on_every_cloud(uri: str) -> None:
    there: Json = {**THERE, "checkpointUris": {"vision": uri}}
    assert not warnings(there, uri=uri)
    assert "starts without its own" in warnings(there)


@pytest.mark.parametrize(
    ("outputs", "pool", "words"),
    [
        ({"stack": "s", "pools": None}, "a100-spot", "its stack was not updated yet"),
        ({**THERE, "pools": {"a100-spot": {"capacity": "spot"}}}, "a100-spot", "Update it with this release"),
        (THERE, "h100", "pool h100 is not on the ladder of this namespace in stack acme/holdfast/aws-us-east-2"),
        ({**THERE, "ladders": {}}, "a100-spot", "has no training namespace of this name"),
        ({**THERE, "checkpointUris": {"vision": "s3://b/vision"}}, "a100-spot", "starts without its own"),
        ({**THERE, "network": {"region": "us-east-2", "isolated": True}}, "a100-spot", "leads to no store"),
        ({**THERE, "checkpointUris": None}, "a100-spot", "whether jobs find their checkpoints there is not known"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_not_known_of_a_tier_elsewhere_is_said(outputs: Json, pool: str, words: str) -> None:
    found = warnings(outputs, pool=pool)
    assert words in found
    assert f"tier 2 → pool us-east-2/{pool}" in found


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", ".dkr.ecr.us-east-1.amazonaws.com"),
        ("cn-north-1", ".dkr.ecr.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_isolated_network_leads_to_buckets_and_registries_of_its_own_region(
    region: str, registry: str
) -> None:
    isolated: Json = {**THERE, "network": {"region": region, "isolated": True}}
    fields = mapping(exported_fields(isolated, namespace="vision", pool="a100", region=region)["exported"])
    assert fields["reachesCheckpoints"] is True
    assert fields["registry"] == registry


def test_pool_that_is_too_small_there_is_said_with_the_check() -> None:
    facts = mapping(mapping(mapping(THERE["pools"])["a100-spot"])["facts"])
    small: Json = {**facts, "machines": [{"name": "t", "cpu": "1", "memory": "1Gi", "gpus": 0}]}
    assert "none of its machine types fits" in warnings({**THERE, "pools": {"a100-spot": {"facts": small}}})


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
