"""The permissions of Karpenter's controller: no wider than its official template, for its own cluster."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.aws.karpenter.controller_policies import CONTROLLER_POLICIES, controller_policy
from pulumi_holdfast.aws.karpenter.iam_roles import PATH, spot_service_linked_role
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.official_karpenter import SCOPE, official_document
from tests.support.fakes.iam_evaluation import Request, is_allowed, texts
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text
from tests.support.json_objects import obj, objects

ISOLATED = replace(SCOPE, isolated=True)
OURS = [controller_policy(policy, SCOPE) for policy in CONTROLLER_POLICIES]
OFFICIAL = [official_document(policy) for policy in CONTROLLER_POLICIES]

EC2 = "arn:aws:ec2:eu-west-1:123456789012"
OWN = {
    "aws:RequestTag/kubernetes.io/cluster/holdfast-dev": "owned",
    "aws:RequestTag/eks:eks-cluster-name": "holdfast-dev",
    "aws:RequestTag/karpenter.sh/nodepool": "a100-spot",
}
OWNED = {
    "aws:ResourceTag/kubernetes.io/cluster/holdfast-dev": "owned",
    "aws:ResourceTag/karpenter.sh/nodepool": "a100-spot",
}


def statements(document: str) -> Mapping[str, Json]:
    return {str(one["Sid"]): one for one in objects(obj(json.loads(document))["Statement"])}


def may(action: str, resource: str = "*", context: Mapping[str, str | list[str]] | None = None) -> bool:
    return is_allowed(OURS, Request(action=action, resource=resource, context=context or {}))


def test_there_are_the_six_policies_of_the_template() -> None:
    assert len(CONTROLLER_POLICIES) == 6
    for policy in CONTROLLER_POLICIES:
        assert list(statements(controller_policy(policy, SCOPE))) == list(
            statements(official_document(policy))
        ), f"{policy} has the statements of the template"


@pytest.mark.parametrize("scope", [SCOPE, ISOLATED], ids=["connected", "isolated"])
@pytest.mark.parametrize("policy", CONTROLLER_POLICIES)
def test_no_statement_is_wider_than_the_templates(policy: str, scope: object) -> None:
    official = statements(official_document(policy))
    for sid, ours in statements(controller_policy(policy, ISOLATED if scope is ISOLATED else SCOPE)).items():
        theirs = official[sid]
        for element in ("Action", "Resource"):
            more = set(texts(ours[element])) - set(texts(theirs[element]))
            assert not more, f"{sid} reaches {element} {more}, which the template does not"
        for operator, keys in obj(theirs.get("Condition")).items():
            for key, wanted in obj(keys).items():
                kept = obj(obj(ours.get("Condition")).get(operator)).get(key)
                assert kept is not None, f"{sid} does not require that {key} {operator} {wanted}"
                assert set(texts(kept)) <= set(texts(wanted)), f"{sid} allows more values of {key}"


ACTIONS = sorted(
    {action for one in OFFICIAL for each in statements(one).values() for action in texts(each["Action"])}
)
RESOURCES = [
    "*",
    SCOPE.place.cluster("holdfast-dev"),
    SCOPE.place.cluster("other"),
    SCOPE.place.queue(SCOPE.queue),
    SCOPE.place.queue("other"),
    SCOPE.place.role(SCOPE.node_role),
    SCOPE.place.role("admin"),
    "arn:aws:iam::123456789012:instance-profile/one",
    "arn:aws:ec2:eu-west-1::image/ami-1",
    "arn:aws:ssm:eu-west-1::parameter/aws/service/eks",
    "arn:aws:ssm:eu-west-1:123456789012:parameter/secret",
    *(f"{EC2}:{kind}/one" for kind in ("instance", "launch-template", "fleet", "volume", "subnet")),
]
CONTEXT: Mapping[str, list[str]] = {
    "aws:RequestTag/kubernetes.io/cluster/holdfast-dev": ["owned", "shared"],
    "aws:ResourceTag/kubernetes.io/cluster/holdfast-dev": ["owned", "shared"],
    "aws:ResourceTag/kubernetes.io/cluster/other": ["owned"],
    "aws:RequestTag/eks:eks-cluster-name": ["holdfast-dev", "other"],
    "aws:RequestTag/karpenter.sh/nodepool": ["a100"],
    "aws:ResourceTag/karpenter.sh/nodepool": ["a100"],
    "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": ["a100"],
    "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": ["a100"],
    "aws:RequestTag/topology.kubernetes.io/region": ["eu-west-1", "us-east-1"],
    "aws:ResourceTag/topology.kubernetes.io/region": ["eu-west-1", "us-east-1"],
    "aws:RequestedRegion": ["eu-west-1", "us-east-1"],
    "aws:TagKeys": ["Name", "kubernetes.io/cluster/holdfast-dev"],
    "ec2:CreateAction": ["RunInstances", "CreateSnapshot"],
    "iam:PassedToService": ["ec2.amazonaws.com", "lambda.amazonaws.com"],
    "arc-zonal-shift:ResourceIdentifier": [SCOPE.place.cluster("holdfast-dev")],
}
FULL = {key: values[0] for key, values in CONTEXT.items()}


def spoilt(without: set[str], other: set[str]) -> Mapping[str, str]:
    """A context that allows everything, without some keys and with other values for some."""
    return {key: CONTEXT[key][-1] if key in other else FULL[key] for key in FULL if key not in without}


FEW_KEYS = st.sets(st.sampled_from(sorted(CONTEXT)), max_size=3)
REQUESTS = st.builds(
    Request,
    action=st.sampled_from(ACTIONS),
    resource=st.sampled_from(RESOURCES),
    context=st.builds(spoilt, FEW_KEYS, FEW_KEYS),
)


def test_a_context_with_all_tags_allows_every_action_class() -> None:
    through = {
        action
        for action in ACTIONS
        if any(may(action, resource, {**FULL, "aws:TagKeys": "Name"}) for resource in RESOURCES)
    }
    assert through == set(ACTIONS)


@given(request=REQUESTS)
def test_everything_allowed_is_allowed_by_the_template(request: Request) -> None:
    assert not is_allowed(OURS, request) or is_allowed(OFFICIAL, request)


@given(request=REQUESTS)
def test_everything_allowed_when_isolated_is_allowed_otherwise(request: Request) -> None:
    isolated = [controller_policy(policy, ISOLATED) for policy in CONTROLLER_POLICIES]
    assert not is_allowed(isolated, request) or is_allowed(OURS, request)


def test_it_launches_only_machines_with_its_clusters_tags() -> None:
    instance = f"{EC2}:instance/*"
    assert may("ec2:RunInstances", instance, OWN)
    for tag in OWN:
        rest = {key: value for key, value in OWN.items() if key != tag}
        assert not may("ec2:RunInstances", instance, rest), f"a machine without {tag} is never terminated"
    other = {**OWN, "aws:RequestTag/eks:eks-cluster-name": "other"}
    assert not may("ec2:RunInstances", instance, other)


def test_it_terminates_only_machines_of_its_own_cluster() -> None:
    instance = f"{EC2}:instance/i-1"
    assert may("ec2:TerminateInstances", instance, OWNED)
    assert not may("ec2:TerminateInstances", instance)
    others = {
        "aws:ResourceTag/kubernetes.io/cluster/other": "owned",
        "aws:ResourceTag/karpenter.sh/nodepool": "a",
    }
    assert not may("ec2:TerminateInstances", instance, others)
    system = {"aws:ResourceTag/kubernetes.io/cluster/holdfast-dev": "owned"}
    assert not may("ec2:TerminateInstances", instance, system)


def test_it_cannot_tag_other_machines_as_its_own() -> None:
    instance = f"{EC2}:instance/i-1"
    assert may("ec2:CreateTags", instance, {**OWNED, "aws:TagKeys": ["Name", "karpenter.sh/nodeclaim"]})
    assert not may("ec2:CreateTags", instance, OWN), "later ownership tags would give access to any machine"
    ownership = ["kubernetes.io/cluster/holdfast-dev"]
    assert not may("ec2:CreateTags", instance, {**OWNED, "aws:TagKeys": ownership})
    assert not may("ec2:CreateTags", instance, OWNED)


def test_it_passes_only_the_nodes_role_and_reads_only_its_own_queue_region_and_public_parameters() -> None:
    role = SCOPE.place.role(SCOPE.node_role)
    assert may("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})
    assert not may("iam:PassRole", role, {"iam:PassedToService": "lambda.amazonaws.com"})
    admin = SCOPE.place.role("admin")
    assert not may("iam:PassRole", admin, {"iam:PassedToService": "ec2.amazonaws.com"})
    assert may("sqs:ReceiveMessage", SCOPE.place.queue(SCOPE.queue))
    assert not may("sqs:ReceiveMessage", SCOPE.place.queue("orders")), "other queues' messages would be lost"
    assert not may("sqs:SendMessage", SCOPE.place.queue(SCOPE.queue))
    assert may("ssm:GetParameter", "arn:aws:ssm:eu-west-1::parameter/aws/service/eks/optimized-ami")
    assert not may("ssm:GetParameter", "arn:aws:ssm:eu-west-1:123456789012:parameter/database/password")
    assert may("ec2:DescribeInstances", context={"aws:RequestedRegion": "eu-west-1"})
    assert not may("ec2:DescribeInstances", context={"aws:RequestedRegion": "us-east-1"})


def test_isolated_it_has_fewer_permissions_that_fit_in_one_role() -> None:
    isolated = "".join(controller_policy(policy, ISOLATED) for policy in CONTROLLER_POLICIES)
    assert "InstanceProfile" not in isolated
    assert "pricing:" not in isolated
    assert "iam:PassRole" in isolated
    longest = replace(SCOPE, cluster_name="c" * 100, node_role="n" * 64, queue="q" * 80)
    size = sum(len("".join(controller_policy(policy, longest).split())) for policy in CONTROLLER_POLICIES)
    assert size <= 10_240


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
