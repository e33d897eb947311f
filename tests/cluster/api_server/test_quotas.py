"""The quota of a training namespace admits the jobs of its ladder, and no more, on a real API server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import cast

import pytest
import yaml

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.training_namespace import QUOTA, default_requests, quota_limits
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE
from pulumi_holdfast.ladder.quotas import Quota
from pulumi_holdfast.program.namespaces.ladders import ladder_of
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.gang_pods import pod, pods_of, pods_of_shape
from tests.support.builders.policy_programs import every, program
from tests.support.builders.training_jobs import jobset, pod_template, rayjob, replicated_job, worker_group
from tests.support.clusters.admission import make_namespace
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.clusters.job_admission import define_kinds
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

#: Each cloud with the stack of it that has every kind of pool.
STACKS = {"local": "local", "aws": "aws-prod", "azure": "azure-prod", "gcp": "gcp-prod"}
GPUS = "requests.nvidia.com/gpu"
NUMBERS = count()
EIGHT_GPUS: Json = {
    "containers": [{"name": "train", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]
}
SAYS_NOTHING: Json = {"containers": [{"name": "note", "image": "notebook:1"}]}


def limits(**amounts: int) -> Mapping[str, str]:
    """The limits of a quota with these amounts, and much of all others."""
    much = Quota(cpu_millis=4000, memory_mib=4096, gpus=0, pods=10, storage_mib=1024, objects=10)
    return quota_limits(replace(much, **amounts))


def make_training_namespace(client: KubeClient, bounds: Mapping[str, str]) -> str:
    """A training namespace of a test's own, its quota in force."""
    name = f"team-{next(NUMBERS)}"
    make_namespace(client, name, {TRAINING: TRAINING_VALUE})
    client.apply(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": QUOTA, "namespace": name},
            "spec": default_requests(),
        },
        field_manager="tests",
    )
    client.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": QUOTA, "namespace": name},
            "spec": {"hard": dict(bounds)},
        },
        field_manager="tests",
    )
    wait_until_counted(client, name, {})
    return name


def wait_until_counted(client: KubeClient, namespace: str, used: Mapping[str, str]) -> None:
    """Wait until the quota is in force and counts so much."""
    client.wait_for(
        "v1",
        "ResourceQuota",
        QUOTA,
        namespace=namespace,
        timeout_seconds=180,
        condition=lambda found: is_counted(found or {}, used),
        what=f"the quota of {namespace} to count {dict(used)}",
    )


def is_counted(quota: Json, used: Mapping[str, str]) -> bool:
    status = obj(quota.get("status"))
    return (
        obj(obj(quota.get("spec")).get("hard")) == obj(status.get("hard"))
        and used.items() <= obj(status.get("used")).items()
    )


def create(client: KubeClient, namespace: str, specs: Sequence[Json]) -> None:
    for spec in specs:
        client.apply(pod(f"pod-{next(NUMBERS)}", namespace, spec), field_manager="tests")


def bounds_of(stack: str) -> dict[str, dict[str, str]]:
    """What each training namespace of a stack may take."""
    return {
        str(obj(each.props["metadata"])["namespace"]): cast("dict[str, str]", obj(each.props["spec"])["hard"])
        for each in every(program(stack), ":ResourceQuota")
    }


@pytest.mark.parametrize("cloud", STACKS)
def test_the_quota_admits_all_examples_of_a_cloud_together(client: KubeClient, cloud: str) -> None:
    bounds = bounds_of(STACKS[cloud])
    for file in sorted((CHECKOUT / "examples" / cloud).glob("*.yaml")):
        job = cast("Json", yaml.safe_load(file.read_text()))
        if job["kind"] in {"JobSet", "RayJob"}:
            specs = pods_of(job)
            assert len(specs) >= 2, f"{file.name} is a gang"
            namespace = make_training_namespace(
                client, bounds["vision" if "gpu" in file.read_text() else "tabular"]
            )
            create(client, namespace, specs)
            wait_until_counted(client, namespace, {"pods": str(len(specs))})


