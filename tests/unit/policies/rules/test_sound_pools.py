"""What decides on jobs although pools and ladder are sound: classes of nodes, priorities, annotations, queues, heads of RayJobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, POOL
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.program.pools.all_pools import declared_pools
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import stopping
from tests.support.builders.program_jobs import (
    RAY_JOB,
    TIERS,
    cpu_pool,
    declared,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import A100, A100_SPOT, gke_pools, ladder, namespace, resource
from tests.support.builders.training_jobs import (
    expression,
    pod_template,
    rayjob,
    required_affinity,
    worker_group,
)


def made(type_token: str, name: str, **props: Value) -> StackResource:
    return resource(type_token, name, {"metadata": {"name": name}, **props})


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


CAREFUL: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


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
    assert of_job.word is word


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
    assert of_job.word is word


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
    assert any("NodeClass 'default'" in each for each in found) is named


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
    assert found.word is Word.NOT_JUDGED
    assert stopping(job_program(job)) == {}


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
        ({}, [CHART], Word.BROKEN, "allocatable"),
    ],
    ids=["plain", "most pods", "few pods", "system", "kube", "eviction", "chart"],
)  # fmt: skip
def test_class_of_the_nodes_and_the_chart_of_karpenter_decide_what_pods_may_use(
    spec: dict[str, Value], beside: Sequence[StackResource], word: Word, reason: str
) -> None:
    program = [*on_ec2(spec), *beside, declared_jobset({})]
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (word, True)


@pytest.mark.parametrize(("policy", "stops"), [("Strict", True), ("BestEffort", False)])
def test_min_values_stop_unless_the_chart_of_karpenter_relaxes_them(policy: str, stops: bool) -> None:
    settings: Value = {"settings": {"minValuesPolicy": policy}}
    chart = resource("kubernetes:helm.sh/v3:Release", "karpenter", {"chart": "karpenter", "values": settings})
    program = [*on_ec2({}, least=2.0), chart, declared_jobset({})]
    assert bool(stopping(program)) is stops


def test_rayjob_that_the_api_server_rejects_stops_the_run_in_the_same_words() -> None:
    workers = worker_group(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]}))
    kept: Value = {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteCluster"}}
    for spec, words in (
        ({}, "a `backoffLimit`"),
        ({"backoffLimit": 5, "clusterSelector": {"a": "b"}}, "Remove `clusterSelector`"),
        (
            {"backoffLimit": 5, "deletionStrategy": kept},
            "Remove `deletionStrategy.onSuccess.policy: DeleteNone`",
        ),
    ):
        program = job_program(declared(RAY_JOB, rayjob(workers, spec=spec)))
        stops = [message for listed in stopping(program).values() for message in listed]
        assert any(words in each for each in stops), str(stops)


def test_jobs_without_shapes_are_not_taken_to_tolerate_nothing() -> None:
    taint: Value = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    pools = [cpu_pool("cpu-spot", "spot", taints=taint), cpu_pool("cpu", "on-demand", taints=taint)]
    program = [namespace(), ladder(TIERS), *pools]
    assert stopping(program) == {}
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert found.word is Word.NOT_JUDGED


@pytest.mark.parametrize(("label", "word"), [("True", Word.BROKEN), (None, Word.NOT_JUDGED)])
def test_ladder_of_a_namespace_without_the_label_proves_nothing(label: str | None, word: Word) -> None:
    labels: Value = {} if label is None else {"holdfast.dev/training": label}
    program = [namespace(labels=labels), *job_program()[1:]]
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert found.word is word
    assert bool(stopping(program)) is (word is Word.BROKEN)


@pytest.mark.parametrize(("default", "value", "stops"), [(True, -100, True), (True, 0, False), (False, -100, False)])  # fmt: skip
def test_default_priority_is_that_of_pods_without_a_class(
    default: Value, value: Value, *, stops: bool
) -> None:
    name: Value = {"name": "best-effort"}
    priority = resource(
        "kubernetes:scheduling.k8s.io/v1:PriorityClass",
        "best-effort",
        {"metadata": name, "globalDefault": default, "value": value},
    )
    pools = [
        replace(each, props={**each.props, "autoscaling": {"totalMaxNodeCount": 4.0}}) for each in gke_pools()
    ]
    own = ladder()
    spec: Value = {"tiers": [A100_SPOT, A100], "shapes": [{"name": "small", "cpu": "1", "memory": "1Gi"}]}
    shaped = replace(own, props={**own.props, "spec": spec})
    found = str(stopping([namespace(), shaped, *pools, priority]))
    assert ("a priority below -10" in found) is stops
    assert not stopping([namespace(), own, *pools, priority])


def on_machines(spec: dict[str, Value], *kinds: str) -> list[StackResource]:
    """A ladder on machines of EC2 whose class has this specification; `kinds` are those of its last tier."""
    reference: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

    def pool(name: str, *capacity: str) -> StackResource:
        required: list[Value] = [
            {"key": key, "operator": "In", "values": list(values)}
            for key, values in (
                (CAPACITY_TYPE, capacity),
                (INSTANCE_TYPE, ("m7i.xlarge",)),
                ("topology.kubernetes.io/zone", ("us-west-2c",)),
            )
        ]
        return cpu_pool(name, "", nodeClassRef=reference, requirements=required)

    node_class = resource("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "default", {"metadata": {"name": "default"}, "spec": spec})  # fmt: skip
    last: Value = {"pool": "cpu"} if not kinds or "on-demand" in kinds else {"pool": "cpu", "maxFailures": -1}
    tiers: Value = [{"pool": "cpu-spot", "maxFailures": 5, "procurementTimeout": "15m"}, last]
    return [
        namespace(),
        ladder(tiers),
        pool("cpu-spot", "spot"),
        pool("cpu", *(kinds or ("on-demand",))),
        node_class,
    ]


@pytest.mark.parametrize(("version", "stops"), [("1.33", True), ("1.32", False)])
def test_class_of_amazon_linux_2_has_no_image_for_a_later_kubernetes(version: str, stops: bool) -> None:
    cluster = resource("aws:eks/cluster:Cluster", "lab", {"name": "lab", "version": version})
    aliases: Value = [{"alias": "al2@v20250701"}]
    program = [*on_machines({"amiSelectorTerms": aliases}), cluster, declared_jobset({})]
    found = str(stopping(program))
    assert ("no image" in found or "Amazon Linux 2" in found) is stops


@pytest.mark.parametrize(
    ("kinds", "terms", "stops"),
    [
        (["reserved"], None, True),
        (["reserved"], [{"id": "cr-1"}], False),
        (["reserved", "on-demand"], None, False),
    ],
    ids=["no reservation", "a reservation", "on-demand, too"],
)
def test_reserved_pool_whose_class_names_no_reservation_stops_the_run(
    kinds: Sequence[str], terms: Value, stops: bool
) -> None:
    program = [*on_machines({"capacityReservationSelectorTerms": terms}, *kinds), declared_jobset({})]
    found = [each for listed in stopping(program).values() for each in listed]
    assert all("Set `capacityReservationSelectorTerms`" in each for each in found), str(found)
    assert bool(found) is stops


def test_job_whose_affinity_has_a_term_for_each_capacity_is_not_stopped() -> None:
    terms = ([expression(CAPACITY_TYPE, "In", kind)] for kind in ("spot", "on-demand"))
    assert stopping(job_program(declared_jobset({"affinity": required_affinity(*terms)}))) == {}
    pinned = required_affinity([expression(CAPACITY_TYPE, "In", "on-demand")])
    assert stopping(job_program(declared_jobset({"affinity": pinned})))
