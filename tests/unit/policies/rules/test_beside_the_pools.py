"""What other resources of a program do to its jobs, although pools and ladder are sound: programs of a blind trial."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.program.pools.declared import declared_pools
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import findings, stopping
from tests.support.builders.program_jobs import (
    RAY_JOB,
    TIERS,
    cpu_pool,
    declared,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import ladder, namespace, resource
from tests.support.builders.training_jobs import (
    expression,
    pod_template,
    rayjob,
    required_affinity,
    worker_group,
)


def made(type_token: str, name: str, **props: Value) -> StackResource:
    return resource(type_token, name, {"metadata": {"name": name}, **props})


def admission(expression: str) -> StackResource:
    """A MutatingAdmissionPolicy for pods."""
    spec: Value = {
        "matchConstraints": {"resourceRules": [{"resources": ["pods"]}]},
        "mutations": [{"applyConfiguration": {"expression": expression}}],
    }
    return made("kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy", "cost", spec=spec)


ON_SPOT: Value = {"nodeSelector": {CAPACITY_TYPE: "spot"}}


def kyverno(action: str, *namespaces: str, kind: str = "Pod", pattern: Value = ON_SPOT) -> StackResource:
    """A policy of Kyverno by which pods of these namespaces, or of all, have to be as a pattern is: on spot."""
    rule: Value = {
        "match": {"any": [{"resources": {"kinds": [kind], **({"namespaces": [*namespaces]} if namespaces else {})}}]},
        "validate": {"failureAction": action, "pattern": {"spec": pattern}},
    }  # fmt: skip
    return made("kubernetes:kyverno.io/v1:ClusterPolicy", "spot", spec={"rules": [rule]})


def limiting(memory: str) -> Value:
    return {"containers": [{"resources": {"limits": {"memory": memory}}}]}


def validation(*covered: str, expression: str = "'spot' in object.spec.nodeSelector") -> StackResource:
    spec: Value = {
        "matchConstraints": {"resourceRules": [{"resources": [*covered]}]},
        "validations": [{"expression": expression}],
    }
    return made("kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy", "cost", spec=spec)


def webhook(name: str, *covered: str, **fields: Value) -> StackResource:
    """A webhook for these resources."""
    hook: Value = {
        "name": "cost.lab.io",
        "rules": [{"operations": ["CREATE"], "resources": [*covered]}],
        **fields,
    }
    kind = "kubernetes:admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration"
    return made(kind, name, webhooks=[hook])


def bound(*actions: str) -> StackResource:
    """The binding of the policy `cost`, with these actions."""
    spec: Value = {"policyName": "cost", "validationActions": [*actions]}
    return made(
        "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding", "cost", spec=spec
    )


def in_cel(kind: str, *actions: str) -> StackResource:
    """A policy of Kyverno in CEL."""
    spec = {**cast("dict[str, Value]", validation("pods").props["spec"]), "validationActions": [*actions]}
    return made(f"kubernetes:policies.kyverno.io/v1alpha1:{kind}", "cost", spec=spec)


def constraint(kind: str = "Pod", **spec: Value) -> StackResource:
    """A constraint of Gatekeeper on a kind of object."""
    props: Value = {"match": {"kinds": [{"apiGroups": [""], "kinds": [kind]}]}, **spec}
    return made("kubernetes:constraints.gatekeeper.sh/v1beta1:CostCenter", "cost", spec=props)


def template_of_constraint(rego: str) -> StackResource:
    spec: Value = {"crd": {"spec": {"names": {"kind": "CostCenter"}}}, "targets": [{"rego": rego}]}
    return made("kubernetes:templates.gatekeeper.sh/v1:ConstraintTemplate", "cost", spec=spec)


def limited(kind: str, namespace: str, **spec: Value) -> StackResource:
    """A limit of a namespace."""
    metadata: Value = {"name": "limit", "namespace": namespace}
    return resource(f"kubernetes:core/v1:{kind}", f"{kind}-{namespace}", {"metadata": metadata, "spec": spec})


def vertical(kind: str) -> StackResource:
    spec: Value = {"targetRef": {"kind": kind, "name": "train"}}
    props: dict[str, Value] = {"metadata": {"name": "sizes", "namespace": "vision"}, "spec": spec}
    return resource("kubernetes:autoscaling.k8s.io/v1:VerticalPodAutoscaler", "sizes", props)


def on_ec2(spec: Mapping[str, Value], *, least: float = 1.0) -> list[StackResource]:
    """The pools and their class on EC2, on machines with 4 CPUs and 16 GiB; `least` is how many types a plan has."""
    node_class = made("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "default", spec=spec)
    reference: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2c"]}
    types = {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": ["m7i.xlarge"],
        "minValues": least,
    }
    pools = [
        cpu_pool(name, kind, nodeClassRef=reference, requirements=[{"key": CAPACITY_TYPE, "operator": "In", "values": [kind]}, types, zone])
        for name, kind in (("cpu-spot", "spot"), ("cpu", "on-demand"))
    ]  # fmt: skip
    return [namespace(), ladder(TIERS), *pools, node_class]


def custom(kind: str, name: str, where: str = "vision") -> StackResource:
    """A custom resource in a namespace, or in none."""
    metadata: Value = {"name": name, **({"namespace": where} if where else {})}
    return resource(f"kubernetes:{kind}", name, {"metadata": metadata, "spec": {}})


PORT: Json = {"ports": [{"containerPort": 9400, "hostPort": 9400}]}
ON_PORT: Json = {"containers": [{**requesting(cpu="1"), **PORT}]}
CLASSED: Json = {"runtimeClassName": "fast"}
RUNTIME = "kubernetes:node.k8s.io/v1:RuntimeClass"
BRIEFLY: Json = {"tolerations": [{"key": "emergency", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600}]}  # fmt: skip
LOST: Json = {"tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]}  # fmt: skip
DAEMON: Value = {"template": {"spec": {"containers": [{"name": "exporter", **PORT}]}}}
SUBNET = resource(
    "aws:ec2/subnet:Subnet", "a", {"availabilityZone": "us-west-2a", "tags": {"discovery": "lab"}}
)
CHART = resource("kubernetes:helm.sh/v3:Release", "karpenter", {"chart": "oci://public.ecr.aws/karpenter/karpenter", "values": {"settings": {"vmMemoryOverheadPercent": 0.6}}})  # fmt: skip

OPTING_IN: Value = {"matchLabels": {"cost": "on"}}
ALL_BUT: Value = {"matchExpressions": [{"key": "exempt", "operator": "DoesNotExist"}]}
RATIO: Value = [{"type": "Container", "maxLimitRequestRatio": {"cpu": "1"}}]
CLEANUP = made("kubernetes:kyverno.io/v2:ClusterCleanupPolicy", "night", spec={"match": {"any": [{"resources": {"kinds": ["Job"]}}]}})  # fmt: skip
FREEZE = made("kubernetes:kyverno.io/v1:ClusterPolicy", "freeze", spec={"rules": [{"match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"failureAction": "Enforce", "deny": {}}}]})  # fmt: skip
GENERATED = made("kubernetes:kyverno.io/v1:ClusterPolicy", "quota", spec={"rules": [{"generate": {"kind": "ResourceQuota"}}]})  # fmt: skip

BESIDE: Sequence[tuple[str, Sequence[StackResource], Json, Word, str]] = (
    ("a Fargate profile of the namespace", [made("aws:eks/fargateProfile:FargateProfile", "all", selectors=[{"namespace": "vis*"}])], {}, Word.NOT_JUDGED, "Fargate profile 'all'"),
    ("a Fargate profile of another namespace", [made("aws:eks/fargateProfile:FargateProfile", "all", selectors=[{"namespace": "web"}])], {}, Word.PROVED, ""),
    ("admission that selects nodes", [admission("Object{spec: Object.spec{nodeSelector: {'team': 'a'}}}")], {}, Word.NOT_JUDGED, "MutatingAdmissionPolicy 'cost'"),
    ("admission that adds a label", [admission("Object{metadata: Object.metadata{labels: {'team': 'a'}}}")], {}, Word.PROVED, ""),
    ("admission that rejects by selectors", [validation("pods")], {}, Word.NOT_JUDGED, "ValidatingAdmissionPolicy 'cost'"),
    ("admission of other objects", [validation("services")], {}, Word.PROVED, ""),
    ("a policy of Kyverno", [kyverno("Enforce")], {}, Word.NOT_JUDGED, "ClusterPolicy 'spot' of Kyverno"),
    ("a policy of Kyverno for the namespace", [kyverno("enforce", "web", "vis*")], {}, Word.NOT_JUDGED, "ClusterPolicy 'spot' of Kyverno"),
    ("a policy of Kyverno for another namespace", [kyverno("Enforce", "web")], {}, Word.PROVED, ""),
    ("a policy of Kyverno that audits", [kyverno("Audit")], {}, Word.PROVED, ""),
    ("a policy of Kyverno on machines", [kyverno("Enforce", kind="karpenter.sh/*/NodeClaim")], {}, Word.NOT_JUDGED, "lets the machines of its pods be created"),
    ("a policy of Kyverno that bounds requests", [kyverno("Enforce", pattern=limiting("<=8Gi"))], {}, Word.NOT_JUDGED, "ClusterPolicy 'spot' of Kyverno"),
    ("a policy of Kyverno that asks for requests", [kyverno("Enforce", pattern=limiting("?*"))], {}, Word.PROVED, ""),
    ("admission of machines", [validation("nodeclaims", expression="object.spec.requirements.exists(r, 'spot' in r.values)")], {}, Word.NOT_JUDGED, "lets the machines of its pods be created"),
    ("admission of machines that warns", [validation("nodeclaims"), bound("Warn")], {}, Word.PROVED, ""),
    ("admission that bounds requests", [validation("pods", expression="object.spec.containers.all(c, quantity(c.resources.limits.cpu).isLessThan(quantity('2')))")], {}, Word.NOT_JUDGED, "lets its pods request"),
    ("admission that rejects everything", [validation("pods", expression="false")], {}, Word.NOT_JUDGED, "rejects all that it matches"),
    ("admission that rejects nothing", [validation("pods", expression="true")], {}, Word.PROVED, ""),
    ("a policy of Kyverno that rejects everything", [FREEZE], {}, Word.NOT_JUDGED, "rejects all that it matches"),
    ("admission that asks for requests", [validation("pods", expression="object.spec.containers.all(c, has(c.resources.requests))")], {}, Word.PROVED, ""),
    ("a webhook on pods", [webhook("cost", "pods")], {}, Word.NOT_JUDGED, "ValidatingWebhookConfiguration 'cost' lets its pods run"),
    ("a webhook on machines", [webhook("cost", "nodeclaims")], {}, Word.NOT_JUDGED, "lets the machines of its pods be created"),
    ("a webhook on ingresses", [webhook("cost", "ingresses")], {}, Word.PROVED, ""),
    ("a webhook for other namespaces", [webhook("cost", "*", namespaceSelector=OPTING_IN)], {}, Word.PROVED, ""),
    ("a webhook for all namespaces but some", [webhook("cost", "*", namespaceSelector=ALL_BUT)], {}, Word.NOT_JUDGED, "'cost'"),
    ("a webhook of JobSet", [webhook("jobset-mutating-webhook-configuration", "pods")], {}, Word.PROVED, ""),
    ("admission that warns", [validation("pods"), bound("Audit", "Warn")], {}, Word.PROVED, ""),
    ("admission that denies", [validation("pods"), bound("Deny")], {}, Word.NOT_JUDGED, "'cost'"),
    ("admission that rejects pods on a pool", [validation("pods", expression="object.spec.nodeSelector['holdfast.dev/pool'] != 'cpu'")], {}, Word.NOT_JUDGED, "'cost' places its pods"),
    ("admission that freezes jobs", [validation("jobsets", expression="object.spec == oldObject.spec")], {}, Word.NOT_JUDGED, "lets the ladder change its jobs"),
    ("admission that freezes Services", [validation("services", expression="object.spec == oldObject.spec")], {}, Word.PROVED, ""),
    ("a policy of Kyverno that freezes jobs", [kyverno("Enforce", kind="JobSet", pattern="{{request.oldObject.spec}}")], {}, Word.NOT_JUDGED, "lets the ladder change its jobs"),
    ("a policy of Kyverno in CEL", [in_cel("ValidatingPolicy", "Deny")], {}, Word.NOT_JUDGED, "ValidatingPolicy 'cost'"),
    ("a policy of Kyverno in CEL that audits", [in_cel("ValidatingPolicy", "Audit")], {}, Word.PROVED, ""),
    ("a policy of Kyverno that deletes pods", [in_cel("DeletingPolicy", "Deny")], {}, Word.NOT_JUDGED, "deletes its jobs"),
    ("a cleanup policy of Kyverno", [CLEANUP], {}, Word.NOT_JUDGED, "deletes its jobs"),
    ("a quota that Kyverno makes", [GENERATED], {}, Word.NOT_JUDGED, "lets its pods request"),
    ("a constraint of Gatekeeper", [constraint()], {}, Word.NOT_JUDGED, "CostCenter 'cost' of Gatekeeper"),
    ("a constraint on ingresses", [constraint("Ingress")], {}, Word.PROVED, ""),
    ("a constraint that warns", [constraint(enforcementAction="warn")], {}, Word.PROVED, ""),
    ("a constraint on selectors", [constraint(), template_of_constraint("input.review.object.spec.nodeSelector")], {}, Word.NOT_JUDGED, "'cost'"),
    ("a constraint on machines", [constraint("NodeClaim")], {}, Word.NOT_JUDGED, "lets the machines of its pods be created"),
    ("a constraint on requests", [constraint(), template_of_constraint("input.review.object.spec.containers[_].resources.limits.cpu > max")], {}, Word.NOT_JUDGED, "'cost'"),
    ("a constraint on labels", [constraint(), template_of_constraint("input.review.object.metadata.labels")], {}, Word.PROVED, ""),
    ("a vertical autoscaler of the job", [vertical("JobSet")], {}, Word.NOT_JUDGED, "VerticalPodAutoscaler 'sizes'"),
    ("a vertical autoscaler of another workload", [vertical("Deployment")], {}, Word.PROVED, ""),
    ("a ratio of limits", [limited("LimitRange", "vision", limits=RATIO)], {}, Word.NOT_JUDGED, "the field `spec.limits.maxLimitRequestRatio` of LimitRange 'limit' is not judged"),
    ("a ratio of limits elsewhere", [limited("LimitRange", "web", limits=RATIO)], {}, Word.PROVED, ""),
    ("a quota of Ray's clusters", [limited("ResourceQuota", "vision", hard={"count/rayclusters.ray.io": "0", "count/secrets": "9"})], {}, Word.NOT_JUDGED, "the field `spec.hard.count/rayclusters.ray.io` of"),
    ("a gated pod", [], {"schedulingGates": [{"name": "approved"}]}, Word.NOT_JUDGED, "`spec.replicatedJobs.template.spec.template.spec.schedulingGates` of JobSet 'train'"),
    ("another scheduler", [], {"schedulerName": "volcano"}, Word.NOT_JUDGED, "schedulerName` of JobSet 'train'"),
    ("the default scheduler", [], {"schedulerName": "default-scheduler"}, Word.PROVED, ""),
    ("a runtime class that selects nodes", [made(RUNTIME, "fast", scheduling={"nodeSelector": {"runtime": "fast"}})], CLASSED, Word.BROKEN, "the pods select runtime=fast"),
    ("a runtime class with overhead", [made(RUNTIME, "fast", overhead={"podFixed": {"cpu": "2"}})], CLASSED, Word.BROKEN, "fits a pod of 5 CPU"),
    ("a runtime class that selects spot", [made(RUNTIME, "fast", scheduling={"nodeSelector": {CAPACITY_TYPE: "spot"}})], CLASSED, Word.NOT_JUDGED, "which no move of the job changes"),
    ("a runtime class of another program", [], CLASSED, Word.NOT_JUDGED, "RuntimeClass fast"),
    ("the sandbox of GKE", [resource("gcp:container/cluster:Cluster", "c", {"name": "c", "removeDefaultNodePool": True})], {"runtimeClassName": "gvisor"}, Word.BROKEN, "sandbox.gke.io/runtime=gvisor"),
    ("a plain runtime class", [made(RUNTIME, "fast")], CLASSED, Word.PROVED, ""),
    ("a toleration that ends", [], BRIEFLY, Word.NOT_JUDGED, "for 600 seconds"),
    ("a toleration of lost nodes", [], LOST, Word.PROVED, ""),
    ("the default queue of the namespace", [custom("kueue.x-k8s.io/v1beta1:LocalQueue", "default")], {}, Word.NOT_JUDGED, "Kueue's queue 'default'"),
    ("the default queue of another namespace", [custom("kueue.x-k8s.io/v1beta1:LocalQueue", "default", "web")], {}, Word.PROVED, ""),
    ("a queue that jobs name", [custom("kueue.x-k8s.io/v1beta1:LocalQueue", "gpus")], {}, Word.PROVED, ""),
    ("a quota of a scheduler", [custom("scheduling.x-k8s.io/v1alpha1:ElasticQuota", "gpus")], {}, Word.NOT_JUDGED, "ElasticQuota 'gpus' keeps its pods from running"),
    ("a kind that no rule reads, of no namespace", [custom("capsule.clastix.io/v1beta2:Tenant", "ml", "")], {}, Word.NOT_JUDGED, "Tenant 'ml' keeps its pods"),
    ("a kind that no rule reads, elsewhere", [custom("scheduling.x-k8s.io/v1alpha1:ElasticQuota", "gpus", "web")], {}, Word.PROVED, ""),
    ("an overlay of machines", [custom("karpenter.sh/v1alpha1:NodeOverlay", "costs", "")], {}, Word.NOT_JUDGED, "NodeOverlay 'costs'"),
    ("a monitor", [custom("monitoring.coreos.com/v1:PodMonitor", "train")], {}, Word.PROVED, ""),
    ("a DaemonSet on the same host port", [made("kubernetes:apps/v1:DaemonSet", "exporter", spec=DAEMON)], ON_PORT, Word.NOT_JUDGED, "host port 9400"),
)  # fmt: skip


@pytest.mark.parametrize(("beside", "pod", "word", "reason"), [each[1:] for each in BESIDE], ids=[each[0] for each in BESIDE])  # fmt: skip
def test_job_is_not_proved_where_another_resource_decides_where_its_pods_run(
    beside: Sequence[StackResource], pod: Json, word: Word, reason: str
) -> None:
    program = [*job_program(declared_jobset(pod)), *beside]
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (word, True), f"{of_job}"
    assert bool(stopping(program)) is (word is Word.BROKEN), "only what is certain stops a run"


CAREFUL: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.mark.parametrize(
    ("standard", "pod", "container", "reason"),
    [
        ("privileged", {"hostIPC": True}, {"privileged": True}, ""),
        ("baseline", {}, {"capabilities": {"add": ["CHOWN"]}}, ""),
        ("baseline", {"hostIPC": True}, {"privileged": True}, "hostIPC, privileged containers"),
        ("baseline", {}, {"capabilities": {"add": ["IPC_LOCK"]}}, "capability IPC_LOCK"),
        ("baseline", {"volumes": [{"name": "shm", "hostPath": {"path": "/dev/shm"}}]}, {}, "hostPath volumes"),
        ("restricted", {"securityContext": {"runAsNonRoot": True}}, CAREFUL, ""),
        ("restricted", {"securityContext": {"runAsNonRoot": True}}, {**CAREFUL, "runAsNonRoot": False}, "no `runAsNonRoot: true`"),
        ("restricted", {}, {}, "no `allowPrivilegeEscalation: false`, no `runAsNonRoot: true`, no `seccompProfile`, capabilities that are not dropped"),
    ],
    ids=["all", "allowed capability", "host and privileged", "capability", "volume", "careful", "root", "plain"],
)  # fmt: skip
def test_job_is_not_proved_where_its_namespace_rejects_its_pods(
    standard: str, pod: Json, container: Json, reason: str
) -> None:
    labels = {"holdfast.dev/training": "true", "pod-security.kubernetes.io/enforce": standard}
    job = declared_jobset(
        {**pod, "containers": [{**requesting(cpu="3", memory="8Gi"), "securityContext": container}]}
    )
    (found,) = verdicts([namespace(labels=labels), *job_program(job)[1:]], PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (Word.NOT_JUDGED if reason else Word.PROVED, True), str(
        of_job
    )


@pytest.mark.parametrize(
    ("most", "price", "restart", "word"),
    [
        ("15", None, None, Word.ASSUMED),
        ("15", 32.0, None, Word.ASSUMED),
        ("8", 32.0, None, Word.NOT_JUDGED),
        ("15", 32.0, "30m", Word.NOT_JUDGED),
        ("8", UNKNOWN, None, Word.ASSUMED),
        ("8", 32.0, UNKNOWN, Word.ASSUMED),
    ],
    ids=["no price", "enough", "too little", "too little for a longer restart", "a price that is not known", "a restart that is not known"],
)  # fmt: skip
def test_job_with_a_cost_limit_is_assumed_to_have_enough_left_unless_it_pays_for_no_restart(
    most: str, price: Value, restart: Value, word: Word
) -> None:
    job = declared_jobset({}, metadata={"annotations": {"fallback.holdfast.dev/max-cost": most}})
    last: Value = {"pool": "cpu", **({} if price is None else {"price": price})}
    made = ladder([TIERS[0], last])
    spec: Value = {"tiers": [TIERS[0], last], **({} if restart is None else {"restartCost": restart})}
    program = [replace(made, props={**made.props, "spec": spec}) if each.urn == made.urn else each for each in job_program(job)]  # fmt: skip
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, f"max-cost: {most}" in of_job.reason) == (word, True), str(of_job)


@pytest.mark.parametrize(("value", "word"), [("true", Word.NOT_JUDGED), ("false", Word.PROVED)])
def test_job_that_is_created_stopped_is_not_proved(value: str, word: Word) -> None:
    job = declared_jobset({}, metadata={"annotations": {"fallback.holdfast.dev/stop": value}})
    (found,) = verdicts(job_program(job), PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert of_job.word is word, f"the controller keeps it suspended: {of_job}"


ADMISSION = made("kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy", "jobs", spec={"paramKind": {"kind": "FallbackPolicy"}})  # fmt: skip


@pytest.mark.parametrize(
    ("beside", "word"),
    [([], Word.ASSUMED), ([ADMISSION], Word.PROVED)],
    ids=["admission elsewhere", "admission here"],
)
def test_affinity_to_spot_is_assumed_to_be_removed_by_admission(
    beside: Sequence[StackResource], word: Word
) -> None:
    pod: Json = {"affinity": required_affinity([expression(CAPACITY_TYPE, "In", "spot")])}
    (found,) = verdicts([*job_program(declared_jobset(pod)), *beside], PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert of_job.word is word, f"no move changes a job's affinity: {of_job}"


def on_auto_mode(compute: Value, *made: StackResource) -> PoolFacts:
    """What is read of a NodePool with the class `default` in a cluster with these settings of Auto Mode."""
    cluster = resource("aws:eks/cluster:Cluster", "c", {"computeConfig": compute})
    reference: Value = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    pools = declared_pools([cluster, *made, cpu_pool("cpu", "on-demand", nodeClassRef=reference)])
    return next(each.facts for each in pools if each.label == "cpu")


@pytest.mark.parametrize(
    ("own_pools", "named"), [([], True), (None, True), (["system"], False), (UNKNOWN, False)]
)
@pytest.mark.parametrize("others", [[], ["own"]], ids=["no class", "another class"])
def test_class_that_auto_mode_does_not_make_is_named(
    own_pools: Value, *, named: bool, others: list[str]
) -> None:
    made = [
        resource("kubernetes:eks.amazonaws.com/v1:NodeClass", name, {"metadata": {"name": name}})
        for name in others
    ]
    found = on_auto_mode({"enabled": True, "nodePools": own_pools}, *made).unmodeled
    assert any("NodeClass 'default'" in each for each in found) is named, "EKS makes it with its own pools"


@pytest.mark.parametrize(
    ("compute", "refused"),
    [({"enabled": True}, False), ({"enabled": False}, True), (None, True), ({"enabled": UNKNOWN}, False)],
    ids=["on", "off", "not set", "not known"],
)
def test_pool_of_auto_mode_gets_no_node_where_that_is_off(compute: Value, *, refused: bool) -> None:
    found = [each.reason for each in on_auto_mode(compute).faults]
    assert found == ["its nodes are made by EKS Auto Mode, which is off in cluster c"] * refused, str(found)


@pytest.mark.parametrize("selector", [{POOL: "cpu-spot"}, {}], ids=["on the ladder", "as its flavor says"])
def test_job_in_a_queue_is_not_judged(selector: Json) -> None:
    queued: Json = {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
    job = declared_jobset({"nodeSelector": selector}, metadata=queued)
    (found,) = verdicts(job_program(job), PACK_DEFAULTS)
    assert found.word is Word.NOT_JUDGED, "Kueue, and not the ladder, decides where it runs"
    assert stopping(job_program(job)) == {}, "it may be meant so"


@pytest.mark.parametrize(
    ("memory", "selector", "declared_elsewhere", "word"),
    [
        ("4Gi", {}, [], Word.PROVED),
        ("120Gi", {}, [], Word.NOT_JUDGED),
        ("120Gi", {}, ["default pool"], Word.PROVED),
        ("4Gi", {CAPACITY_TYPE: "on-demand"}, [], Word.PROVED),
        ("4Gi", {"team": "platform"}, [], Word.NOT_JUDGED),
        ("4Gi", {POOL: "cpu-spot"}, [], Word.NOT_JUDGED),
        ("4Gi", {CAPACITY_TYPE: "spot"}, [], Word.ASSUMED),
    ],
)
def test_rayjob_is_not_proved_where_no_pool_takes_its_head(
    memory: str, selector: dict[str, str], declared_elsewhere: list[str], word: Word
) -> None:
    head = pod_template(selector, spec={"containers": [requesting(cpu="1", memory=memory)]})
    workers = worker_group(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]}))
    program = job_program(declared(RAY_JOB, rayjob(workers, head=head, spec={"backoffLimit": 5})))
    (found,) = verdicts(program, {**PACK_DEFAULTS, "madeElsewhere": declared_elsewhere})
    of_job = next(each for each in found.parts if each.about == "RayJob 'train'")
    assert of_job.word is word, str(of_job)


@pytest.mark.parametrize(
    ("spec", "beside", "word", "reason"),
    [
        ({}, [], Word.PROVED, ""),
        ({"kubelet": {"maxPods": 110.0}}, [], Word.PROVED, ""),
        ({"kubelet": {"maxPods": 6.0}}, [], Word.BROKEN, "none of its machine types fits"),
        ({"kubelet": {"systemReserved": {"cpu": "1"}}}, [], Word.BROKEN, "2.62 CPU"),
        ({"kubelet": {"kubeReserved": {"memory": "8Gi"}}}, [], Word.BROKEN, "allocatable"),
        ({"kubelet": {"evictionHard": {"memory.available": "40%"}}}, [], Word.NOT_JUDGED, "`spec.kubelet.evictionHard` of EC2NodeClass"),
        ({"subnetSelectorTerms": [{"tags": {"discovery": "lab"}}]}, [SUBNET], Word.NOT_JUDGED, "are in us-west-2a"),
        ({"subnetSelectorTerms": [{"tags": {"discovery": "other"}}]}, [SUBNET], Word.PROVED, ""),
        ({}, [CHART], Word.BROKEN, "allocatable"),
    ],
    ids=["plain", "most pods", "few pods", "system", "kube", "eviction", "subnets elsewhere", "other subnets", "chart"],
)  # fmt: skip
def test_class_of_the_nodes_and_the_chart_of_karpenter_decide_what_pods_may_use(
    spec: dict[str, Value], beside: Sequence[StackResource], word: Word, reason: str
) -> None:
    program = [*on_ec2(spec), *beside, declared_jobset({})]
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (word, True), f"{of_job}"


@pytest.mark.parametrize(("policy", "stops"), [("Strict", True), ("BestEffort", False)])
def test_min_values_stop_unless_the_chart_of_karpenter_relaxes_them(policy: str, stops: bool) -> None:
    settings: Value = {"settings": {"minValuesPolicy": policy}}
    chart = resource("kubernetes:helm.sh/v3:Release", "karpenter", {"chart": "karpenter", "values": settings})
    program = [*on_ec2({}, least=2.0), chart, declared_jobset({})]
    assert bool(stopping(program)) is stops, (
        "Karpenter makes no node of one type alone, unless its chart relaxes that"
    )


@pytest.mark.parametrize("kind", ["kubeflow.org/v1:PyTorchJob", "batch/v1:CronJob"])
@pytest.mark.parametrize("key", [POOL, "karpenter.sh/nodepool"])
@pytest.mark.parametrize(("pool", "stays"), [("cpu-spot", True), ("cpu", False), ("elsewhere", False)])
def test_workload_that_nothing_moves_is_said_to_stay_on_spot(
    kind: str, key: str, pool: str, stays: bool
) -> None:
    spec: Value = {"parts": [{"template": {"spec": {"containers": [{"name": "a"}], "nodeSelector": {key: pool}}}}]}  # fmt: skip
    other = resource(f"kubernetes:{kind}", "other", {"metadata": {"name": "other", "namespace": "vision"}, "spec": spec})  # fmt: skip
    notes = [each.message for listed in findings([*job_program(), other]).values() for each in listed]
    assert any(f"nothing moves a {kind.partition(':')[2]} to on-demand" in each for each in notes) is stays, (
        str(notes)
    )


def test_rayjob_that_the_api_server_rejects_stops_the_run_in_the_same_words() -> None:
    workers = worker_group(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]}))
    for spec, words in (({}, "a `backoffLimit`"), ({"backoffLimit": 5, "clusterSelector": {"a": "b"}}, "Remove `clusterSelector`")):  # fmt: skip
        program = job_program(declared(RAY_JOB, rayjob(workers, spec=spec)))
        stops = [message for listed in stopping(program).values() for message in listed]
        assert any(words in each for each in stops), str(stops)


def test_jobs_without_shapes_are_not_taken_to_tolerate_nothing() -> None:
    taint: Value = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    pools = [cpu_pool("cpu-spot", "spot", taints=taint), cpu_pool("cpu", "on-demand", taints=taint)]
    program = [namespace(), ladder(TIERS), *pools]
    assert stopping(program) == {}, "no shape says what the jobs tolerate"
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert found.word is Word.NOT_JUDGED, "and nothing proves that they do"


@pytest.mark.parametrize(("label", "word"), [("True", Word.BROKEN), (None, Word.NOT_JUDGED)])
def test_ladder_of_a_namespace_without_the_label_proves_nothing(label: str | None, word: Word) -> None:
    labels: Value = {} if label is None else {"holdfast.dev/training": label}
    program = [namespace(labels=labels), *job_program()[1:]]
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert found.word is word, "its jobs do not follow the ladder, or another program sets the label"
    assert bool(stopping(program)) is (word is Word.BROKEN), "what is not known stops nothing"
