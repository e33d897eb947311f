"""Prepares a cluster for a fault run, and watches it; the cluster is removed after the run."""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE
from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.scenarios.namespace_clone import clone_namespace
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, JobTimelineRecorder
from tests.soak.fault_proxy import FaultProxy, running_proxy
from tests.soak.faults.injection import Injector, KillAtWrite
from tests.soak.faults.leftovers import read_leftovers
from tests.soak.faults.manifests import NAMESPACE, pool_objects
from tests.soak.faults.nodes import NodeRecorder
from tests.soak.faults.processes import Servers, restarted_controller

_FIELD_MANAGER: Final = "holdfast-faults"
_TOKEN_SECONDS: Final = 24 * 3600
_AT_ONCE: Final = 8
# The controller looks for reservations of jobs that do not exist any more once a minute.
_RELEASE_SECONDS: Final = 180.0


@dataclass(frozen=True, kw_only=True)
class FaultEnvironment:
    """A cluster with JobSet, Karpenter's simulated provider, FallbackPolicies and a training namespace.

    `folder` receives the logs.
    """

    client: KubeClient
    layout: Layout
    folder: Path

    def apply(self, *objects: Json) -> None:
        """Create or change objects."""
        for each in objects:
            self.client.apply(each, field_manager=_FIELD_MANAGER, force=True)

    def apply_at_once(self, objects: Iterable[Json]) -> None:
        """Create or change objects, several at the same time."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self.apply, objects))

    def token(self) -> str | None:
        """Return a token of the controller's service account; None if there is none, and the administrator is used."""
        if self.client.get("v1", "ServiceAccount", CONTROLLER, CONTROLLER_NAMESPACE) is None:
            return None
        return self.client.service_account_token(CONTROLLER_NAMESPACE, CONTROLLER, _TOKEN_SECONDS)

    def prepare(self, *objects: Json) -> None:
        """Create the pools and the namespace with `objects`, and stop the controller of the stack."""
        self._stop_controller()
        self.apply(*pool_objects())
        clone_namespace(self.client, NAMESPACE, *objects)

    def _stop_controller(self) -> None:
        if self.client.get("apps/v1", "Deployment", CONTROLLER, CONTROLLER_NAMESPACE) is None:
            return
        patch: Json = {"spec": {"replicas": 0}}
        self.client.merge_patch("apps/v1", "Deployment", CONTROLLER, patch, namespace=CONTROLLER_NAMESPACE)
        self.client.wait_list(
            "v1",
            "Pod",
            namespace=CONTROLLER_NAMESPACE,
            timeout_seconds=WAIT_SECONDS,
            condition=lambda pods: not pods,
            what=f"{CONTROLLER} has no pods",
        )


@dataclass(frozen=True, kw_only=True)
class WatchedCluster:
    """A cluster with its controller behind a proxy: what breaks them, and what records its jobs and nodes."""

    injector: Injector
    recorder: JobTimelineRecorder
    nodes: NodeRecorder
    proxy: FaultProxy


@contextmanager
def watched(
    environment: FaultEnvironment,
    *arguments: str,
    kinds: Sequence[tuple[str, str]] = (JOBSET,),
    say: Callable[[str], None],
) -> Generator[WatchedCluster]:
    """Run a cluster's controller with `arguments`, and record jobs of `kinds`, for the length of the block."""
    kill_at_write = KillAtWrite()
    log = environment.folder / "faults-controller.log"
    with running_proxy(environment.layout.kubeconfig, environment.folder, token=environment.token()) as proxy:
        proxy.decide = kill_at_write.decide
        with (
            restarted_controller(proxy.kubeconfig, log, *arguments) as controller,
            JobTimelineRecorder(environment.client, NAMESPACE, kinds).recording() as recorder,
            NodeRecorder(environment.client).recording() as nodes,
        ):
            injector = Injector(
                client=environment.client,
                recorder=recorder,
                kill_at_write=kill_at_write,
                controller=controller,
                servers=Servers(environment.layout),
                break_watches=proxy.break_watches,
                say=say,
            )
            yield WatchedCluster(injector=injector, recorder=recorder, nodes=nodes, proxy=proxy)


def wait_for_releases(client: KubeClient) -> Sequence[str]:
    """Wait until no reservation is left that no job needs; return those that are."""
    deadline = time.monotonic() + _RELEASE_SECONDS
    while (left := read_leftovers(client)) and time.monotonic() < deadline:
        threading.Event().wait(1)
    return left
