"""Karpenter on EKS, with everything it needs in AWS."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.karpenter.eks.component import EksKarpenter, EksKarpenterArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.iam_evaluation import Request, is_allowed
from tests.support.inputs import mapping, objects, text, value
from tests.support.json_objects import obj
from tests.support.official_karpenter import PLACE, official

if TYPE_CHECKING:
    from holdfast.scheduling.json import JsonValue

from pathlib import Path
from typing import cast

import yaml

import components
from holdfast.components.karpenter.eks.interruption_queue import (
    INTERRUPTION_EVENTS,
    event_pattern,
    queue_policy,
)
from holdfast.infra import versions
from tests.support.iam_evaluation import is_denied

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
    return record(lambda: EksKarpenter("karpenter", args), preview=preview)


def controller(recording: Recording) -> Recorded:
    return recording.one(":Release", "karpenter-operator-controller")


def setting(name: str, args: EksKarpenterArgs = ARGS) -> JsonValue:
    return value(controller(recorded(args)), "values", "settings", name)


def test_crds_come_first_from_a_chart_of_their_own() -> None:
    recording = recorded()
    crds = recording.one(":Release", "karpenter-operator-crds")
    assert text(crds, "chart").endswith("components/charts/karpenter-crds"), (
        "AWS's five, not the simulated ones"
    )
    assert crds.name in controller(recording).depends_on, "the controller ends where they are missing"
    assert value(controller(recording), "skipCrds") is True, "helm would never upgrade the chart's own"


def test_chart_image_and_digest_are_those_of_one_release() -> None:
    release = controller(recorded())
    assert text(release, "chart") == "oci://public.ecr.aws/karpenter/karpenter", (
        "upstream's, where nothing is said"
    )
    assert text(release, "version") == "1.14.1", "the chart's version is Karpenter's"
    assert value(release, "values", "controller", "image") == {
        "repository": "public.ecr.aws/karpenter/controller",
        "tag": "1.14.1",
        "digest": "sha256:7231",
    }, "a digest of the chart's own would win over the tag"


def test_an_unknown_digest_is_empty_and_not_the_charts_own() -> None:
    release = controller(recorded(replace(ARGS, image_digest="")))
    assert value(release, "values", "controller", "image", "digest") == "", (
        "left out, the chart's older one is taken"
    )


def test_charts_and_images_come_from_a_mirror_when_there_is_one() -> None:
    release = controller(recorded(replace(ARGS, charts="oci://mirror/charts", images="mirror:5000/copies")))
    assert text(release, "chart") == "oci://mirror/charts/karpenter", "an isolated cluster reaches no other"
    assert text(release, "values", "controller", "image", "repository") == (
        "mirror:5000/copies/karpenter/controller"
    ), "the mirror takes the registry's place"


def test_two_controllers_are_on_the_system_nodes() -> None:
    values = mapping(controller(recorded()), "values")
    assert values["replicas"] == 2, "one goes on when the other's zone is lost"
    assert values["nodeSelector"] == {"holdfast.dev/system": "true"}, "not on nodes which it buys itself"
    assert objects(values, "tolerations") == [{"key": "CriticalAddonsOnly", "operator": "Exists"}], (
        "tainted ones"
    )
    assert not {"affinity", "topologySpreadConstraints"} & set(values), (
        "the chart's own spread them over zones"
    )


def test_it_is_told_its_cluster_and_its_queue() -> None:
    queue = recorded().one(":Queue")
    assert setting("clusterName") == "holdfast-dev", "it ends at its start without"
    assert setting("interruptionQueue") == f"{queue.name}-0a1b2c3", "it hears of no interruption without"
    assert setting("eksControlPlane") is True, "it asks EKS for the version"


def test_the_plan_shows_the_queue_and_every_policy_before_there_is_anything() -> None:
    recording = recorded(preview=True)
    assert text(controller(recording), "values", "settings", "interruptionQueue"), (
        "names are known in a preview"
    )
    for policy in recording.of(":RolePolicy"):
        assert "arn:aws:" in text(policy, "policy"), (
            f"{policy.name} can be read, and checked, before it is given"
        )


def test_the_controllers_memory_and_cpu_are_known() -> None:
    resources = mapping(controller(recorded()), "values", "controller", "resources")
    assert text(resources, "limits", "memory"), "the chart passes MEMORY_LIMIT on from it"
    assert text(resources, "requests", "cpu"), "the chart passes CPU_REQUESTS on from it"
    assert value(resources, "limits", "cpu") is None, (
        "a throttled controller is late for a notice of 2 minutes"
    )


def test_its_identity_is_bound_before_its_pods_are_made() -> None:
    recording = recorded()
    association = recording.one(":PodIdentityAssociation")
    policies = {policy.name for policy in recording.of(":RolePolicy")}
    assert len(policies) == 6, "the six"
    assert policies <= association.depends_on, (
        "bound to a role that may do nothing yet, it would end at its start"
    )
    before = recording.everything_before(controller(recording))
    assert association.name in before, "a pod made before its association never gets the identity"


def test_the_identity_is_that_of_its_own_service_account() -> None:
    recording = recorded()
    association = recording.one(":PodIdentityAssociation")
    bound = {key: association.inputs[key] for key in ("clusterName", "namespace", "serviceAccount")}
    assert bound == {
        "clusterName": "holdfast-dev",
        "namespace": "karpenter",
        "serviceAccount": "karpenter",
    }, "the association is by name"
    release = controller(recording)
    assert text(release, "namespace") == bound["namespace"], "where the release is"
    assert text(release, "values", "serviceAccount", "name") == bound["serviceAccount"], (
        "and its pods' account"
    )


def test_only_its_own_pods_may_assume_the_role() -> None:
    trust = text(recorded().one(":Role", "karpenter-controller-role"), "assumeRolePolicy")
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


def test_it_may_pass_on_the_very_role_that_nodes_get() -> None:
    recording = recorded()
    policy = text(recording.one(":RolePolicy", "karpenter-controller-iam-integration"), "policy")
    role = PLACE.role(f"{recording.one(':Role', 'karpenter-node-role').name}-0a1b2c3")
    request = Request(
        action="iam:PassRole", resource=role, context={"iam:PassedToService": "ec2.amazonaws.com"}
    )
    assert is_allowed([policy], request), "no node would start"


def test_nodes_have_a_role_of_their_own_with_no_more_than_the_templates_policies() -> None:
    recording = recorded()
    attached = {text(one, "policyArn") for one in recording.of(":RolePolicyAttachment")}
    official_arns = official("node-role")["ManagedPolicyArns"]
    assert attached < set(official_arns if isinstance(official_arns, list) else []), (
        "nothing upstream does without"
    )
    assert {arn.rpartition("/")[2] for arn in attached} == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryPullOnly",
    }, "to join, to give pods addresses, to pull; no shell, which would read every parameter of the account"
    trust = text(recording.one(":Role", "karpenter-node-role"), "assumeRolePolicy")
    assert is_allowed([trust], Request(action="sts:AssumeRole", service="ec2.amazonaws.com")), (
        "machines are EC2's"
    )


def test_the_queue_is_encrypted_and_forgets_what_is_too_late() -> None:
    recording = recorded()
    queue = recording.one(":Queue")
    theirs = official("queue")
    assert value(queue, "sqsManagedSseEnabled") is True, "encrypted at rest"
    assert value(queue, "messageRetentionSeconds") == theirs["MessageRetentionPeriod"], "as upstream has it"
    assert "DenyWithoutTLS" in text(recording.one(":QueuePolicy"), "policy"), "encrypted on the way"


def test_each_rule_has_the_queue_as_its_one_target_once_it_may_fill_it() -> None:
    recording = recorded()
    targets = {text(target, "rule"): target for target in recording.of(":EventTarget")}
    assert set(targets) == {f"{rule.name}-0a1b2c3" for rule in recording.of(":EventRule")}, "each of the five"
    for target in targets.values():
        assert text(target, "arn").endswith(":karpenter-interruption-queue"), "to the queue"
        assert "karpenter-interruption-policy" in target.depends_on, "an event that is refused is lost"
        assert text(target, "targetId"), "made up anew after a crash, it would be a second one"


def test_the_queue_takes_events_of_its_five_rules() -> None:
    recording = recorded()
    policy = obj(json.loads(text(recording.one(":QueuePolicy"), "policy")))
    allowed = objects(policy, "Statement")[0]
    rules = {PLACE.event_rule(f"{rule.name}-0a1b2c3") for rule in recording.of(":EventRule")}
    sources = value(allowed, "Condition", "ArnEquals", "aws:SourceArn")
    assert set(sources if isinstance(sources, list) else []) == rules, "and of no others"


def test_its_requests_are_served_as_those_of_the_clusters_own_controllers() -> None:
    recording = recorded()
    levels = {
        text(schema, "metadata", "name"): text(schema, "spec", "priorityLevelConfiguration", "name")
        for schema in recording.of(":FlowSchema")
    }
    assert levels == {
        "karpenter-leader-election": "leader-election",
        "karpenter-workload": "workload-high",
    }, "outside kube-system it would wait behind every job"
    for schema in recording.of(":FlowSchema"):
        (rule,) = objects(schema, "spec", "rules")
        (subject,) = objects(rule, "subjects")
        account = {"name": "karpenter", "namespace": "karpenter"}
        assert subject["serviceAccount"] == account, "the controller's own account"
        assert schema.name in recording.everything_before(controller(recording)), "from its first request on"


def test_everything_in_aws_outlives_the_controller() -> None:
    recording = recorded()
    before = recording.everything_before(controller(recording))
    missing = {one.name for one in recording if one.type.startswith("aws:")} - before
    assert not missing, f"on its way out the controller still ends machines and reads its queue: {missing}"


@pytest.mark.parametrize("isolated", [False, True])
def test_an_isolated_controller_gets_an_instance_profile_made_for_it(isolated: bool) -> None:
    recording = recorded(replace(ARGS, isolated=isolated))
    assert len(recording.of(":InstanceProfile")) == int(isolated), (
        "elsewhere Karpenter makes and ends its own"
    )
    assert value(controller(recording), "values", "settings", "isolatedVPC") is isolated, "it is told so"


def test_an_isolated_controllers_profile_is_that_of_the_nodes_role() -> None:
    profile = recorded(replace(ARGS, isolated=True)).one(":InstanceProfile")
    assert text(profile, "role") == "karpenter-node-role-0a1b2c3", "the role that may be passed"


def test_what_pools_need_is_handed_out() -> None:
    made: list[EksKarpenter] = []
    record(lambda: made.append(EksKarpenter("karpenter", ARGS)))
    assert made[0].instance_profile is None, "no profile where Karpenter makes its own"
    assert {"node_role_name", "node_role_arn", "queue_name"} <= set(vars(made[0])), (
        "for node classes and access"
    )


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


def test_every_event_of_the_official_template_has_its_rule() -> None:
    ours = [json.loads(event_pattern(event)) for event in INTERRUPTION_EVENTS]
    theirs = list(official("event-patterns").values())
    assert sorted(map(str, ours)) == sorted(map(str, theirs)), (
        "spot, rebalance, state, health and reservations"
    )


@pytest.mark.parametrize("rule", RULES)
def test_its_own_rules_fill_the_queue(rule: str) -> None:
    assert is_allowed([POLICY], sent(rule)), "a notice that is refused is lost without a word"


def test_no_other_rule_and_no_other_service_fills_the_queue() -> None:
    foreign = "arn:aws:events:eu-west-1:999999999999:rule/spot"
    assert not is_allowed([POLICY], sent(foreign)), "EventBridge sends for every account"
    assert not is_allowed([POLICY], sent(RULES[0], service="sns.amazonaws.com")), (
        "a forged notice drains a node"
    )


def test_nobody_reaches_the_queue_without_tls() -> None:
    assert is_denied([POLICY], sent(RULES[0], tls="false")), "not even what else may"
    reading = Request(action="sqs:ReceiveMessage", resource=QUEUE, context={"aws:SecureTransport": "false"})
    assert is_denied([POLICY], reading), "nor the controller itself"
    assert not is_denied([POLICY], sent(RULES[0])), "with TLS the denial is silent"


RELEASE = official("release")
CHART = Path(components.__file__).parent / "charts" / "karpenter-crds" / "Chart.yaml"


def test_the_fixtures_are_those_of_the_version_that_is_pinned() -> None:
    assert RELEASE["version"] == versions.KARPENTER, (
        f"Karpenter is pinned at {versions.KARPENTER}: take its template, its tag and its digest into tests/fixtures, "
        "and compare what its controller may do"
    )


def test_the_crds_are_of_the_version_that_is_pinned() -> None:
    chart = obj(cast("object", yaml.safe_load(CHART.read_text("utf-8"))))
    assert chart["appVersion"] == versions.KARPENTER, (
        "a controller does not start on another's CRDs: `make crds`"
    )


def test_the_digest_is_that_of_the_image_with_the_pinned_tag() -> None:
    assert RELEASE["digest"] == versions.KARPENTER_IMAGE_DIGEST, (
        f"the digest wins over the tag: another Karpenter than {versions.KARPENTER} would run"
    )
