"""What only the account knows: how it is asked, what is refused because of it, and what is only said."""

import json
from collections.abc import Callable
from typing import cast

import pytest

from pulumi_holdfast.aws.config.sections import AwsNewNetwork, AwsPlatform
from pulumi_holdfast.aws.preflight.checks import (
    Account,
    Existing,
    keeps_checkpoint_key,
    preflight_problems,
    preflight_warnings,
    zones_of_network,
)
from pulumi_holdfast.aws.preflight.queries import AccountQueries
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from tests.support.builders.aws_stacks import CACHES
from tests.support.builders.configurations import Document, aws_platform, entry, new_cluster, section
from tests.support.fakes.aws_account import (
    ACCOUNT,
    CLUSTER,
    CLUSTERS,
    KEY,
    LOG_GROUPS,
    ROLES,
    SPOT_ROLE,
    TAGGED,
    ZONES,
    account,
    answers,
    asked,
)
from tests.support.fakes.pulumi_engine import asking_component
from tests.support.invalid_configs.mistakes import changed, missing

PLATFORM = "holdfast:platform"
STANDARD_SPOT = "L-34B43A08"
STANDARD = "L-1216C47A"
P4_SPOT = "L-7212CCBC"


def refused(platform: AwsPlatform, found: Account) -> list[str]:
    return [problem.field.removeprefix(PLATFORM) for problem in preflight_problems(platform, found)]


def test_an_account_with_everything_causes_no_problem_and_no_warning() -> None:
    assert not refused(aws_platform(), account())
    assert not list(preflight_warnings(aws_platform(), account()))


def test_another_account_is_the_only_problem() -> None:
    found = account(number="210987654321", zones=())
    (problem,) = preflight_problems(aws_platform(), found)
    assert problem.field == f"{PLATFORM}.account"
    assert "210987654321" in problem.value
    assert "Log in to 123456789012" in problem.fix


EVERYTHING = frozenset(machine_catalogue("aws"))
EVERYWHERE = dict.fromkeys(EVERYTHING, frozenset(ZONES))
A100 = frozenset({"p4d.24xlarge", "p4de.24xlarge"})
ONE_ZONE = {"p4d.24xlarge": frozenset({"us-west-2a"}), "p4de.24xlarge": frozenset[str]()}
SMALL: Document = {"capacity": "on-demand", "instanceTypes": ["m7i.large"], "maxNodes": 20}
SMALL_SPOT: Document = {"capacity": "spot", "families": ["c7i", "c6i"], "sizes": ["large"], "maxNodes": 8}


@pytest.mark.parametrize(
    ("change", "found", "fields", "reason"),
    [
        (changed(""), account(addons={"coredns": "v1.14.3-eksbuild.22"}), [".cluster.addons.coredns"], "EKS would reject the add-on after the cluster is made"),
        (changed(".cluster", addons={"coredns": "v1.14.3-eksbuild.9"}), account(addons={"coredns": "v1.14.3-eksbuild.22"}), [], "an older build"),
        (missing(".account", "")[0], account(number="210987654321"), [], "the stack names no account"),
        (changed(""), account(zones=("us-west-2a", "us-west-2b", "us-west-2d")), [".network.zones[2]"], "zones differ from account to account"),
        (changed(".network", zones=4), account(zones=ZONES[:3]), [".network.zones"], "a subnet would have no place"),
        (changed(""), account(offered={**EVERYWHERE, **ONE_ZONE}), [], "one machine in one zone is enough"),
        (changed(""), account(available={CapacityType.SPOT: EVERYTHING - A100, CapacityType.ON_DEMAND: EVERYTHING}), [".pools[2].capacity"], "no machine on spot; on-demand is fine"),
        (changed("", pullThroughCache=CACHES), account(), [], "the secret is of this account"),
        (changed("", account="210987654321", pullThroughCache=CACHES), account(number="210987654321"), [".pullThroughCache[1].credentialArn"], "ECR reads no secret of another account"),
        (changed("", pools=[{"name": "cpu", "default": True, **SMALL}, {"name": "cpu-spot", **SMALL_SPOT}], namespaces=[]), account(quotas={STANDARD: 5, STANDARD_SPOT: 5}), [], "a new account has 5 vCPUs of each kind"),
    ],
)  # fmt: skip
def test_a_stack_is_refused_only_for_what_its_account_lacks(
    change: Callable[[Document], object], found: Account, fields: list[str], reason: str
) -> None:
    assert refused(aws_platform(change), found) == fields, reason


