"""Jobs on the pools of a ladder, what happens to their pods, and what the fallback controller does about it."""

import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final, cast

from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, name_of
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.kubernetes.karpenter_pool import KWOK
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import LADDER, STATE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.gang_rayjob import gang_rayjob
from tests.support.clusters.fallback import NAMESPACE
from tests.support.clusters.reconciler import Replica
from tests.support.json_objects import obj, objects

FOLLOWS: Mapping[str, str] = {"holdfast.dev/fallback": "true"}
SECONDS = 60
# More than half of the larger machine, so that no two pods share one.
FILLS = "9"


# A pod that ends when its test says so.
NEVER_ENDS: Mapping[str, str] = {"holdfast.dev/terminates-in": "1h"}


def real_jobset(
    name: str,
    *,
    pods: int = 2,
    selector: Mapping[str, str] | None = None,
    rules: bool = True,
    annotations: Mapping[str, str] | None = None,
    **pod_spec: JsonValue,
) -> Json:
    """A JobSet of so many pods that fill a machine each, on the pool `spot-a` unless another is selected.

    `annotations` are its pods'.
    """
    container: Json = {"name": "train", "image": "train:1", "resources": {"requests": {"cpu": FILLS}}}
    pod: Json = {
        "restartPolicy": "Never",
        "nodeSelector": dict(selector or {"holdfast.dev/pool": "spot-a"}),
        "containers": [container],
        **pod_spec,
    }
    disruption: Json = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}
    ignoring: Json = {
        "name": "evicted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    job: Json = {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [disruption]},
        "template": {"metadata": {"annotations": dict(annotations or {})}, "spec": pod},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(FOLLOWS)},
        "spec": {
            "failurePolicy": {"maxRestarts": 100, **({"rules": [ignoring]} if rules else {})},
            "replicatedJobs": [{"name": "worker", "template": {"spec": job}}],
        },
    }


def real_rayjob(
    name: str,
    *,
    annotations: Mapping[str, str] | None = None,
    worker_annotations: Mapping[str, str] | None = None,
    **spec: JsonValue,
) -> Json:
    """A RayJob of two workers on the pool `spot-a`, submitted over HTTP."""
    return gang_rayjob(
        name,
        NAMESPACE,
        pods=2,
        pool="spot-a",
        cpu=FILLS,
        annotations=dict(annotations or {}),
        worker_annotations=dict(worker_annotations or {}),
        spec={"backoffLimit": 5, **spec},
    )


@contextmanager
def applied(client: KubeClient, job: Json) -> Generator[str]:
    """The job's name, for as long as it is there; nothing of it is left afterwards."""
    name = name_of(job)
    client.apply(job, field_manager="test", force=True)
    try:
        yield name
    finally:
        remove(client, job)


def remove(client: KubeClient, job: Json) -> None:
    """Delete a job and wait until its pods are gone."""
    name = name_of(job)
    api_version, kind = str(job["apiVersion"]), str(job["kind"])
    client.delete(api_version, kind, name, namespace=NAMESPACE)
    for pod in pods_of(client, name):
        end(client, pod)
    client.wait_for(
        api_version,
        kind,
        name,
        namespace=NAMESPACE,
        timeout_seconds=SECONDS,
        condition=lambda found: found is None,
        what=f"{name} is gone",
    )
    client.wait_list(
        "v1",
        "Pod",
        namespace=NAMESPACE,
        timeout_seconds=SECONDS,
        condition=lambda pods: not [pod for pod in pods if _is_of(pod, name)],
        what=f"the pods of {name} are gone",
    )


def pods_of(client: KubeClient, name: str) -> list[Json]:
    """The pods whose names begin with a job's."""
    return [pod for pod in client.list("v1", "Pod", namespace=NAMESPACE) if _is_of(pod, name)]


def is_inactive(job: Json) -> bool:
    """Whether JobSet calls a JobSet suspended, with no pod active."""
    status = obj(job["status"])
    conditions = {each["type"]: each["status"] for each in objects(status.get("conditions"))}
    return conditions.get("Suspended") == "True" and all(
        each["active"] == 0 for each in objects(status.get("replicatedJobsStatus"))
    )


def node_of(pod: Json) -> str:
    """The node a pod is on."""
    return str(obj(pod["spec"]).get("nodeName") or "")


def pools_of(client: KubeClient, name: str) -> list[str]:
    """The pools on whose nodes a job's pods are, one for each pod that has a node."""
    pools = {
        name_of(node): str(labels_of(node).get("holdfast.dev/pool")) for node in client.list("v1", "Node")
    }
    return sorted(pools[node_of(pod)] for pod in pods_of(client, name) if node_of(pod) in pools)


