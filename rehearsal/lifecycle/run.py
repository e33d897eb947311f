"""Plays the course of a rehearsal on a stack: every act that its owner will go through, in their order."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from holdfast.rehearsal.lifecycle.checks import (
    kept_in_clouds,
    left_in_clouds,
    left_in_cluster,
    names,
    protected,
    refuse_changes,
    refuse_leftovers,
    retained,
    some,
    unprotected,
)
from holdfast.rehearsal.output import render_table
from holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from holdfast.rehearsal.scenarios.expectations import unmet_by_default_placement, unmet_by_restart
from holdfast.rehearsal.scenarios.gke import Gke
from holdfast.rehearsal.scenarios.karpenter import Karpenter
from holdfast.rehearsal.scenarios.manifests import (
    JOBSET_ON_SPOT,
    JOBSET_ON_SPOT_GPUS,
    acting_as,
    load_example,
)
from holdfast.rehearsal.scenarios.platform import Platform, training_platform
from holdfast.rehearsal.scenarios.pod_placement import default_placement, plain_pod
from holdfast.rehearsal.scenarios.provisioning import Provisioner
from holdfast.rehearsal.scenarios.spot_restart import leave_running, restart_on_spot
from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.azure.node_provisioning import provisioned_cluster
from holdfast.simulator.cluster_autoscaler.groups import GCP
from holdfast.simulator.cluster_autoscaler.scale_sets import AZURE, ScaleSets
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.pulumi import EngineFailure, Outcome
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.stacks import Stack
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes


@dataclass(frozen=True, kw_only=True)
class Act:
    """One act: `seen` is what came of it, empty where it failed."""

    name: str
    seen: str
    seconds: float

    @property
    def row(self) -> tuple[str, str, str]:
        """The act as a line of the table."""
        return (self.name, self.seen or "FAILED", f"{self.seconds:.0f} s")


@dataclass(kw_only=True)
class Programme:
    """The acts of one rehearsal; `announce` is told of each before it begins."""

    announce: Callable[[str], None]
    acts: list[Act] = field(default_factory=list[Act])

    @contextmanager
    def act(self, name: str) -> Generator[list[str]]:
        """Play one act; what the block puts into the list is what was seen. One that raises has failed."""
        self.announce(name)
        seen, began = list[str](), time.monotonic()
        try:
            yield seen
        except BaseException:
            self._note(name, "", began)
            raise
        self._note(name, "; ".join(seen), began)

    def table(self) -> str:
        """Return every act played so far, a line each."""
        return render_table(("act", "seen", "took"), [act.row for act in self.acts])

    def _note(self, name: str, seen: str, began: float) -> None:
        self.acts.append(Act(name=name, seen=seen, seconds=time.monotonic() - began))


@dataclass(kw_only=True)
class Course:
    """A rehearsal of `stack`, whose surroundings are up and which holds nothing yet.

    `judge` is shown the outcome of the preview, with the policies' verdicts; `say` is told what happens in a scene.
    `play` plays every act and raises RehearsalError where one shows what it should not: a second `up` or a refresh
    that changes something, a job that does not come back, a destroy that leaves something behind. `remarks` are
    what it cannot show, once the stack is made.
    """

    stack: Stack
    programme: Programme
    judge: Callable[[Outcome], None]
    say: Callable[[str], None]
    remarks: list[str] = field(default_factory=list[str])

    def play(self) -> None:
        """Play every act."""
        client = KubeClient.from_kubeconfig(self.stack.kubeconfig)
        try:
            self._make()
            self.remarks += self.stack.stand_ins(Faults()).clouds.remarks()
            machines = machines_for(self.stack, client)
            platform = training_platform(client, self.stack.name, self.say, machines)
            jobset = self._jobset(platform)
            self._use(platform, jobset)
            self._place_a_plain_pod(platform)
            self._read_back()
            # Whoever takes a platform down rarely waits until nobody uses it.
            leave_running(platform, jobset)
            if protected(self.stack.checkpoint()):
                self._refuse_destroy()
                self._lift_protection()
            self._destroy(client)
        finally:
            client.close()

    def _make(self) -> None:
        with self.stack.session() as session:
            with self.programme.act("preview") as seen:
                outcome = self._judged(session.preview)
                seen.append(f"{outcome.changed} to create; {len(outcome.verdicts)} policy violations")
            with self.programme.act("up") as seen:
                seen.append(f"{session.up(judged=True).changed} created")
            with self.programme.act("a second up") as seen:
                refuse_changes("a second up", session.up(judged=True))
                seen.append("nothing changed")

    def _judged(self, preview: Callable[[], Outcome]) -> Outcome:
        try:
            outcome = preview()
        except EngineFailure as failure:
            self.judge(failure.outcome)
            raise
        self.judge(outcome)
        return outcome

    def _jobset(self, platform: Platform) -> Json:
        root, cloud = self.stack.workspace.project_root, self.stack.subject.cloud
        example = load_example(root, spot_example(platform.provisioner), cloud=cloud)
        return acting_as(example, platform.trainer())

    def _use(self, platform: Platform, jobset: Json) -> None:
        with self.programme.act("a job loses its spot node") as seen:
            shown = restart_on_spot(platform, jobset)
            problems = unmet_by_restart(shown)
            if problems:
                raise RehearsalError(f"the job did not come back as it should: {'; '.join(problems)}")
            pools = ", ".join(sorted({each.pool for each in shown.after}))
            seen.append(f"back on {pools} after {shown.seconds:.1f} s, restarts: {shown.restarts}")

    def _place_a_plain_pod(self, platform: Platform) -> None:
        with self.programme.act("a pod that asks for nothing") as seen:
            shown = default_placement(platform, plain_pod())
            has_gpus = platform.provisioner.has_gpus_on_demand()
            problems = unmet_by_default_placement(shown, has_gpus=has_gpus)
            if problems:
                raise RehearsalError(f"the pod is not where it should be: {'; '.join(problems)}")
            seen.append(f"on {shown.plain.capacity} {shown.plain.machine}, with room on spot")

    def _read_back(self) -> None:
        with self.stack.session() as session, self.programme.act("refresh") as seen:
            refuse_changes("a refresh", session.refresh())
            seen.append("nothing had drifted")

    def _refuse_destroy(self) -> None:
        before = self.stack.checkpoint()
        with self.stack.session() as session, self.programme.act("destroy, while protected") as seen:
            try:
                session.destroy()
            except EngineFailure as refusal:
                gone = len(before.resources) - len(self.stack.checkpoint().resources)
                if gone or "protected" not in str(refusal):
                    raise
                seen.append(f"refused for {some(names(protected(before)))}; nothing was deleted")
            else:
                raise RehearsalError(f"{self.stack.name} was destroyed although it is protected")

    def _lift_protection(self) -> None:
        # Without the policy pack: of a production stack it refuses just this, and its owner has decided it.
        subject = replace(
            self.stack.subject, settings=unprotected(self.stack.subject.settings), policy_packs=()
        )
        self.stack = replace(self.stack, subject=subject)
        with self.stack.session() as session, self.programme.act("up with protected: false") as seen:
            seen.append(f"{session.up().changed} changed")
            left = protected(self.stack.checkpoint())
            if left:
                raise RehearsalError(f"still protected with `protected: false`: {some(names(left))}")

    def _destroy(self, client: KubeClient) -> None:
        kept = retained(self.stack.checkpoint())
        clouds = self.stack.stand_ins(Faults()).clouds
        with self.stack.session() as session, self.programme.act("destroy, a job running") as seen:
            seen.append(f"{session.destroy().changed} deleted")
            refuse_leftovers([*left_in_clouds(clouds.objects(), kept), *left_in_cluster(client)])
            on_purpose = kept_in_clouds(clouds.objects(), kept)
            seen.append(f"kept on purpose: {', '.join(on_purpose)}" if on_purpose else "nothing is left")


def machines_for(stack: Stack, client: KubeClient) -> Provisioner:
    """Return who buys the machines of a stack's cluster: GKE has an autoscaler of its own, AKS that or a Karpenter."""
    match stack.subject.cloud:
        case "gcp":
            cloud = stack.stand_ins(Faults()).clouds.state(GCP)
            return Gke(client=client, cloud=cloud, nodes=ClusterNodes(stack.kubeconfig, GCP))
        case "azure":
            cloud = stack.stand_ins(Faults()).clouds.state(AZURE)
            if provisioned_cluster(cloud) is not None:
                return NodeAutoProvisioning(client)
            nodes = ClusterNodes(stack.kubeconfig, AZURE)
            return AksScaleSets(client=client, scale_sets=ScaleSets(cloud), nodes=nodes)
        case _:
            return Karpenter(client)


def spot_example(machines: Provisioner) -> str:
    """Return the name of the JobSet that can run on spot: on GPUs only where it must."""
    return JOBSET_ON_SPOT if machines.has_plain_spot() else JOBSET_ON_SPOT_GPUS
