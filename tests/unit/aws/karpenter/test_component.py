"""Karpenter on EKS with its resources in AWS."""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import yaml

from pulumi_holdfast import kubernetes as components
from pulumi_holdfast.aws.karpenter.component import (
    INTERRUPTION_EVENTS,
    EksKarpenter,
    EksKarpenterArgs,
    event_pattern,
    queue_policy,
)
from pulumi_holdfast.config import versions
from tests.support.builders.official_karpenter import PLACE, official
from tests.support.fakes.iam_evaluation import Request, is_allowed, is_denied
from tests.support.fakes.pulumi_engine import Recorded, Recording, record, recorded_once
from tests.support.inputs import mapping, objects, text, value
from tests.support.json_objects import obj

ARGS = EksKarpenterArgs(
    cluster_name="holdfast-dev",
    account=PLACE.account,
    region=PLACE.region,
    partition=PLACE.partition,
    charts=None,
    images=None,
    version="1.14.1",
    image_digest="sha256:7231",
)


def recorded(args: EksKarpenterArgs = ARGS, *, preview: bool = False) -> Recording:
    return recorded_once(
        (repr(args), preview), lambda: record(lambda: EksKarpenter("karpenter", args), preview=preview)
    )


def controller(recording: Recording) -> Recorded:
    return recording.one(":Release", "karpenter-operator-controller")


def test_crds_come_first_and_the_controller_has_chart_image_and_digest_of_one_release() -> None:
    recording = recorded()
    release = controller(recording)
    crds = recording.one(":Release", "karpenter-operator-crds")
    assert text(crds, "chart").endswith("components/pulumi_holdfast/kubernetes/charts/karpenter-crds")
    assert crds.name in release.depends_on
    assert value(release, "skipCrds") is True, "Helm would never upgrade the chart's own"
    assert text(release, "chart") == "oci://public.ecr.aws/karpenter/karpenter"
    assert text(release, "version") == "1.14.1"
    assert value(release, "values", "controller", "image") == {
        "repository": "public.ecr.aws/karpenter/controller",
        "tag": "1.14.1",
        "digest": "sha256:7231",
    }
    unknown = controller(recorded(replace(ARGS, image_digest="")))
    assert value(unknown, "values", "controller", "image", "digest") == "", "the chart's would be older"


def test_charts_and_images_come_from_the_mirror_if_one_is_set() -> None:
    release = controller(recorded(replace(ARGS, charts="oci://mirror/charts", images="mirror:5000/copies")))
    assert text(release, "chart") == "oci://mirror/charts/karpenter"
    assert text(release, "values", "controller", "image", "repository") == (
        "mirror:5000/copies/karpenter/controller"
    )


def test_two_controllers_with_their_cluster_and_queue_run_on_the_system_nodes() -> None:
    recording = recorded()
    values = mapping(controller(recording), "values")
    assert values["replicas"] == 2
    assert values["nodeSelector"] == {"holdfast.dev/system": "true"}
    assert objects(values, "tolerations") == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert not {"affinity", "topologySpreadConstraints"} & set(values)
    resources = mapping(controller(recording), "values", "controller", "resources")
    assert text(resources, "limits", "memory")
    assert text(resources, "requests", "cpu")
    assert value(resources, "limits", "cpu") is None
    queue = recording.one(":Queue")
    assert value(values, "settings", "clusterName") == "holdfast-dev"
    assert value(values, "settings", "interruptionQueue") == f"{queue.name}-0a1b2c3"
    assert value(values, "settings", "eksControlPlane") is True


def test_the_queue_and_all_policies_are_known_on_preview() -> None:
    recording = recorded(preview=True)
    assert text(controller(recording), "values", "settings", "interruptionQueue")
    for policy in recording.of(":RolePolicy"):
        assert "arn:aws:" in text(policy, "policy"), f"{policy.name} can be checked on preview"


def test_the_controllers_service_account_has_its_identity_before_the_release() -> None:
    recording = recorded()
    release = controller(recording)
    association = recording.one(":PodIdentityAssociation")
    policies = {policy.name for policy in recording.of(":RolePolicy")}
    assert len(policies) == 6
    assert policies <= association.depends_on
    before = recording.everything_before(release)
    assert association.name in before
    bound = [association.inputs[key] for key in ("clusterName", "namespace", "serviceAccount")]
    assert bound == ["holdfast-dev", "karpenter", "karpenter"]
    assert text(release, "namespace") == "karpenter"
    assert text(release, "values", "serviceAccount", "name") == "karpenter"


def test_the_controllers_pods_may_assume_its_role_and_pass_the_nodes_role() -> None:
    recording = recorded()
    trust = text(recording.one(":Role", "karpenter-controller-role"), "assumeRolePolicy")
    tags = {
        "aws:RequestTag/eks-cluster-name": "holdfast-dev",
        "aws:RequestTag/kubernetes-namespace": "karpenter",
        "aws:RequestTag/kubernetes-service-account": "karpenter",
    }
    for action in ("sts:AssumeRole", "sts:TagSession"):
        request = Request(action=action, service="pods.eks.amazonaws.com", context=tags)
        assert is_allowed([trust], request), f"Pod Identity needs {action}"
        stranger = replace(request, context={**tags, "aws:RequestTag/kubernetes-namespace": "vision"})
        assert not is_allowed([trust], stranger), "a job could start machines"
    policy = text(recording.one(":RolePolicy", "karpenter-controller-iam-integration"), "policy")
    role = PLACE.role(f"{recording.one(':Role', 'karpenter-node-role').name}-0a1b2c3")
    request = Request(
        action="iam:PassRole", resource=role, context={"iam:PassedToService": "ec2.amazonaws.com"}
    )
    assert is_allowed([policy], request), "otherwise no node would start"