def test_a_pool_in_a_zone_outside_the_network_is_a_problem() -> None:
    platform = aws_platform(
        lambda d: (section(d, "network").update(zones=2), entry(d, "pools", 2).update(zones=["us-west-2c"]))
    )
    (problem,) = preflight_problems(platform, account())
    assert problem.field == f"{PLATFORM}.pools[2].zones[0]", "its machines would have no subnet"
    assert "us-west-2a, us-west-2b" in problem.allowed


def test_machines_in_no_zone_of_the_pool_are_a_problem() -> None:
    offered = {**EVERYWHERE, **dict.fromkeys(A100, frozenset({"us-west-2d"}))}
    problems = list(preflight_problems(aws_platform(), account(offered=offered)))
    assert [problem.field for problem in problems] == [f"{PLATFORM}.pools[2]", f"{PLATFORM}.pools[3]"]
    assert "us-west-2d" in problems[0].allowed, "where they could be had is said"


def test_a_quota_below_one_machine_is_a_problem() -> None:
    (problem,) = preflight_problems(aws_platform(), account(quotas={P4_SPOT: 0}))
    assert problem.field == f"{PLATFORM}.pools[2]"
    assert "All P4, P3 and P2 Spot Instance Requests" in problem.value
    assert (
        "request-service-quota-increase --service-code ec2 --quota-code L-7212CCBC --desired-value 768"
        in (problem.fix)
    )


def test_a_quota_for_some_machines_causes_a_warning() -> None:
    found = account(quotas={STANDARD_SPOT: 8})
    (warning,) = preflight_warnings(aws_platform(), found)
    assert not refused(aws_platform(), found)
    assert "is 8 vCPUs in us-west-2; at their maximum, pools[1] need 32" in warning
    assert "--desired-value 32" in warning


def test_system_nodes_count_against_the_quota_of_the_pools() -> None:
    (warning,) = preflight_warnings(aws_platform(), account(quotas={STANDARD: 80}))
    assert "at their maximum, cluster.systemNodes, pools[0] need 84" in warning


def test_an_unavailable_machine_causes_a_warning_if_another_is_available() -> None:
    available = dict.fromkeys(CapacityType, EVERYTHING - {"p4de.24xlarge"})
    (warning,) = preflight_warnings(aws_platform(), account(available=available))
    assert "pool a100-spot" in warning
    assert "p4de.24xlarge is not available on spot" in warning


@pytest.mark.parametrize(
    ("admin", "caller"),
    [
        (f"arn:aws:iam::{ACCOUNT}:user/deployer", f"arn:aws:iam::{ACCOUNT}:user/deployer"),
        (f"arn:aws:iam::{ACCOUNT}:role/platform", f"arn:aws:sts::{ACCOUNT}:assumed-role/platform/me"),
        (f"arn:aws:iam::{ACCOUNT}:role/teams/platform", f"arn:aws:sts::{ACCOUNT}:assumed-role/platform/me"),
    ],
)
def test_a_deployer_among_the_administrators_is_refused_where_it_creates_the_cluster(
    admin: str, caller: str
) -> None:
    platform = aws_platform(lambda d: section(d, "cluster").update(admins=[admin]))
    (warning,) = preflight_warnings(platform, account(caller=caller))
    assert admin in warning, "which of them it is"
    assert "EKS rejects a second access entry" in warning
    creating = account(caller=caller, existing=Existing(cluster=False))
    (problem,) = preflight_problems(platform, creating)
    assert problem.field == "holdfast:platform.cluster.admins[0]"
    assert not list(preflight_warnings(platform, creating)), "it is refused instead"