def interrupt(client: KubeClient, node: str) -> None:
    """Interrupt a spot machine: Karpenter is notified, drains the node and terminates the machine."""
    for claim in client.list("karpenter.sh/v1", "NodeClaim"):
        if mapping(claim.get("status")).get("nodeName") == node:
            client.delete("karpenter.sh/v1", "NodeClaim", name_of(claim))


def stop_answering(client: KubeClient, node: str) -> None:
    """Silence a machine, and write of it what the node controller does after it has not heard of it for long enough."""
    client.merge_patch("v1", "Node", node, {"metadata": {"annotations": {"holdfast.dev/silent": "true"}}})
    conditions = objects(obj((client.get("v1", "Node", node) or {}).get("status")).get("conditions"))
    unknown = [
        {**each, "status": "Unknown", "reason": "NodeStatusUnknown"} if each.get("type") == "Ready" else each
        for each in conditions
    ]
    if unknown == list(conditions):
        return
    client.merge_patch("v1", "Node", node, {"status": {"conditions": unknown}}, subresource="status")


def vanish(client: KubeClient, node: str) -> None:
    """Remove a machine without notice: nothing was drained or evicted."""
    # The node first: Karpenter would begin to drain one whose NodeClaim goes.
    _drop(client, "v1", "Node", node)
    for claim in client.list("karpenter.sh/v1", "NodeClaim"):
        if mapping(claim.get("status")).get("nodeName") == node:
            _drop(client, "karpenter.sh/v1", "NodeClaim", name_of(claim))


def fail(client: KubeClient, pod: Json, *, exit_code: int = 1) -> None:
    """End a pod's program with an exit code, on a node that is in order."""
    statuses = [
        {**mapping(each), "ready": False, "started": False, "state": {"terminated": _terminated(exit_code)}}
        for each in sequence(mapping(pod.get("status")).get("containerStatuses"))
    ]
    conditions = [
        {**each, "status": "False"} if each.get("type") in {"Ready", "ContainersReady"} else each
        for each in objects(mapping(pod.get("status")).get("conditions"))
    ]
    phase = "Failed" if exit_code else "Succeeded"
    patch: Json = {"status": {"phase": phase, "containerStatuses": statuses, "conditions": conditions}}
    client.merge_patch("v1", "Pod", name_of(pod), patch, namespace=NAMESPACE, subresource="status")


def end(client: KubeClient, pod: Json) -> None:
    """Let a pod that never ends by itself end at last."""
    with suppress(ApiError):  # it may be gone
        patch: Json = {"status": {"phase": "Failed"}}
        client.merge_patch("v1", "Pod", name_of(pod), patch, namespace=NAMESPACE, subresource="status")
    client.delete("v1", "Pod", name_of(pod), namespace=NAMESPACE, grace_seconds=0, propagation="Background")


def annotate(client: KubeClient, pod: Json, **annotations: str) -> None:
    """Set annotations `holdfast.dev/…` on a pod."""
    patch: Json = {
        "metadata": {"annotations": {f"holdfast.dev/{key}": value for key, value in annotations.items()}}
    }
    client.merge_patch("v1", "Pod", name_of(pod), patch, namespace=NAMESPACE)


def _drop(client: KubeClient, api_version: str, kind: str, name: str) -> None:
    client.merge_patch(api_version, kind, name, {"metadata": {"finalizers": None}})
    client.delete(api_version, kind, name, propagation="Background")