def test_nodes_have_their_own_role_with_three_managed_policies() -> None:
    recording = recorded()
    attached = {text(one, "policyArn") for one in recording.of(":RolePolicyAttachment")}
    official_arns = official("node-role")["ManagedPolicyArns"]
    assert attached < set(official_arns if isinstance(official_arns, list) else [])
    assert {arn.rpartition("/")[2] for arn in attached} == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryPullOnly",
    }
    trust = text(recording.one(":Role", "karpenter-node-role"), "assumeRolePolicy")
    assert is_allowed([trust], Request(action="sts:AssumeRole", service="ec2.amazonaws.com"))


def test_the_queue_is_encrypted_drops_late_messages_and_gets_the_events_of_its_five_rules() -> None:
    recording = recorded()
    queue, theirs = recording.one(":Queue"), official("queue")
    assert value(queue, "sqsManagedSseEnabled") is True
    assert value(queue, "messageRetentionSeconds") == theirs["MessageRetentionPeriod"]
    assert "DenyWithoutTLS" in text(recording.one(":QueuePolicy"), "policy")
    targets = {text(target, "rule"): target for target in recording.of(":EventTarget")}
    assert set(targets) == {f"{rule.name}-0a1b2c3" for rule in recording.of(":EventRule")}
    for target in targets.values():
        assert text(target, "arn").endswith(":karpenter-interruption-queue")
        assert "karpenter-interruption-policy" in target.depends_on
        assert text(target, "targetId"), "a generated ID would add a second target after an interrupted run"
    policy = obj(json.loads(text(recording.one(":QueuePolicy"), "policy")))
    allowed = objects(policy, "Statement")[0]
    rules = {PLACE.event_rule(f"{rule.name}-0a1b2c3") for rule in recording.of(":EventRule")}
    sources = value(allowed, "Condition", "ArnEquals", "aws:SourceArn")
    assert set(sources if isinstance(sources, list) else []) == rules


def test_all_aws_resources_and_flow_schemas_come_before_the_controller() -> None:
    recording = recorded()
    levels = {
        text(schema, "metadata", "name"): text(schema, "spec", "priorityLevelConfiguration", "name")
        for schema in recording.of(":FlowSchema")
    }
    assert levels == {"karpenter-leader-election": "leader-election", "karpenter-workload": "workload-high"}
    for schema in recording.of(":FlowSchema"):
        (rule,) = objects(schema, "spec", "rules")
        (subject,) = objects(rule, "subjects")
        account = {"name": "karpenter", "namespace": "karpenter"}
        assert subject["serviceAccount"] == account
        assert schema.name in recording.everything_before(controller(recording))
    before = recording.everything_before(controller(recording))
    missing = {one.name for one in recording if one.type.startswith("aws:")} - before
    assert not missing


@pytest.mark.parametrize("isolated", [False, True])
def test_an_isolated_controller_gets_an_instance_profile_with_the_nodes_role(isolated: bool) -> None:
    recording = recorded(replace(ARGS, isolated=isolated))
    assert len(recording.of(":InstanceProfile")) == int(isolated)
    assert value(controller(recording), "values", "settings", "isolatedVPC") is isolated
    made: list[EksKarpenter] = []
    record(lambda: made.append(EksKarpenter("karpenter", replace(ARGS, isolated=isolated))))
    assert (made[0].instance_profile is not None) is isolated
    for profile in recording.of(":InstanceProfile"):
        assert text(profile, "role") == "karpenter-node-role-0a1b2c3"


QUEUE = PLACE.queue("interruptions")
RULES = [PLACE.event_rule("spot"), PLACE.event_rule("health")]
POLICY = queue_policy(QUEUE, RULES)


def sent(source: str, *, service: str = "events.amazonaws.com", tls: str = "true") -> Request:
    return Request(
        action="sqs:SendMessage",
        resource=QUEUE,
        service=service,
        context={"aws:SourceArn": source, "aws:SecureTransport": tls},
    )


@pytest.mark.parametrize("rule", RULES)
def test_the_queue_accepts_its_own_rules_over_tls_only(rule: str) -> None:
    ours = [json.loads(event_pattern(event)) for event in INTERRUPTION_EVENTS]
    theirs = list(official("event-patterns").values())
    assert sorted(map(str, ours)) == sorted(map(str, theirs))
    assert is_allowed([POLICY], sent(rule))
    foreign = "arn:aws:events:eu-west-1:999999999999:rule/spot"
    assert not is_allowed([POLICY], sent(foreign))
    assert not is_allowed([POLICY], sent(RULES[0], service="sns.amazonaws.com"))
    assert is_denied([POLICY], sent(RULES[0], tls="false"))
    reading = Request(action="sqs:ReceiveMessage", resource=QUEUE, context={"aws:SecureTransport": "false"})
    assert is_denied([POLICY], reading)
    assert not is_denied([POLICY], sent(RULES[0]))


RELEASE = official("release")
CHART = Path(components.__file__).parent / "charts" / "karpenter-crds" / "Chart.yaml"


def test_the_fixtures_the_crds_and_the_digest_have_the_pinned_version() -> None:
    assert RELEASE["version"] == versions.KARPENTER
    chart = obj(cast("object", yaml.safe_load(CHART.read_text("utf-8"))))
    assert chart["appVersion"] == versions.KARPENTER
    assert RELEASE["digest"] == versions.KARPENTER_IMAGE_DIGEST
