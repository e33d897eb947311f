"""The policy on the controller's writes, as a real API server enforces it on the controller's own token."""

from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from typing import Final

import pytest

from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.reservations import (
    PlaceholderRequest,
    placeholders,
    release_patch,
    reserve_patch,
)
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.loop.settings import PLACEHOLDER_IMAGE
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    POOL,
    RECREATE,
    RESERVATION_NAMESPACE,
    RESERVED_FOR,
    STATE,
    SUCCESSOR_OF,
    SYSTEM,
    SYSTEM_VALUE,
)
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.clusters.controller_rights import wait_until_limited
from tests.support.clusters.fallback import NAMESPACE, LadderCluster
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

JOBSET: Final = "jobset.x-k8s.io/v1alpha2"
NODE: Final = "limited-0"
UID: Final = "11111111-2222-3333-4444-555555555555"
REFUSED: Final = "fallback-controller-writes"


@pytest.fixture(scope="module")
def controller(cluster: LadderCluster) -> Generator[KubeClient]:
    """A client with the controller's token, on a cluster with a node of a pool, a pod, an Event and a job of each kind."""
    admin = cluster.client
    for manifest in (node(), pod(), event("theirs", "kubelet"), jobset(), rayjob("ray", {RECREATE: "true"})):
        admin.apply(manifest, field_manager="test")
    client = KubeClient.from_kubeconfig(cluster.controller_kubeconfig)
    wait_until_limited(client, NODE)
    yield client
    client.close()
    for manifest in (node(), pod(), jobset(), rayjob("ray", {})):
        metadata = obj(manifest["metadata"])
        admin.delete(
            str(manifest["apiVersion"]),
            str(manifest["kind"]),
            str(metadata["name"]),
            namespace=str(metadata.get("namespace", "default")),
        )


def node() -> Json:
    taint: Json = {"key": "example.com/theirs", "value": "x", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {POOL: "spot-a"}},
        "spec": {"taints": [taint]},
    }


def pod() -> Json:
    spec: Json = {"nodeSelector": {"example.com/never": "x"}, "containers": [{"name": "a", "image": "a"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "limited", "namespace": NAMESPACE},
        "spec": spec,
    }


def jobset() -> Json:
    built = gang_jobset(
        "limited", NAMESPACE, pods=2, pool="spot-a", cpu="1", failure_policy={"maxRestarts": 1}
    )
    return {**built, "spec": {**obj(built["spec"]), "suspend": True}}


def rayjob(name: str, annotations: Mapping[str, str]) -> Json:
    template: Json = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}
    worker: Json = {
        "groupName": "workers",
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "rayStartParams": {},
        "template": template,
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": dict(annotations)},
        "spec": {
            "entrypoint": "python train.py",
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": True,
            "suspend": True,
            "rayClusterSpec": {
                "headGroupSpec": {"rayStartParams": {}, "template": template},
                "workerGroupSpecs": [worker],
            },
        },
    }


def event(name: str, component: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "limited", "namespace": NAMESPACE},
        "reason": "Told",
        "message": "told",
        "type": "Normal",
        "count": 1,
        "source": {"component": component},
    }


def placeholder() -> Json:
    shape = PodShape(count=1, requests={"cpu": "1"})
    request = PlaceholderRequest(
        uid=UID,
        job="JobSet vision/limited",
        pool="spot-a",
        shapes=(shape,),
        taints=(),
        image=PLACEHOLDER_IMAGE,
    )
    return next(iter(placeholders(request)))


def in_template(api_version: str, change: Callable[[Json], Json]) -> Callable[[Json], Json]:
    """A patch of the pod specification in a job's first template."""

    def of_jobset(job: Json) -> Json:
        first, *others = objects(obj(job["spec"])["replicatedJobs"])
        child = obj(first["template"])
        spec = obj(child["spec"])
        template = obj(spec["template"])
        changed = {**template, "spec": change(obj(template["spec"]))}
        replaced = {**first, "template": {**child, "spec": {**spec, "template": changed}}}
        return {"spec": {"replicatedJobs": [replaced, *others]}}

    def of_rayjob(job: Json) -> Json:
        cluster = obj(obj(job["spec"])["rayClusterSpec"])
        first, *others = objects(cluster["workerGroupSpecs"])
        template = obj(first["template"])
        replaced = {**first, "template": {**template, "spec": change(obj(template["spec"]))}}
        return {"spec": {"rayClusterSpec": {"workerGroupSpecs": [replaced, *others]}}}

    return of_jobset if api_version == JOBSET else of_rayjob


