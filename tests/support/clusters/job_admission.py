"""A real API server that admits, mutates and validates jobs as in a training namespace, with no operator behind it."""

import asyncio
import os
import subprocess
import sysconfig
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final

import yaml

from pulumi_holdfast.controller.jobs.judgement import Verdict, judge
from pulumi_holdfast.controller.kube.client import ApiError, Kind
from pulumi_holdfast.kubernetes.admission.job_admission import capacity_selections, job_manifests
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME
from pulumi_holdfast.kubernetes.admission.job_validation import job_validations
from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, NodeSelection
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND, ladder_spec
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    FOLLOWS,
    FOLLOWS_VALUE,
    GPU_RESOURCE,
    LADDER,
    POOL,
    TRAINING,
    TRAINING_VALUE,
    VOLUME_CLAIMS,
)
from pulumi_holdfast.ladder.ladder import UNLIMITED, Failures, Ladder, Tier
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.facts import read_tiers
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.builders.training_jobs import (
    POOLS,
    RULES,
    jobset,
    ladder,
    pod_template,
    rayjob,
    replicated_job,
    worker_group,
)
from tests.support.clusters.admission import (
    in_force,
    make_namespace,
    policy_and_binding,
    rewriting_objects,
    running_rules,
    wait_until_enforced,
)
from tests.support.clusters.control_plane import CHECKOUT, define, define_fallback_policies, read_definition
from tests.support.json_objects import obj, objects

