"""Two control planes with JobSet and KubeRay, and what the fallback controller of the first may do in each for transfers."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.kube.access import from_kubeconfig
from pulumi_holdfast.controller.kube.client import ApiError, Client, Unreachable
from pulumi_holdfast.controller.kube.connection import Connection
from pulumi_holdfast.controller.other_clusters.transfers import SomethingRemains, Transfers
from pulumi_holdfast.kubernetes.fallback_controller.access import COPY_RULES, SUBJECT, TRANSFER_RULES
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import (
    COPIES_POLICY,
    HOME_POLICY,
    copies_policy_spec,
    home_policy_spec,
)
from pulumi_holdfast.kubernetes.fallback_controller.write_policy import binding_spec
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    CONTROLLER_NAMESPACE,
    COPY_OF,
    PERMIT,
    RESERVATION_PRIORITY,
    RESERVATION_PRIORITY_CLASS,
    TRANSFER,
)
from pulumi_holdfast.rehearsal.control_plane.configuration import read_cluster, render_kubeconfig
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.soak.fault_proxy import FaultProxy, running_proxy
from tests.support.clusters.admission import is_refused, wait_until_enforced
from tests.support.clusters.control_plane import define_fallback_policies
from tests.support.clusters.controller_rights import limit_controller
from tests.support.clusters.operators import STACK
from tests.support.clusters.reconciler import (
    JOBSET,
    NAMESPACE,
    LoopCluster,
    job_of_kind,
    jobset,
    kind_of,
    loop_cluster,
    wait_until,
)
from tests.support.json_objects import obj

CLUSTER: Final = "elsewhere"
POOL: Final = "spot-b"

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_ACCOUNT: Final = "controller-of-home"
_USER: Final = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{_ACCOUNT}"
_TOKEN_SECONDS: Final = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class TwoClusters:
    """`home` has the jobs, `there` their copies; `front` is between home's controller and the other API server."""

    home: LoopCluster
    there: LoopCluster
    front: FaultProxy

    def step(self, name: str, *, cluster: str) -> None:
        """Let a controller of home that has just started take one step of a job's transfer, whatever becomes of it."""
        asyncio.run(self._step(name, cluster))

    def drive(self, name: str, *, cluster: str, until: Callable[[], bool], what: str) -> None:
        """Take steps until a condition holds."""

        def stepped() -> bool:
            self.step(name, cluster=cluster)
            return until()

        wait_until(stepped, what)

    def remove_leftovers(self) -> None:
        """Let home's controller take one step to remove copies that no transfer needs."""
        asyncio.run(self._remove_leftovers())

    async def _step(self, name: str, cluster: str) -> None:
        async with self._transfers() as transfers:
            with suppress(ApiError, Unreachable, SomethingRemains):
                key = JobKey(kind_of(name).kind, NAMESPACE, name)
                await transfers.step(key, cluster=cluster, pool=POOL)

    async def _remove_leftovers(self) -> None:
        async with self._transfers() as transfers:
            with suppress(ApiError, Unreachable):
                for kind in KINDS:
                    await transfers.remove_leftovers(CLUSTER, NAMESPACE, kind)

    def _transfers(self) -> "_Session":
        return _Session(self.home.kubeconfig, self.front.kubeconfig)

    def stage(self, name: str) -> str:
        """The stage of a job's record, empty without one."""
        annotations = obj(obj(self.home.job(name).get("metadata")).get("annotations"))
        return str(annotations.get(TRANSFER, "- - - ")).split(" ")[3]

    def suspend(self, name: str, *, suspended: bool) -> None:
        """Suspend or resume a job at home, as its ladder does."""
        self.home.change(name, {"spec": {"suspend": suspended}})

    def follow_ladder(self, name: str, wanted: str) -> None:
        """Suspend a job at home before it leaves, and resume it where no transfer holds it, as its ladder does."""
        is_suspended = obj(self.home.job(name)["spec"]).get("suspend") is True
        if wanted and not is_suspended:
            self.suspend(name, suspended=True)
        if not wanted and is_suspended and self.stage(name) in {"", "Home"}:
            self.suspend(name, suspended=False)

    def apply_job(self, name: str) -> None:
        """Create a job at home, wait until it runs there, and suspend it."""
        self.home.apply(job_of_kind(name))
        wait_until(lambda: self.home.runs_on(name, "spot-a"), f"{name} runs at home")
        self.suspend(name, suspended=True)

    def end_at_home(self, name: str) -> None:
        """Write the status of a job at home with the token of its controller, as if a copy of it had failed."""
        kind, client = kind_of(name), KubeClient.from_kubeconfig(self.home.kubeconfig)
        status: Json = kind.ended_status(self.home.job(name), JobOutcome.FAILED, "", datetime.now(UTC))
        try:
            client.merge_patch(
                kind.api_version,
                kind.kind,
                name,
                {"status": status},
                namespace=NAMESPACE,
                subresource="status",
            )
        finally:
            client.close()