def foreign_toleration(spec: Json) -> Json:
    return {**spec, "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}]}


def anothers_reservation(spec: Json) -> Json:
    return {
        **spec,
        "tolerations": [{"key": RESERVED_FOR, "operator": "Equal", "value": UID, "effect": "NoSchedule"}],
    }


def other_image(spec: Json) -> Json:
    return {**spec, "containers": [{**each, "image": "evil"} for each in objects(spec["containers"])]}


def command(spec: Json) -> Json:
    return {**spec, "containers": [{**each, "command": ["evil"]} for each in objects(spec["containers"])]}


def host_processes(spec: Json) -> Json:
    return {**spec, "hostPID": True}


def system_nodes(spec: Json) -> Json:
    return {**spec, "nodeSelector": {SYSTEM: SYSTEM_VALUE}}


def other_account(spec: Json) -> Json:
    return {**spec, "serviceAccountName": "admin"}


PLANTED_IN_TEMPLATES: Final = (
    foreign_toleration,
    anothers_reservation,
    other_image,
    command,
    host_processes,
    system_nodes,
    other_account,
)


def refusal(write: Callable[[], object]) -> str:
    """What the API server says about a write; empty if it admits it."""
    try:
        write()
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("api_version", "kind", "name"), [(JOBSET, "JobSet", "limited"), ("ray.io/v1", "RayJob", "ray")]
)
def test_a_jobs_image_command_or_label_cannot_be_changed_with_the_controllers_token(
    controller: KubeClient, cluster: LadderCluster, api_version: str, kind: str, name: str
) -> None:
    job = cluster.client.get(api_version, kind, name, NAMESPACE) or {}
    labels: Json = {"example.com/team": "other"}
    planted: list[Json] = [
        *(in_template(api_version, change)(job) for change in PLANTED_IN_TEMPLATES),
        {"metadata": {"labels": labels}},
        {"metadata": {"annotations": labels}},
        {"metadata": {"finalizers": ["example.com/never"]}},
        {"spec": {"ttlSecondsAfterFinished": 1}},
        {"spec": {"entrypoint": "evil"} if kind == "RayJob" else {"managedBy": "example.com/other"}},
    ]
    answers = [
        refusal(
            lambda patch=patch: controller.merge_patch(api_version, kind, name, patch, namespace=NAMESPACE)
        )
        for patch in planted
    ]
    admitted = [patch for patch, answer in zip(planted, answers, strict=True) if not answer]
    assert admitted == [], "a stolen token must run no program"
    assert sum(REFUSED in answer for answer in answers) >= len(answers) - 4

    def written_by_controller() -> str:
        """What the API server says of the controller's own write, which names the version that it was made from."""
        job = cluster.client.get(api_version, kind, name, NAMESPACE) or {}
        moved = in_template(api_version, lambda spec: {**spec, "nodeSelector": {POOL: "cpu"}})(job)
        patch = patches.spec_patch(job, "state", {**obj(moved["spec"]), "suspend": True})
        return refusal(lambda: controller.merge_patch(api_version, kind, name, patch, namespace=NAMESPACE))

    while "has been modified" in (answer := written_by_controller()):
        pass  # its operator wrote first
    assert not answer


def test_a_node_can_be_reserved_and_released_and_nothing_else(
    controller: KubeClient, cluster: LadderCluster
) -> None:
    def current() -> Json:
        return cluster.client.get("v1", "Node", NODE) or {}

    theirs = objects(obj(node()["spec"])["taints"])
    foreign: Json = {"key": "example.com/planted", "effect": "NoExecute"}
    ours: Json = {"key": RESERVED_FOR, "value": UID, "effect": "NoSchedule"}
    planted: list[Json] = [
        {"metadata": {"labels": {"example.com/a": "b"}}},
        {"metadata": {"labels": {POOL: "cpu"}}},
        {"metadata": {"annotations": {"example.com/a": "b"}}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [*theirs, foreign]}},
        {"spec": {"taints": []}},
        {"spec": {"taints": [*theirs, ours]}},
        {
            "metadata": {"labels": {RESERVED_FOR: UID}},
            "spec": {"taints": [*theirs, {**ours, "effect": "NoExecute"}]},
        },
    ]
    for patch in planted:
        answer = refusal(lambda patch=patch: controller.merge_patch("v1", "Node", NODE, patch))
        assert REFUSED in answer, f"{patch} is no reservation"
    for write in (lambda: reserve_patch(current(), UID), lambda: release_patch(current())):
        patch = write()
        assert patch is not None
        controller.merge_patch("v1", "Node", NODE, patch)
    system = "system-0"
    found = cluster.client.get("v1", "Node", system) or {}
    patch = reserve_patch(found, UID)
    assert patch is not None
    assert REFUSED in refusal(lambda: controller.merge_patch("v1", "Node", system, patch))
    reserved = reserve_patch(current(), "another")
    assert reserved is not None
    cluster.client.merge_patch("v1", "Node", NODE, reserved)
    stolen: Json = {"metadata": {"labels": {RESERVED_FOR: UID}}, "spec": {"taints": [*theirs, ours]}}
    assert REFUSED in refusal(lambda: controller.merge_patch("v1", "Node", NODE, stolen))