#: As a ladder that is applied by hand, without the facts of its pools.
TIERS: Sequence[Json] = (
    {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"},
    {"pool": "cpu-spot", "maxFailures": 3, "procurementTimeout": "15m"},
    {"pool": "a100"},
)

_DEFINITIONS = ("jobset-crds/files/jobset.x-k8s.io_jobsets.yaml", "kuberay-crds/files/ray.io_rayjobs.yaml")


@contextmanager
def running_job_admission(
    folder: Path,
    rules: Sequence[AdmissionRule],
    pods_in_force: Callable[[KubeClient], bool],
    *,
    beside: Iterable[Json] = (),
    selections: tuple[NodeSelection, ...] = (),
) -> Generator[KubeClient]:
    """A cluster where pods and jobs are admitted under these rules; its one training namespace has a ladder.

    `selections` are further ways to ask for spot; what is `beside` is applied as well.
    """
    manifests = [*job_objects(rules, selections), *beside]
    with running_rules(folder, rules, pods_in_force, manifests, prepare=define_kinds) as client:
        client.apply(ladder(*TIERS), field_manager="tests")
        wait_until_enforced(client, jobs_are_mutated)
        yield client


def job_objects(rules: Iterable[AdmissionRule], selections: tuple[NodeSelection, ...] = ()) -> list[Json]:
    """The policies for jobs and their bindings, on a cluster whose pods are under these rules."""
    return [
        manifest
        for each in job_manifests((*capacity_selections(rules), *selections))
        for manifest in policy_and_binding(each.name, each.policy, each.binding)
    ]


def admitted_job(client: KubeClient, job: Json) -> Json:
    """The job as the API server would store it.

    For a while after a kind was defined the API server publishes its schema again, and each time it does not know
    how to change objects of it (503): then it is asked again.
    """
    deadline = time.monotonic() + 30
    while True:
        try:
            return client.apply(job, field_manager="tests", dry_run=True)
        except ApiError as error:
            if error.status != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def stored_job(client: KubeClient, job: Json) -> Json:
    """The job that is stored under this one's name."""
    metadata = obj(job["metadata"])
    found = client.get(
        str(job["apiVersion"]), str(job["kind"]), str(metadata["name"]), str(metadata["namespace"])
    )
    assert found is not None, f"{metadata['name']} is stored"
    return found


def as_manifest(job: Json) -> Json:
    """The job as a user would apply it to another cluster."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = obj(job["metadata"])
    return {**job, "metadata": {key: metadata[key] for key in kept if key in metadata}}


def define_kinds(client: KubeClient) -> None:
    """Define FallbackPolicy, JobSet and RayJob and wait until the API server serves them."""
    define_fallback_policies(client)
    for each in _DEFINITIONS:
        define(client, read_definition(CHECKOUT / "components/pulumi_holdfast/kubernetes/charts" / each))


def jobs_are_mutated(client: KubeClient) -> bool:
    """Whether jobs of both kinds are admitted as they shall be: kinds, policies and ladder take the API server a moment."""
    template = pod_template()
    probes = (
        jobset(replicated_job(template), labels={FOLLOWS: "true"}),
        rayjob(worker_group(template), labels={FOLLOWS: "true"}),
    )
    try:
        return all("annotations" in obj(admitted_job(client, each)["metadata"]) for each in probes)
    except ApiError:
        return False


P4D: Final = Machine(
    name="p4d", vcpus=96, memory_mib=1152 * 1024, gpus=8, hourly_price=32.0, accelerator="a100"
)
SMALL: Final = Machine(name="c7i", vcpus=16, memory_mib=32 * 1024, gpus=0, hourly_price=0.7)
LARGE: Final = Machine(name="m7i", vcpus=64, memory_mib=256 * 1024, gpus=0, hourly_price=3.0)


def facts_of(pool: Pool, *machines: Machine, labels: Mapping[str, str] | None = None) -> PoolSummary:
    """What is known of a pool of these machines."""
    return summarize_pool(pool, machines, pool.taints, labels, provisioner=Provisioner.LOCAL)


def ladder_with(known: Mapping[str, PoolSummary], written: Ladder, namespace: str) -> Json:
    """The ladder of a namespace with the facts of its pools."""
    return {**ladder(namespace=namespace), "spec": ladder_spec(written, known)}


def validation_objects(capacity: Sequence[NodeSelection], claims: Sequence[str] = ()) -> list[Json]:
    """The policies that reject jobs, and warn about others, with their bindings."""
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": each.name},
            "spec": spec,
        }
        for each in job_validations(capacity, claims)
        for kind, spec in (
            ("ValidatingAdmissionPolicy", each.policy),
            ("ValidatingAdmissionPolicyBinding", each.binding),
        )
    ]


def judged(client: KubeClient, job: Json) -> Verdict:
    """What the fallback controller finds about an admitted job, asking the real API server."""
    policy = client.get(API_VERSION, KIND, LADDER, str(obj(job["metadata"])["namespace"]))

    async def dry_run(kind: Kind, made: Json) -> Json:
        del kind
        try:
            return client.create(made, dry_run=True)
        except ApiError as error:
            raise ApiError(error.status, error.reason, error.message) from error

    return asyncio.run(judge(job, read_tiers(policy or {}), dry_run))


_POOLS: Final = {pool.name: pool for pool in POOLS}
#: Four machines in each.
KNOWN: Final[Mapping[str, PoolSummary]] = {
    "a100-spot": facts_of(_POOLS["a100-spot"], P4D, labels={"disk": "fast", "generation": "4"}),
    "a100": facts_of(_POOLS["a100"], P4D, labels={"disk": "slow", "generation": "4"}),
    "cpu-spot": facts_of(_POOLS["cpu-spot"], SMALL),
    "cpu-small": facts_of(replace(_POOLS["cpu"], name="cpu-small"), SMALL),
    "cpu": facts_of(_POOLS["cpu"], SMALL, LARGE),
}
_GPU_TIERS: Final = (
    Tier(pool="a100-spot", max_failures=5, procurement_timeout=timedelta(minutes=15)),
    Tier(pool="a100"),
)
#: By namespace. Nothing leads past the first tier of `cpus` but failures.
LADDERS: Final[Mapping[str, Ladder]] = {
    "gpus": Ladder(tiers=_GPU_TIERS),
    "cpus": Ladder(tiers=(Tier(pool="cpu-small", max_failures=3), Tier(pool="cpu"))),
    "evictions": Ladder(tiers=_GPU_TIERS, failures=Failures.EVICTIONS),
    "spot": Ladder(tiers=(Tier(pool="a100-spot", max_failures=UNLIMITED),)),
}
#: A training namespace without a ladder.
BARE: Final = "bare"
ALLOWED_CLAIM: Final = "datasets"
STACKS_CLAIM: Final = "checkpoints"


@dataclass(frozen=True, kw_only=True)
class Judging:
    """The cluster as a user sees it, and as the fallback controller does."""

    client: KubeClient
    as_controller: KubeClient
    kubeconfig: Path

    def kubectl(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl, which shows the API server's warnings on its standard error."""
        paths = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
        environment = {"PATH": paths, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent)}
        return subprocess.run(
            ["kubectl", *words], env=environment, input=stdin, capture_output=True, text=True, check=False
        )

    def problems(self, job: Json) -> str:
        """In which words a job is refused: by admission, or by the controller once it is admitted; empty if it is not."""
        try:
            admitted = admitted_job(self.client, job)
        except ApiError as error:
            return told(str(error))
        labels = obj(obj(admitted["metadata"]).get("labels"))
        if labels.get(FOLLOWS) != FOLLOWS_VALUE or QUEUE_NAME in labels:
            return ""  # the controller leaves it alone
        return " ".join(judged(self.client, admitted).judgement.problems)

    def refusal(self, job: Json) -> str:
        """In which words a job is refused that would be created."""
        found = self.problems(job)
        assert found, "it is accepted"
        return found