class _Session:
    """The controller's part for transfers, with connections of its own."""

    def __init__(self, home: Path, there: Path) -> None:
        self._connections = [
            Connection(lambda: from_kubeconfig(home)),
            Connection(lambda: from_kubeconfig(there)),
        ]

    async def __aenter__(self) -> Transfers:
        home, there = (Client(each) for each in self._connections)
        return Transfers(home, {CLUSTER: there}, home_id=HOME_ID, now=lambda: datetime.now(UTC))

    async def __aexit__(self, *_: object) -> None:
        for each in self._connections:
            await each.close()


HOME_ID: Final = "11111111-2222-3333-4444-555555555555"


@contextmanager
def two_clusters(folder: Path) -> Generator[TwoClusters]:
    """Both clusters with their policies in force, for the length of the block."""
    (folder / "home").mkdir()
    (folder / "there").mkdir()
    with (
        loop_cluster(folder / "home", has_ray=True) as home,
        loop_cluster(folder / "there", has_ray=True) as there,
    ):
        home.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": RESERVATION_PRIORITY_CLASS},
                "value": RESERVATION_PRIORITY,
                "preemptionPolicy": "Never",
            }
        )
        access = allow_copies(home.client, there.client, there.workspace.kubeconfig(STACK))
        with running_proxy(access, folder) as front:
            yield TwoClusters(home=home, there=there, front=front)


def allow_copies(
    home: KubeClient, there: KubeClient, administrator: Path, *, namespace: str = NAMESPACE
) -> Path:
    """Let home's controller run copies in the other cluster's namespace; return the kubeconfig of its account there.

    `administrator`: the other cluster's kubeconfig, beside which that one is written.
    """
    limit_controller(home, transfers=True)
    define_fallback_policies(home)
    for each in (
        *_admission(HOME_POLICY, home_policy_spec()),
        *_role("fallback-transfers", namespace, TRANSFER_RULES, SUBJECT),
    ):
        home.apply(each, field_manager="test", force=True)
    account: Json = {"name": _ACCOUNT, "namespace": CONTROLLER_NAMESPACE}
    for each in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        *_admission(COPIES_POLICY, copies_policy_spec([_USER])),
        *_role("fallback-copies", namespace, COPY_RULES, {"kind": "ServiceAccount", **account}),
    ):
        there.apply(each, field_manager="test", force=True)
    planted = jobset("planted", within=namespace)
    wait_until_enforced(there, lambda client: _refuses_granted_copies(client, planted))
    # Only updates are judged.
    home.apply(planted, field_manager="test")
    wait_until_enforced(home, lambda client: _refuses_to_run_held_jobs(client, planted))
    home.delete(JOBSET, "JobSet", "planted", namespace=namespace)
    home.wait_list(
        "v1",
        "Pod",
        namespace=namespace,
        label_selector="jobset.sigs.k8s.io/jobset-name=planted",
        timeout_seconds=180,
        condition=lambda pods: not pods,
        what="its pods are gone",
    )
    return _kubeconfig(there, administrator)


def _kubeconfig(there: KubeClient, administrator: Path) -> Path:
    """A kubeconfig with a short-lived token of home's account in the other cluster."""
    token = there.service_account_token(CONTROLLER_NAMESPACE, _ACCOUNT, _TOKEN_SECONDS)
    path = administrator.with_name(f"{administrator.name}.{_ACCOUNT}")
    path.write_text(render_kubeconfig(_ACCOUNT, read_cluster(administrator), {"token": token}))
    return path


def _admission(name: str, spec: Json) -> Sequence[Json]:
    return [
        {"apiVersion": _ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": each}
        for kind, each in (
            ("ValidatingAdmissionPolicy", spec),
            ("ValidatingAdmissionPolicyBinding", binding_spec(name)),
        )
    ]


def _role(name: str, namespace: str, rules: Sequence[Json], subject: Json) -> Sequence[Json]:
    metadata: Json = {"name": name, "namespace": namespace}
    binding: Json = {"roleRef": role_ref("Role", name), "subjects": [subject]}
    return [
        {"apiVersion": _RBAC, "kind": "Role", "metadata": metadata, "rules": list(rules)},
        {"apiVersion": _RBAC, "kind": "RoleBinding", "metadata": metadata, **binding},
    ]


def _refuses_granted_copies(client: KubeClient, job: Json) -> bool:
    annotations: Json = {COPY_OF: "v1 x y 1", PERMIT: "Granted"}
    planted = {**job, "metadata": {**obj(job["metadata"]), "annotations": annotations}}
    return is_refused(client, planted, COPIES_POLICY)


def _refuses_to_run_held_jobs(client: KubeClient, job: Json) -> bool:
    held = {**job, "metadata": {**obj(job["metadata"]), "finalizers": [TRANSFER]}}
    return is_refused(client, held, HOME_POLICY)