def test_pods_can_be_asked_for_a_checkpoint_and_ended_and_nothing_else(
    controller: KubeClient, cluster: LadderCluster
) -> None:
    def patch(body: Json, subresource: str | None = None) -> object:
        return controller.merge_patch(
            "v1", "Pod", "limited", body, namespace=NAMESPACE, subresource=subresource
        )

    found = cluster.client.get("v1", "Pod", "limited", NAMESPACE) or {}
    containers: list[Json] = [{**each, "image": "evil"} for each in objects(obj(found["spec"])["containers"])]
    own = objects(obj(found["spec"])["tolerations"])
    planted: list[tuple[Json, str | None]] = [
        ({"metadata": {"labels": {"a": "b"}}}, None),
        ({"metadata": {"annotations": {"a": "b"}}}, None),
        ({"spec": {"containers": [*containers]}}, None),
        ({"spec": {"tolerations": [*own, {"key": "CriticalAddonsOnly", "operator": "Exists"}]}}, None),
        ({"status": {"phase": "Succeeded"}}, "status"),
        ({"status": {"podIP": "10.9.9.9"}}, "status"),
        ({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}}, "status"),
    ]
    for body, subresource in planted:
        assert REFUSED in refusal(lambda body=body, subresource=subresource: patch(body, subresource)), (
            f"{body} is none of the controller's writes"
        )
    patch(patches.checkpoint_request(found, datetime.now(UTC)))
    patch(patches.terminated_pod_status(found, datetime.now(UTC)), "status")
    ended = cluster.client.get("v1", "Pod", "limited", NAMESPACE) or {}
    assert obj(ended["status"])["phase"] == "Failed"


def test_only_placeholders_are_created_without_a_failed_rayjob_and_only_suspended_jobs_deleted(
    controller: KubeClient, cluster: LadderCluster
) -> None:
    good = placeholder()
    spec = obj(good["spec"])
    container = objects(spec["containers"])[0]
    planted = [
        {**good, "spec": {**spec, "containers": [{**container, **change}]}}
        for change in (
            {"image": "evil"},
            {"command": ["evil"]},
            {"args": ["evil"]},
            {"env": [{"name": "A", "value": "b"}]},
        )
    ]
    planted.append({**good, "metadata": {**obj(good["metadata"]), "labels": {}}})
    planted.append({**good, "spec": {**spec, "priorityClassName": ""}})
    planted.append({**good, "spec": {**spec, "automountServiceAccountToken": True}})
    for manifest in planted:
        assert REFUSED in refusal(lambda manifest=manifest: controller.create(manifest))
    controller.create(good)
    cluster.client.delete("v1", "Pod", str(obj(good["metadata"])["name"]), namespace=RESERVATION_NAMESPACE)
    own = {RECREATE: "true", STATE: "state", SUCCESSOR_OF: "ray"}
    for name, marks in (
        ("ray-0a1b2c3d", {}),
        ("other-0a1b2c3d", own),
        ("ray-evil", own),
        ("ray-0a1b2c3d", own),
    ):
        manifest = rayjob(name, marks)
        assert REFUSED in refusal(lambda manifest=manifest: controller.create(manifest)), (
            f"{name} succeeds nothing"
        )
    assert REFUSED in refusal(lambda: controller.create(event("forged", "kubelet")))
    theirs: Json = {"message": "forged", "count": 2}
    assert REFUSED in refusal(
        lambda: controller.merge_patch("v1", "Event", "theirs", theirs, namespace=NAMESPACE)
    )
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "theirs", "namespace": NAMESPACE},
        "spec": {"suspend": True, "template": {"spec": {**obj(pod()["spec"]), "restartPolicy": "Never"}}},
    }
    cluster.client.apply(job, field_manager="test")
    assert REFUSED in refusal(lambda: controller.delete("batch/v1", "Job", "theirs", namespace=NAMESPACE))
    cluster.client.delete("batch/v1", "Job", "theirs", namespace=NAMESPACE)


def test_pods_and_jobs_are_created_in_dry_runs_alone(controller: KubeClient) -> None:
    alone: Json = {"name": "asked", "namespace": NAMESPACE}
    spec: Json = {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}
    job: Json = {"template": {"spec": spec}}
    made: tuple[Json, ...] = (
        {"apiVersion": "v1", "kind": "Pod", "metadata": alone, "spec": spec},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": alone, "spec": job},
    )
    for each in made:
        assert controller.create(each, dry_run=True), f"{each['kind']}: the judgement of a job"
        assert REFUSED in refusal(lambda each=each: controller.create(each)), f"{each['kind']}: it would run"
