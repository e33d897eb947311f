"""A fake of the JobSet controller, the Job controller and kubelets, as far as moves need them, with a short delay."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pulumi_holdfast.controller.kube.client import JOB, JOBSET, NODE, POD
from pulumi_holdfast.ladder.labels import POOL
from tests.support.fakes.api_server import FakeApi, Object

NAMESPACE = "vision"
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


def now() -> datetime:
    """The time of day by the event loop's clock."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def stamp(at: datetime) -> str:
    """A time in Kubernetes' format."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class PlayingJobSet:
    """Runs every JobSet of the API server. `overlaps`: when two gangs of one job ran at the same time."""

    api: FakeApi
    chance: random.Random
    terminates_in: float = 2.0
    overlaps: list[str] = field(default_factory=list[str])
    _made: int = 0
    _failing: set[str] = field(default_factory=set[str])

    async def run(self) -> None:
        """Run until canceled."""
        while True:
            for job in self.api.of(JOBSET):
                await self._play(job)
                self._look_for_overlaps(job["metadata"]["name"])
            await self._collect_garbage()
            await asyncio.sleep(self.chance.uniform(0.05, 0.2))

    def pods(self, name: str) -> list[Object]:
        """The pods of a job that have not ended."""
        return [
            pod
            for pod in self.api.of(POD)
            if pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name
            and pod["status"]["phase"] not in {"Failed", "Succeeded"}
        ]

    async def evict(self, pod: Object) -> None:
        """Evict a pod: it ends a moment later."""
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "lastTransitionTime": stamp(now()),
        }
        await self._change(pod, status={"conditions": [*pod["status"]["conditions"], target]})
        await self._stop(self.api.get(POD, NAMESPACE, pod["metadata"]["name"]))

    async def _play(self, job: Object) -> None:
        name = job["metadata"]["name"]
        await self._end_pods(name)
        child = self.api.get(JOB, NAMESPACE, f"{name}-worker-0")
        if child is None:
            await self.api.put(JOB, _child(job))
            return
        if job["spec"].get("suspend"):
            await self._suspend(job, child)
        elif child["spec"]["suspend"]:
            # As the real controller does: the new template is merged in, so children of an old one must be deleted.
            old, new = (_pod_spec(each) for each in (child, job))
            merged = {**old, **new, "nodeSelector": {**old["nodeSelector"], **new["nodeSelector"]}}
            spec = {**child["spec"], "suspend": False, "template": {"spec": merged}}
            await self._change(child, JOB, spec=spec, status=_suspended(is_suspended=False))
            await self._status(job, suspended=False)
        else:
            await self._keep_gang(job, child)

    async def _collect_garbage(self) -> None:
        """Remove the child Jobs and pods of JobSets that are deleted."""
        jobs = {job["metadata"]["name"] for job in self.api.of(JOBSET)}
        for child in self.api.of(JOB):
            if child["metadata"]["ownerReferences"][0]["name"] not in jobs:
                await self.api.drop(JOB, NAMESPACE, child["metadata"]["name"])
        for pod in self.api.of(POD):
            if (name := pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]) not in jobs:
                await self._stop(pod)
                await self._end_pods(name)

    async def _suspend(self, job: Object, child: Object) -> None:
        if not child["spec"]["suspend"]:
            await self._change(child, JOB, spec={**child["spec"], "suspend": True})
        elif child["status"] != _suspended(is_suspended=True):
            await self._change(child, JOB, status=_suspended(is_suspended=True))
        for pod in self.pods(job["metadata"]["name"]):
            await self._stop(pod)
        if not self.pods(job["metadata"]["name"]):
            await self._count_failure(job)
        await self._status(job, suspended=True)

    async def _count_failure(self, job: Object) -> None:
        """Restart a job whose pods have failed, and count it even while the job is being suspended, as JobSet does."""
        name = job["metadata"]["name"]
        if name not in self._failing:
            return
        self._failing.discard(name)
        known = self.api.get(JOBSET, NAMESPACE, name) or job
        await self._change(job, JOBSET, status={"restarts": known.get("status", {}).get("restarts", 0) + 1})
        for pod in [pod for pod in self.api.of(POD) if _of(pod, name) and pod["status"]["phase"] == "Failed"]:
            await self.api.drop(POD, NAMESPACE, pod["metadata"]["name"])

    async def _keep_gang(self, job: Object, child: Object) -> None:
        name = job["metadata"]["name"]
        pods = self.pods(name)
        going = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        if name in self._failing and not pods:
            await self._count_failure(job)
        elif name in self._failing or going:
            for pod in pods:
                await self._stop(pod)
        elif len(pods) < 2:
            await self.api.put(POD, self._pod(name, child))

    def _pod(self, name: str, child: Object) -> Object:
        self._made += 1
        selector = _pod_spec(child)["nodeSelector"]
        nodes = [node for node in self.api.of(NODE) if node["metadata"]["labels"][POOL] == selector[POOL]]
        return {
            "metadata": {
                "name": f"{name}-{self._made}",
                "namespace": NAMESPACE,
                "uid": f"pod-{self._made}",
                "creationTimestamp": stamp(now()),
                "labels": {**child["metadata"]["labels"], "jobset.sigs.k8s.io/jobset-uid": f"uid-of-{name}"},
            },
            "spec": {
                "nodeSelector": selector,
                **({"nodeName": nodes[0]["metadata"]["name"]} if nodes else {}),
            },
            "status": {"phase": "Running" if nodes else "Pending", "conditions": []},
        }

    async def _stop(self, pod: Object | None) -> None:
        if pod is not None and "deletionTimestamp" not in pod["metadata"]:
            over = now() + timedelta(seconds=self.terminates_in)
            deletion = {
                "deletionTimestamp": stamp(over + timedelta(seconds=30)),
                "deletionGracePeriodSeconds": 30,
            }
            await self._change(pod, metadata={**pod["metadata"], **deletion, "ends": over.timestamp()})

    async def _end_pods(self, name: str) -> None:
        for pod in [each for each in self.api.of(POD) if _of(each, name)]:
            if now().timestamp() < pod["metadata"].get("ends", float("inf")):
                continue
            if any(each["type"] == "DisruptionTarget" for each in pod["status"]["conditions"]):
                ended = {"state": {"terminated": {"exitCode": 143, "finishedAt": stamp(now())}}}
                if pod["status"]["phase"] != "Failed":
                    status = {**pod["status"], "phase": "Failed", "containerStatuses": [ended]}
                    await self._change(pod, status=status)
                    self._failing.add(name)
            else:
                await self.api.drop(POD, NAMESPACE, pod["metadata"]["name"])

    async def _status(self, job: Object, *, suspended: bool) -> None:
        status = _suspended(is_suspended=suspended)
        if job.get("status", {}).get("conditions") != status["conditions"]:
            await self._change(job, JOBSET, status=status)

    async def _change(self, obj: Object, kind: Any = POD, **fields: Object) -> None:
        known = self.api.get(kind, NAMESPACE, obj["metadata"]["name"])
        if known is not None:
            await self.api.put(
                kind, {**known, **{name: {**known.get(name, {}), **new} for name, new in fields.items()}}
            )

    def _look_for_overlaps(self, name: str) -> None:
        pools = {pod["spec"]["nodeSelector"][POOL] for pod in self.pods(name)}
        if len(pools) > 1:
            self.overlaps.append(f"{name} at {now()}: {sorted(pools)}")


def _of(pod: Object, name: str) -> bool:
    return pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name


def _suspended(*, is_suspended: bool) -> Object:
    return {"conditions": [{"type": "Suspended", "status": str(is_suspended)}]}


def _pod_spec(owner: Object) -> Object:
    spec = owner["spec"]
    if "replicatedJobs" in spec:
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    return spec["template"]["spec"]


def _child(job: Object) -> Object:
    name = job["metadata"]["name"]
    owner = {"apiVersion": JOBSET.api_version, "kind": "JobSet", "name": name, "controller": True}
    whole = job["spec"]["replicatedJobs"][0]["template"]
    template = whole["spec"]
    return {
        "metadata": {
            "name": f"{name}-worker-0",
            "namespace": NAMESPACE,
            "labels": {
                **whole.get("metadata", {}).get("labels", {}),
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": "worker",
            },
            "ownerReferences": [{**owner, "uid": job["metadata"]["uid"]}],
        },
        "spec": {**template, "suspend": bool(job["spec"].get("suspend"))},
        "status": {},
    }