def told(message: str) -> str:
    """What is ours of the API server's message."""
    assert "can-fall-back' denied request: " in message, f"refused by another policy: {message}"
    return message.partition("denied request: ")[2]


@contextmanager
def running_job_validation(folder: Path) -> Generator[Judging]:
    """The cluster for the length of the block."""
    with running_job_admission(folder, RULES, in_force, beside=rewriting_objects()) as client:
        for manifest in validation_objects(capacity_selections(RULES), (STACKS_CLAIM,)):
            client.apply(manifest, field_manager="tests")
        for namespace, ladder in LADDERS.items():
            make_namespace(client, namespace, {TRAINING: TRAINING_VALUE})
            client.apply(ladder_with(KNOWN, ladder, namespace), field_manager="tests")
        make_namespace(client, BARE, {TRAINING: TRAINING_VALUE})
        claims: Json = {"metadata": {"annotations": {VOLUME_CLAIMS: f"others, {ALLOWED_CLAIM}"}}}
        client.merge_patch("v1", "Namespace", "gpus", claims)
        for namespace in LADDERS:
            wait_until_enforced(client, lambda found, at=namespace: is_judged(found, at))
        kubeconfig = Workspace(project_root=folder).kubeconfig("local")
        controller = as_controller(client, kubeconfig)
        yield Judging(client=client, as_controller=controller, kubeconfig=kubeconfig)
        controller.close()


def is_judged(client: KubeClient, namespace: str) -> bool:
    """Whether jobs of both kinds on a pool of no tier are refused: policies and ladders are taken up one by one."""
    template = training({POOL: "of-no-tier"})
    labels = {FOLLOWS: FOLLOWS_VALUE}
    of_ray = rayjob(worker_group(template), labels=labels)
    return all(
        is_refused(client, each)
        for each in (
            jobset(replicated_job(template), namespace=namespace, labels=labels),
            {**of_ray, "metadata": {**obj(of_ray["metadata"]), "namespace": namespace}},
        )
    )


def is_refused(client: KubeClient, job: Json) -> bool:
    """Whether a job is refused because it cannot follow."""
    try:
        admitted_job(client, job)
    except ApiError as error:
        return "can-fall-back" in str(error)
    return False


def as_controller(client: KubeClient, kubeconfig: Path) -> KubeClient:
    """The same cluster for the fallback controller's account, which may do anything here."""
    make_namespace(client, CONTROLLER_NAMESPACE, {})
    account: Json = {"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE}
    role = role_ref("ClusterRole", "cluster-admin")
    for manifest in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": CONTROLLER},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ):
        client.apply(manifest, field_manager="tests")
    token = client.service_account_token(CONTROLLER_NAMESPACE, CONTROLLER, 3600)
    config = obj(yaml.safe_load(kubeconfig.read_text()))
    users = [{**each, "user": {"token": token}} for each in objects(config["users"])]
    own = kubeconfig.with_name("controller-kubeconfig")
    own.write_text(yaml.safe_dump({**config, "users": users}))
    return KubeClient.from_kubeconfig(own)


def training(
    selector: Mapping[str, str] | None = None,
    *,
    cpu: str = "48",
    memory: str = "512Gi",
    gpus: str = "8",
    spec: Json | None = None,
    devices: Json | None = None,
) -> Json:
    """A template of pods that train: on spot, each with a whole machine's GPUs."""
    asked: Json = {
        "cpu": cpu,
        "memory": memory,
        **(devices or {}),
        **({GPU_RESOURCE: gpus} if gpus != "0" else {}),
    }
    container: Json = {
        "name": "train",
        "image": "train:1",
        "resources": {"requests": asked, **({"limits": {GPU_RESOURCE: gpus}} if gpus != "0" else {})},
    }
    selected = {"karpenter.sh/capacity-type": "spot"} if selector is None else selector
    return pod_template(selected, spec={"containers": [container], **(spec or {})})


def mounting(claim: str) -> Json:
    """The fields of a pod that mounts a volume claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def gang(template: Json, pods: int = 4, name: str = "worker", job: Json | None = None) -> Json:
    """One of a JobSet's jobs, of so many pods."""
    return replicated_job(template, name, job={"parallelism": pods, "completions": pods, **(job or {})})