@pytest.mark.parametrize(
    "caller",
    [
        f"arn:aws:iam::{ACCOUNT}:user/platform",
        "arn:aws:sts::210987654321:assumed-role/platform/me",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/platform-two/me",
    ],
)
def test_another_deployer_causes_no_warning(caller: str) -> None:
    assert not list(preflight_warnings(aws_platform(), account(caller=caller)))


KEY_ARN = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
OTHER_KEY = KEY_ARN.replace("0123-4", "9999-4")


@pytest.mark.parametrize(
    ("wanted", "existing", "fix"),
    [
        (None, Existing(), None),
        (KEY_ARN, Existing(), None),
        (None, Existing(secrets_key=KEY_ARN, own_keys={"Secrets": KEY_ARN}), None),
        (KEY_ARN, Existing(secrets_key=KEY_ARN), None),
        (OTHER_KEY, Existing(secrets_key=KEY_ARN, own_keys={"Secrets": KEY_ARN}), "Leave it out"),
        (OTHER_KEY, Existing(secrets_key=KEY_ARN), f'Write "{KEY_ARN}"'),
        (None, Existing(secrets_key=KEY_ARN), f'Write "{KEY_ARN}"'),
    ],
)
def test_another_key_for_the_secrets_of_an_existing_cluster_is_a_problem(
    wanted: str | None, existing: Existing, fix: str | None
) -> None:
    platform = aws_platform(
        lambda d: section(d, "cluster").update({} if wanted is None else {"secretsKey": wanted})
    )
    found = list(preflight_problems(platform, account(existing=existing)))
    assert [problem.field for problem in found] == ([f"{PLATFORM}.cluster.secretsKey"] if fix else [])
    assert fix is None or found[0].fix.startswith(fix)


@pytest.mark.parametrize(("drop", "keeps"), [(False, True), (True, False)])
def test_the_key_of_earlier_checkpoints_stays_until_it_is_dropped(drop: bool, keeps: bool) -> None:
    platform = aws_platform(lambda d: section(d, "checkpoints").update(kms=False, dropKey=drop))
    found = account(existing=Existing(own_keys={"Checkpoints (checkpoints)": KEY_ARN}))
    warnings = list(preflight_warnings(platform, found))
    assert keeps_checkpoint_key(platform, found) is keeps
    assert any("dropKey: true" in line for line in warnings) is keeps
    assert not keeps_checkpoint_key(aws_platform(), found)
    assert not keeps_checkpoint_key(platform, account())


def left_behind(token: str, arguments: Json) -> Json:
    """An account with the cluster, the keys and the log group of aws-dev."""
    keys = {
        KEY_ARN: ("Checkpoints (checkpoints)", "Enabled"),
        OTHER_KEY: ("Checkpoints (old)", "PendingDeletion"),
    }
    if token == KEY:
        description, state = keys[str(arguments["keyId"])]
        return {"arn": arguments["keyId"], "description": description, "keyState": state}
    encryption = [{"Resources": ["secrets"], "Provider": {"KeyArn": KEY_ARN}}]
    found: dict[str, Json] = {
        TAGGED: {
            "resourceTagMappingLists": [
                {"resourceArn": arn, "tags": {}, "complianceDetails": []} for arn in keys
            ]
        },
        CLUSTERS: {"names": ["holdfast-aws-dev"]},
        CLUSTER: {"properties": json.dumps({"EncryptionConfig": encryption})},
        LOG_GROUPS: {"logGroupNames": ["/aws/eks/holdfast-aws-dev/cluster"]},
    }
    return found.get(token) or answers(token, arguments)


def test_what_earlier_runs_left_is_found_by_name_and_tag() -> None:
    found = lookups(left_behind).existing
    assert found.cluster
    assert found.secrets_key == KEY_ARN, "the cluster's own answer, which no other function has"
    assert found.own_keys == {"Checkpoints (checkpoints)": KEY_ARN}, (
        "a key that waits for its deletion keeps nothing"
    )
    assert found.log_group, "creating it again would fail"
    assert lookups().existing == Existing(cluster=False), "a new account has none of it"