def _terminated(exit_code: int) -> Json:
    now = _now()
    return {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": now,
        "finishedAt": now,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_of(pod: Json, name: str) -> bool:
    return name_of(pod).startswith(f"{name}-")


LADDER_SECONDS: Final = 90.0
STOCK: Final = "rehearsal.holdfast.dev/stock"


class Ladder:
    """The FallbackPolicy of the training namespace, and the jobs that follow it."""

    def __init__(self, client: KubeClient, controller: Replica) -> None:
        self.client = client
        self._controller = controller

    def says(self, *tiers: Json, **options: str) -> None:
        """Put a policy of these tiers in force; a tier without a time limit gets one longer than any test."""
        listed = [*({"procurementTimeout": "2h", **each} for each in tiers[:-1]), *tiers[-1:]]
        policy: Json = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": LADDER, "namespace": NAMESPACE},
            "spec": {"tiers": listed, **options},
        }
        # Recreated, so that nothing of the previous policy is left.
        self.client.delete(API_VERSION, KIND, LADDER, namespace=NAMESPACE)
        self.client.wait_for(
            API_VERSION,
            KIND,
            LADDER,
            namespace=NAMESPACE,
            timeout_seconds=LADDER_SECONDS,
            condition=lambda found: found is None,
            what="the policy before is gone",
        )
        self.client.create(policy)

    def is_taken_away(self) -> None:
        """Delete the policy."""
        self.client.delete(API_VERSION, KIND, LADDER, namespace=NAMESPACE)

    def sells(self, pool: str, *, anything: bool) -> None:
        """Have a pool's machines sold out, and none of them left, or on sale again."""
        patch: Json = {"metadata": {"annotations": {STOCK: None if anything else "0"}}}
        self.client.merge_patch(KWOK.api_version, KWOK.kind, pool, patch)
        if not anything:
            self._give_back(pool)

    def _give_back(self, pool: str) -> None:
        of_pool = f"karpenter.sh/nodepool={pool}"
        for claim in self.client.list("karpenter.sh/v1", "NodeClaim", label_selector=of_pool):
            self.client.delete("karpenter.sh/v1", "NodeClaim", name_of(claim))
        self.client.wait_list(
            "karpenter.sh/v1",
            "NodeClaim",
            label_selector=of_pool,
            timeout_seconds=LADDER_SECONDS,
            condition=lambda claims: not claims,
            what=f"no machine of {pool} is left",
        )

    def job(self, name: str, kind: str = "JobSet") -> Json:
        """A job as it is, empty where there is none."""
        return self.client.get(KINDS[kind].api_version, kind, name, NAMESPACE) or {}

    def patch(self, name: str, patch: Json, kind: str = "JobSet") -> None:
        """Change a job as its user does."""
        self.client.merge_patch(KINDS[kind].api_version, kind, name, patch, namespace=NAMESPACE)

    def state(self, name: str, kind: str = "JobSet") -> Mapping[str, object]:
        """What is kept of a job, empty where nothing is."""
        text = annotations_of(self.job(name, kind)).get(STATE)
        return cast("Mapping[str, object]", json.loads(text)) if isinstance(text, str) else {}

    def is_suspended(self, name: str, kind: str = "JobSet") -> bool:
        """Whether a job's spec says so."""
        return obj(self.job(name, kind).get("spec")).get("suspend") is True

    def wait_running(
        self, name: str, pool: str, *, pods: int = 2, kind: str = "JobSet"
    ) -> Mapping[str, object]:
        """Wait until the ladder knows that the whole gang has nodes in a pool; returns what is kept of the job."""

        def runs() -> bool:
            kept = self.state(name, kind)
            return (
                (kept.get("phase"), kept.get("pool")) == ("Running", pool)
                and pools_of(self.client, name).count(pool) >= pods
                and not self.is_suspended(name, kind)
            )

        self.wait(runs, name, f"{name} runs on {pool}", kind)
        return self.state(name, kind)

    def wait_phase(self, name: str, phase: str, kind: str = "JobSet") -> Mapping[str, object]:
        """Wait until a job is in a phase; returns what is kept of it."""
        self.wait(lambda: self.state(name, kind).get("phase") == phase, name, f"{name} is {phase}", kind)
        return self.state(name, kind)

    def wait_said(self, name: str, reason: str, kind: str = "JobSet") -> str:
        """Wait until an Event of a reason is there; returns its message."""
        self.wait(lambda: reason in self.said(name), name, f"{reason} is said of {name}", kind)
        return self.said(name)[reason]

    def said(self, name: str) -> dict[str, str]:
        """The controller's Events about a job: messages by reason, the latest of each."""
        events = [
            each
            for each in self.client.list("v1", "Event", namespace=NAMESPACE)
            if obj(each["involvedObject"]).get("name") == name
            and obj(each.get("source")).get("component") == "holdfast-fallback"
        ]
        return {str(each["reason"]): str(each["message"]) for each in sorted(events, key=_when)}

    def wait(
        self,
        condition: Callable[[], bool],
        name: str,
        what: str,
        kind: str = "JobSet",
        *,
        seconds: float = LADDER_SECONDS,
    ) -> None:
        """Look until something holds of a job."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self._as_it_is(name, what, kind)
            time.sleep(0.1)

    def _as_it_is(self, name: str, what: str, kind: str) -> str:
        pods = [
            f"{obj(pod['metadata'])['name']} {obj(pod['status']).get('phase')} on {obj(pod['spec']).get('nodeName')}"
            for pod in pods_of(self.client, name)
        ]
        children = [
            f"{obj(child['metadata']).get('name')} {child['spec']} {child.get('status')}"
            for child in self.client.list("batch/v1", "Job", namespace=NAMESPACE)
            if name_of(child).startswith(name)
        ]
        job = self.client.get(KINDS[kind].api_version, kind, name, NAMESPACE) or {}
        return (
            f"it never came about: {what}\nstate {self.state(name, kind)}\n"
            f"suspended {self.is_suspended(name, kind)}\npods {pods}\nsaid {self.said(name)}\n"
            f"job {job.get('spec')} {job.get('status')}\nchildren {children}\n"
            + "\n".join(str(line) for line in self._controller.log()[-40:])
        )


def tier(pool: str, **limits: JsonValue) -> Json:
    """A tier of a ladder."""
    return {"pool": pool, **limits}


def _when(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("firstTimestamp"))