@pytest.mark.parametrize("cloud", STACKS)
def test_the_quota_admits_the_gang_of_every_declared_shape(client: KubeClient, cloud: str) -> None:
    bounds = bounds_of(STACKS[cloud])
    for ladder in every(program(STACKS[cloud]), ":FallbackPolicy"):
        for shape in ladder_of(ladder).known_shapes:
            of_namespace = str(obj(ladder.props["metadata"])["namespace"])
            namespace = make_training_namespace(client, bounds[of_namespace])
            create(client, namespace, pods_of_shape(shape))
            taken = {"pods": str(shape.pods), GPUS: str(shape.pods * shape.requests.gpus)}
            wait_until_counted(client, namespace, taken)


def test_gpus_beyond_the_quota_are_rejected_and_pods_without_gpus_admitted(client: KubeClient) -> None:
    namespace = make_training_namespace(client, limits(cpu_millis=4000, memory_mib=4096, gpus=16, pods=10))
    create(client, namespace, [EIGHT_GPUS, EIGHT_GPUS])
    with pytest.raises(ApiError, match=f"exceeded quota: {QUOTA}, requested: {GPUS}=8, used: {GPUS}=16"):
        create(client, namespace, [EIGHT_GPUS])
    create(client, namespace, [SAYS_NOTHING])


def test_cpus_beyond_the_quota_are_rejected_and_pods_that_request_nothing_counted(client: KubeClient) -> None:
    bounds = limits(cpu_millis=1000, memory_mib=1024, gpus=0, pods=10)
    namespace = make_training_namespace(client, bounds)
    wide: Json = {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "2"}}}]}
    with pytest.raises(ApiError, match=f"exceeded quota: {QUOTA}, requested: requests.cpu=2"):
        create(client, namespace, [wide])
    create(client, namespace, [SAYS_NOTHING])
    wait_until_counted(client, namespace, {"requests.cpu": "10m", "requests.memory": "16Mi"})


def test_objects_beyond_the_quota_are_rejected(client: KubeClient) -> None:
    define_kinds(client)
    namespace = make_training_namespace(client, limits(objects=3, storage_mib=1024))
    # Until the controller of quotas has found a new kind, all of its objects are refused.
    wait_until_counted(client, namespace, {"count/jobsets.jobset.x-k8s.io": "0", "count/rayjobs.ray.io": "0"})
    kinds: tuple[Json, ...] = (
        jobset(replicated_job(pod_template())),
        rayjob(worker_group(pod_template())),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
    )
    made: list[Json] = [
        {**each, "metadata": {**obj(each["metadata"]), "name": f"many-{number}", "namespace": namespace}}
        for number in range(3)
        for each in kinds
    ]
    # The namespace has a ConfigMap of Kubernetes' own.
    for each in made[:-1]:
        client.create(each)
    for each in kinds:
        with pytest.raises(ApiError, match=f"exceeded quota: {QUOTA}, requested: count/"):
            client.create({**each, "metadata": {"name": "too-many", "namespace": namespace}})
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "wide", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Ti"}}},
    }
    with pytest.raises(ApiError, match=f"exceeded quota: {QUOTA}, requested: requests.storage=64Ti"):
        client.create(claim)


def test_a_ladder_without_gpus_admits_no_gpu_pods(client: KubeClient) -> None:
    namespace = make_training_namespace(client, bounds_of("local")["tabular"])
    with pytest.raises(ApiError, match="exceeded quota"):
        create(client, namespace, [EIGHT_GPUS])


def test_terminated_pods_do_not_count(client: KubeClient) -> None:
    namespace = make_training_namespace(client, limits(cpu_millis=4000, memory_mib=4096, gpus=0, pods=1))
    name = f"pod-{next(NUMBERS)}"
    client.apply(pod(name, namespace, SAYS_NOTHING), field_manager="tests")
    wait_until_counted(client, namespace, {"pods": "1"})
    with pytest.raises(ApiError, match="exceeded quota"):
        create(client, namespace, [SAYS_NOTHING])
    client.merge_patch(
        "v1", "Pod", name, {"status": {"phase": "Failed"}}, namespace=namespace, subresource="status"
    )
    wait_until_counted(client, namespace, {"pods": "0"})
    create(client, namespace, [SAYS_NOTHING])
