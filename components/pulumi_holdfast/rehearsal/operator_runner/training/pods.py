"""All training pods that run as processes here, and the nodes that they are bound to."""

import asyncio
import logging
import os
import shutil
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.controller.kube.objects import annotations_of, name_of, namespace_of, uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS, KubeconfigCluster
from pulumi_holdfast.rehearsal.errors import Cancellation
from pulumi_holdfast.rehearsal.kubernetes import BEGUN, KubeClient, WatchThread
from pulumi_holdfast.rehearsal.operator_runner.pod_files import on_this_loop
from pulumi_holdfast.rehearsal.operator_runner.training.pod import Machine, TrainingPod
from pulumi_holdfast.rehearsal.operator_runner.training.status import (
    PodOutcome,
    described,
    has_ended,
    is_deleted,
    rejection,
    shortage,
)
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import end_marked
from pulumi_holdfast.rehearsal.operator_runner.training.volumes import VolumeSources
from pulumi_holdfast.rehearsal.watches import SYNCED, Event, ObjectSelector

#: Annotations of a node whose machine no longer responds.
_SILENT: Final = ("holdfast.dev/silent", "rehearsal.holdfast.dev/silent")

_log = logging.getLogger(__name__)


class TrainingPods:
    """Runs the pods that are marked to run here, until `end_all`.

    `folder` has their files, `logs` their logs; they mount nothing outside of `allowed`.
    """

    def __init__(
        self, client: KubeClient, cluster: KubeconfigCluster, *, folder: Path, logs: Path, allowed: Path
    ) -> None:
        self._client = client
        self._machine = Machine(
            client=client,
            sources=VolumeSources(client=client, cluster=cluster, allowed=allowed),
            folder=folder,
            logs=logs,
            mark=str(folder),
            rejects=self._rejects,
        )
        self._pods: dict[str, TrainingPod] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listed = set[str]()
        # An event of an earlier state of a pod may arrive after its end.
        self._over = set[str]()
        self._silent = set[str]()

    def start(self, cancellation: Cancellation) -> None:
        """End what an earlier runner left, and begin to watch. Needs the running event loop."""
        end_marked(self._machine.mark)
        shutil.rmtree(self._machine.folder, ignore_errors=True)
        self._machine.folder.mkdir(parents=True, mode=0o700)
        client = self._client.under(cancellation)
        WatchThread(client, "v1", "Node", on_this_loop(self._on_node)).start()
        selection = ObjectSelector(label_selector=f"{RUNS.key}={RUNS.value}")
        WatchThread(client, "v1", "Pod", on_this_loop(self._on_pod), selection).start()

    async def end_all(self) -> None:
        """Kill every process; the next runner reports the pods."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def is_running(self, namespace: str, name: str) -> bool:
        """Whether a pod may still write logs."""
        return any(
            (namespace_of(each.pod), name_of(each.pod)) == (namespace, name) for each in self._pods.values()
        )

    def _on_node(self, event: Event) -> None:
        what, node = event
        if event in (BEGUN, SYNCED):
            return
        name, notes = name_of(node), annotations_of(node)
        if what != "DELETED" and not any(notes.get(each) for each in _SILENT):
            self._silent.discard(name)
            return
        # The machine is lost: everything on it ends at once, and nothing reports it.
        if what != "DELETED":
            self._silent.add(name)
        for uid in [uid for uid, each in self._pods.items() if node_of(each.pod) == name]:
            _log.info("training pod %s is lost with its node", described(self._pods[uid].pod))
            self._kill(uid)

    def _on_pod(self, event: Event) -> None:
        what, pod = event
        if event == BEGUN:
            self._listed.clear()
        elif event == SYNCED:
            for uid in [uid for uid in self._pods if uid not in self._listed]:
                self._kill(uid)
        elif what == "DELETED":
            self._kill(uid_of(pod))
            self._over.discard(uid_of(pod))
        else:
            self._listed.add(uid_of(pod))
            self._changed(pod)

    def _changed(self, pod: Json) -> None:
        uid = uid_of(pod)
        if uid in self._pods:
            self._pods[uid].update(pod)
        elif (
            uid not in self._over and node_of(pod) and not has_ended(pod) and node_of(pod) not in self._silent
        ):
            self._begin(uid, TrainingPod(pod, self._machine))

    def _begin(self, uid: str, pod: TrainingPod) -> None:
        self._pods[uid] = pod
        # A pod that was running had its processes with an earlier runner. One that restarts starts again, as on a machine.
        was_running = mapping(pod.pod.get("status")).get("phase") == "Running"
        is_lost = was_running and mapping(pod.pod.get("spec")).get("restartPolicy") == "Never"
        if is_deleted(pod.pod):
            pod.update(pod.pod)
        self._tasks[uid] = asyncio.create_task(pod.lose() if is_lost else pod.run(), name=described(pod.pod))
        self._tasks[uid].add_done_callback(lambda task: self._ended(uid, task))

    def _kill(self, uid: str) -> None:
        if uid in self._tasks:
            self._tasks[uid].cancel()

    def _ended(self, uid: str, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(uid, None)
        self._pods.pop(uid, None)
        self._over.add(uid)
        if not task.cancelled() and task.exception() is not None:
            _log.error("training pod %s cannot run", task.get_name(), exc_info=task.exception())

    def _rejects(self, pod: Json) -> PodOutcome | None:
        here = [(each.pod, each.is_admitted) for each in list(self._pods.values())]
        if lack := shortage(pod, here, os.cpu_count() or 1):
            return PodOutcome(phase="Pending", reason="OutOfpods", message=lack)
        node = self._client.get("v1", "Node", node_of(pod))
        others = [
            each
            for each in self._client.list("v1", "Pod")
            if node_of(each) == node_of(pod) and uid_of(each) != uid_of(pod) and not has_ended(each)
        ]
        return None if node is None else rejection(pod, node, others)
