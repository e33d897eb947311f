"""What other resources of a program do to its jobs, although pools and ladder are sound: programs of a blind trial."""

from collections.abc import Sequence

import pytest

from holdfast.policies.resources import StackResource, Value
from holdfast.policies.rule import PACK_DEFAULTS
from holdfast.policies.rules.verdicts import Word, verdicts
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, POOL
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
from tests.support.builders.training_jobs import pod_template, rayjob, worker_group


def made(type_token: str, name: str, **props: Value) -> StackResource:
    return resource(type_token, name, {"metadata": {"name": name}, **props})


def admission(expression: str) -> StackResource:
    """A MutatingAdmissionPolicy for pods."""
    spec: Value = {
        "matchConstraints": {"resourceRules": [{"resources": ["pods"]}]},
        "mutations": [{"applyConfiguration": {"expression": expression}}],
    }
    return made("kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy", "cost", spec=spec)


def kyverno(action: str, *namespaces: str) -> StackResource:
    """A policy of Kyverno by which pods of these namespaces, or of all, have to select spot."""
    rule: Value = {
        "match": {"any": [{"resources": {"kinds": ["Pod"], **({"namespaces": [*namespaces]} if namespaces else {})}}]},
        "validate": {"failureAction": action, "pattern": {"spec": {"nodeSelector": {CAPACITY_TYPE: "spot"}}}},
    }  # fmt: skip
    return made("kubernetes:kyverno.io/v1:ClusterPolicy", "spot", spec={"rules": [rule]})


def validation(*covered: str) -> StackResource:
    spec: Value = {
        "matchConstraints": {"resourceRules": [{"resources": [*covered]}]},
        "validations": [{"expression": "'spot' in object.spec.nodeSelector"}],
    }
    return made("kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy", "cost", spec=spec)


def on_ec2(**spec: Value) -> list[StackResource]:
    """The pools and their class on EC2, on machines with 4 CPUs and 16 GiB."""
    node_class = made("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "default", spec=spec)
    reference: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2c"]}
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.xlarge"]}
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
    ("a runtime class that selects nodes", [made(RUNTIME, "fast", scheduling={"nodeSelector": {"runtime": "fast"}})], CLASSED, Word.BROKEN, "the pods select runtime=fast"),
    ("a runtime class with overhead", [made(RUNTIME, "fast", overhead={"podFixed": {"cpu": "2"}})], CLASSED, Word.BROKEN, "fits a pod of 5 CPU"),
    ("a runtime class that selects spot", [made(RUNTIME, "fast", scheduling={"nodeSelector": {CAPACITY_TYPE: "spot"}})], CLASSED, Word.NOT_JUDGED, "which no move of the job changes"),
    ("a runtime class of another program", [], CLASSED, Word.NOT_JUDGED, "RuntimeClass fast"),
    ("a plain runtime class", [made(RUNTIME, "fast")], CLASSED, Word.PROVED, ""),
    ("a toleration that ends", [], BRIEFLY, Word.NOT_JUDGED, "for 600 seconds"),
    ("a toleration of lost nodes", [], LOST, Word.PROVED, ""),
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


def test_job_in_a_queue_is_not_judged() -> None:
    job = declared_jobset({}, metadata={"labels": {"kueue.x-k8s.io/queue-name": "gpus"}})
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
    program = [*on_ec2(**spec), *beside, declared_jobset({})]
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (word, True), f"{of_job}"


@pytest.mark.parametrize("kind", ["kubeflow.org/v1:PyTorchJob", "batch/v1:CronJob"])
@pytest.mark.parametrize(("pool", "stays"), [("cpu-spot", True), ("cpu", False)])
def test_workload_that_nothing_moves_is_told_that_it_stays_on_spot(kind: str, pool: str, stays: bool) -> None:
    spec: Value = {"parts": [{"template": {"spec": {"containers": [{"name": "a"}], "nodeSelector": {POOL: pool}}}}]}  # fmt: skip
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