def test_without_permission_to_find_its_key_a_stack_does_not_stop_using_it() -> None:
    def denied(token: str, arguments: Json) -> Json:
        if token == TAGGED:
            raise PermissionError("denied")
        return answers(token, arguments)

    refusals: list[str] = []

    def ask() -> None:
        platform = aws_platform(lambda d: section(d, "checkpoints").update(kms=False))
        try:
            AccountQueries(platform, "aws-dev", parent=asking_component()).account()
        except ConfigError as error:
            refusals.append(str(error))

    asked(ask, denied)
    assert "tag:GetResources" in refusals[0], "deleting the key would lose every earlier checkpoint"


def test_failed_queries_cause_one_warning() -> None:
    found = account(failed_queries=("servicequotas:GetServiceQuota (L-1): denied", "iam:X: denied"))
    (warning,) = preflight_warnings(aws_platform(), found)
    assert "L-1" in warning
    assert "\n" not in warning


def test_a_number_of_zones_selects_the_first_of_the_account_or_else_of_the_region() -> None:
    network = AwsNewNetwork(zones=2)
    zones = zones_of_network(network, account(), ("us-west-2x",))
    assert zones == ("us-west-2a", "us-west-2b"), "always the same ones, or the plan would change"
    assert zones_of_network(network, account(zones=None), ZONES[1:]) == ZONES[1:3]


def lookups(answer: Callable[[str, Json], Json] = answers) -> Account:
    found: list[Account] = []
    asked(
        lambda: found.append(AccountQueries(aws_platform(), "aws-dev", parent=asking_component()).account()),
        answer,
    )
    return found[0]


def test_query_results_become_typed_values() -> None:
    found = lookups()
    assert found.id == ACCOUNT
    assert found.zones == ZONES
    assert found.spot_role == SPOT_ROLE
    assert found.offered is not None
    assert found.offered["p4d.24xlarge"] == frozenset(ZONES)
    assert found.available[CapacityType.SPOT] >= {"p4d.24xlarge", "c7i.xlarge"}
    assert found.quotas[P4_SPOT] == 10_000
    assert not found.failed_queries


def test_only_quotas_of_the_stack_are_queried() -> None:
    assert set(lookups().quotas) == {STANDARD, STANDARD_SPOT, P4_SPOT, "L-417A185B"}


def test_a_missing_spot_role_is_none() -> None:
    def answer(token: str, arguments: Json) -> Json:
        return {"arns": [], "names": []} if token == ROLES else answers(token, arguments)

    assert lookups(answer).spot_role is None


def test_many_types_are_queried_in_parts() -> None:
    sizes: list[int] = []

    def answer(token: str, arguments: Json) -> Json:
        filters = cast("list[Json]", arguments.get("filters") or [])
        sizes.extend(len(cast("list[str]", one["values"])) for one in filters)
        return answers(token, arguments)

    families = sorted(
        {name.split(".")[0] for name in machine_catalogue("aws") if name.startswith(("c", "m"))}
    )
    amd = [
        family
        for family in families
        if (machine := machine_catalogue("aws").get(f"{family}.xlarge")) and machine.arch == "amd64"
    ]
    platform = aws_platform(
        lambda d: entry(d, "pools", 1).update(
            families=amd,
            sizes=["large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge"],
        )
    )
    assert len(platform.pools[1].machines(platform.region)) > 200, "else this shows nothing"
    asked(lambda: AccountQueries(platform, "aws-dev", parent=asking_component()).account(), answer)
    assert max(sizes) <= 200, "EC2 takes no more values in a filter"


def test_the_default_service_range_is_the_components() -> None:
    from pulumi_holdfast.aws.control_plane.component import SERVICE_CIDR

    assert new_cluster(aws_platform().cluster).service_cidr == SERVICE_CIDR
