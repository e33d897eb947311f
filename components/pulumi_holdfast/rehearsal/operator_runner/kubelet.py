"""Watches pods and runs a process for each pod of a known controller, and for each training pod that asks for it.

It also serves the two proxies: from the API server to Services and kubelets, and from KubeRay to Ray dashboards.
"""

import asyncio
import contextlib
import logging
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster, read_cluster
from pulumi_holdfast.rehearsal.errors import Cancellation
from pulumi_holdfast.rehearsal.kubernetes import BEGUN, KubeClient, WatchThread
from pulumi_holdfast.rehearsal.operator_runner.connect_proxy import Backend, ConnectProxy, Route, route
from pulumi_holdfast.rehearsal.operator_runner.controllers import (
    CONTROLLERS,
    RunnerContext,
    SimulatedController,
    controller_of,
)
from pulumi_holdfast.rehearsal.operator_runner.operator_pod import OperatorPod
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout, RunnerRecord
from pulumi_holdfast.rehearsal.operator_runner.pod_files import on_this_loop
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import APP, identity_of, should_run
from pulumi_holdfast.rehearsal.operator_runner.ray_dashboard import RayDashboards
from pulumi_holdfast.rehearsal.operator_runner.training import TrainingPods
from pulumi_holdfast.rehearsal.operator_runner.training.logs import LogServer
from pulumi_holdfast.rehearsal.watches import SYNCED, Event, ObjectSelector

# Shorter than the wait of OperatorRunner: the status of a pod reports a controller that never becomes ready.
READY_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Kubelet:
    """The kubelet of the operators' pods and of training pods; runs until SIGTERM or SIGINT.

    `find_program` returns the file of a tool; `market` returns the instance types that a Karpenter on a node can buy;
    `cluster_at` returns the cluster on this machine whose API server has an address.
    """

    def __init__(
        self,
        layout: RunnerLayout,
        find_program: Callable[[str], Path],
        market: Callable[[Json], str],
        cluster_at: Callable[[str], KubeconfigCluster | None] = lambda _: None,
    ) -> None:
        self._layout = layout
        self._find_program = find_program
        self._market = market
        self._cluster_at = cluster_at
        self._client = KubeClient.from_kubeconfig(layout.kubeconfig)
        self._cluster = read_cluster(layout.kubeconfig)
        self._training = TrainingPods(
            self._client,
            self._cluster,
            folder=layout.training,
            logs=layout.logs,
            allowed=layout.folder.parent.resolve(),
        )
        self._pods: dict[str, OperatorPod] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listed = set[str]()
        self._known = asyncio.Event()

    async def run(self) -> None:
        """Run until a signal, then end every process."""
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        shutil.rmtree(self._layout.pods, ignore_errors=True)
        self._layout.pods.mkdir(parents=True, mode=0o700)
        cancellation = Cancellation()
        dashboards = RayDashboards(self._client)
        self._cluster_proxy = dashboards.address
        proxy = await ConnectProxy(self._route).serve(self._layout.egress_socket)
        selection = ObjectSelector(label_selector=f"{APP} in ({','.join(CONTROLLERS)})")
        client = self._client.under(cancellation)
        WatchThread(client, "v1", "Pod", on_this_loop(self._on_pod), selection).start()
        self._training.start(cancellation)
        logs = await LogServer(self._layout.logs, self._training.is_running).serve(
            self._layout.log_socket, self._layout.pki / "admin.crt", self._layout.pki / "admin.key"
        )
        announcing = asyncio.create_task(self._announce())
        try:
            await stopping.wait()
        finally:
            announcing.cancel()
            cancellation.cancel()
            await asyncio.gather(self._end_all(), self._training.end_all())
            proxy.close()
            logs.close()
            for path in (self._layout.record, self._layout.egress_socket, self._layout.log_socket):
                path.unlink(missing_ok=True)

    def _on_pod(self, event: Event) -> None:
        what, pod = event
        if event == BEGUN:
            self._listed.clear()
        elif event == SYNCED:
            # The other pods were deleted while the watch was down.
            for uid in [uid for uid in self._pods if uid not in self._listed]:
                self._end(uid)
            self._known.set()
        elif what == "DELETED":
            self._end(identity_of(pod).uid)
        else:
            self._listed.add(identity_of(pod).uid)
            self._changed(pod)

    async def _announce(self) -> None:
        """Record that the runner is ready when the existing pods are ready, or after READY_SECONDS.

        After a restart, the API server still shows the earlier readiness of the pods.
        """
        await self._known.wait()
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while not all(each.ready for each in self._pods.values()):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.1)
        RunnerRecord(server=self._cluster.server, ready=True).write(self._layout.record)

    def _changed(self, pod: Json) -> None:
        uid = identity_of(pod).uid
        controller = controller_of(pod)
        if controller is None or not should_run(pod):
            self._end(uid)
        elif uid in self._pods:
            self._pods[uid].pod = pod
        else:
            self._begin(uid, pod, controller)

    def _begin(self, uid: str, pod: Json, controller: SimulatedController) -> None:
        context = RunnerContext(
            client=self._client,
            cluster=self._cluster,
            cluster_proxy=self._cluster_proxy,
            folder=self._layout.folder,
            pods=self._layout.pods,
            logs=self._layout.logs,
            kubelets=self._layout.kubeconfig,
            market=self._market,
            cluster_at=self._cluster_at,
        )
        operator_pod = OperatorPod(pod, controller, self._program(controller), context)
        self._pods[uid] = operator_pod
        self._tasks[uid] = asyncio.create_task(operator_pod.run(), name=identity_of(pod).name)
        self._tasks[uid].add_done_callback(lambda task: self._ended(uid, task))

    def _program(self, controller: SimulatedController) -> Path:
        return Path(sys.executable) if controller.module else self._find_program(controller.tool)

    def _end(self, uid: str) -> None:
        if uid in self._tasks:
            self._pods.pop(uid, None)
            self._tasks[uid].cancel()

    def _ended(self, uid: str, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(uid, None)
        self._pods.pop(uid, None)
        if not task.cancelled() and task.exception() is not None:
            _log.error("pod %s cannot run", task.get_name(), exc_info=task.exception())

    async def _end_all(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _route(self, host: str, port: int) -> Route:
        if await asyncio.to_thread(self._client.get, "v1", "Node", host) is not None:
            return Route(socket=self._layout.log_socket)
        services = await asyncio.to_thread(self._client.list, "v1", "Service")
        backends = [
            Backend(pod=operator_pod.pod, ports=operator_pod.ports, ready=operator_pod.ready)
            for operator_pod in self._pods.values()
        ]
        return route(host, port, services, backends)
