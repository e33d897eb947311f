"""Runs the lifecycle of a stack: every step its owner takes, from the first preview to the destroy, with checks."""

import time
from collections.abc import Callable, Collection, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE
from pulumi_holdfast.rehearsal.clouds.azure.cluster import provisioned_cluster
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import AZURE, GCP, InstanceGroups, ScaleSets
from pulumi_holdfast.rehearsal.control_plane.configuration import read_cluster, render_kubeconfig
from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineFailure
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.checks import (
    WRITE_POLICY,
    allowed_foreign_writes,
    first_few,
    left_in_clouds,
    left_in_cluster,
    names,
    protected,
    require_no_changes,
    require_nothing_left,
    retained,
    retained_in_clouds,
    unprotected,
)
from pulumi_holdfast.rehearsal.output import render_table
from pulumi_holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from pulumi_holdfast.rehearsal.scenarios.expectations import unmet_by_default_placement, unmet_by_restart
from pulumi_holdfast.rehearsal.scenarios.gke import Gke
from pulumi_holdfast.rehearsal.scenarios.karpenter import Karpenter
from pulumi_holdfast.rehearsal.scenarios.manifests import (
    JOBSET_ON_SPOT,
    JOBSET_ON_SPOT_GPUS,
    acting_as,
    load_example,
)
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, training_platform
from pulumi_holdfast.rehearsal.scenarios.pod_placement import default_placement, plain_pod
from pulumi_holdfast.rehearsal.scenarios.provisioning import Provisioner
from pulumi_holdfast.rehearsal.scenarios.spot_restart import leave_running, restart_on_spot
from pulumi_holdfast.rehearsal.stacks import Stack
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes
from pulumi_holdfast.rehearsal.stacks.existing_cluster import is_owners, make_existing_cluster, named_cluster
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET

_TOKEN_SECONDS: Final = 600


@dataclass(frozen=True, kw_only=True)
class LifecycleStep:
    """One step: `result` is what it showed, empty if it failed."""

    name: str
    result: str
    seconds: float

    @property
    def row(self) -> tuple[str, str, str]:
        """The step as a row of the table."""
        return (self.name, self.result or "FAILED", f"{self.seconds:.0f} s")


@dataclass(kw_only=True)
class StepReport:
    """The steps of one run; `announce` receives the name of each before it starts.

    `prefix` comes before each name: the stack, in a run of several.
    """

    announce: Callable[[str], None]
    prefix: str = ""
    steps: list[LifecycleStep] = field(default_factory=list[LifecycleStep])

    def of(self, prefix: str) -> "StepReport":
        """Return a report whose steps are among those of this one, with a prefix."""
        return StepReport(announce=self.announce, prefix=f"{prefix}: ", steps=self.steps)

    @contextmanager
    def step(self, step: str) -> Generator[list[str]]:
        """Run one step; the body appends its results to the list. A body that raises has failed."""
        name = f"{self.prefix}{step}"
        self.announce(name)
        results, began = list[str](), time.monotonic()
        try:
            yield results
        except BaseException:
            self._add(name, "", began)
            raise
        self._add(name, "; ".join(results), began)

    def table(self) -> str:
        """Return a table with a row for each step so far."""
        return render_table(("step", "result", "took"), [step.row for step in self.steps])

    def _add(self, name: str, result: str, began: float) -> None:
        self.steps.append(LifecycleStep(name=name, result=result, seconds=time.monotonic() - began))


def create(stack: Stack, report: StepReport, show_plan: Callable[[CommandOutcome], None]) -> None:
    """Preview, bring up, and bring up again. Raises RehearsalError if the second `up` changes something."""
    with stack.session() as session:
        with report.step("preview") as results:
            outcome = _shown(session.preview, show_plan)
            verdicts = f"; {outcome.judgement}" if outcome.packs else ""
            results.append(f"{outcome.changed} to create{verdicts}")
        with report.step("up") as results:
            results.append(f"{session.up(judged=True).changed} created")
        with report.step("a second up") as results:
            require_no_changes("a second up", session.up(judged=True))
            results.append("nothing changed")


def _shown(
    preview: Callable[[], CommandOutcome], show_plan: Callable[[CommandOutcome], None]
) -> CommandOutcome:
    try:
        outcome = preview()
    except EngineFailure as failure:
        show_plan(failure.outcome)
        raise
    show_plan(outcome)
    return outcome


def read_back(stack: Stack, report: StepReport) -> None:
    """Refresh. Raises RehearsalError if the state differs from what was made."""
    with stack.session() as session, report.step("refresh") as results:
        require_no_changes("a refresh", session.refresh())
        results.append("no drift")


def destroy(
    stack: Stack, report: StepReport, client: KubeClient, step: str, before: Collection[str] = ()
) -> None:
    """Destroy a stack. Raises RehearsalError if it leaves something behind, beside what the cluster had `before`."""
    kept, clouds = retained(stack.checkpoint()), stack.simulators(Faults()).clouds
    with stack.session() as session, report.step(step) as results:
        results.append(f"{session.destroy().changed} deleted")
        in_cluster = [each for each in left_in_cluster(client) if each not in before]
        own = [each for each in clouds.objects() if not is_owners(each)]
        require_nothing_left([*left_in_clouds(own, kept), *in_cluster])
        still_there = retained_in_clouds(clouds.objects(), kept)
        results.append(f"retained: {', '.join(still_there)}" if still_there else "nothing is left")


@dataclass(kw_only=True)
class LifecycleRun:
    """The lifecycle of `stack`, whose control plane is up and which holds no resources yet.

    `show_plan` receives the outcome of the preview with the policies' verdicts; `say` prints what happens in a scenario.
    `owners` are the sections in which the owner of an existing cluster differs; `remarks` lists what the simulation cannot show.
    """

    stack: Stack
    report: StepReport
    show_plan: Callable[[CommandOutcome], None]
    say: Callable[[str], None]
    owners: Json = field(default_factory=dict[str, JsonValue])
    remarks: list[str] = field(default_factory=list[str])

    def run(self) -> None:
        """Run every step.

        Raises RehearsalError if a step does not show what it must: a second `up` or a refresh changes something, a job
        does not come back, a destroy leaves something behind.
        """
        with closing(KubeClient.from_kubeconfig(self.stack.kubeconfig)) as client:
            if (existing := named_cluster(self.stack)) is not None:
                with self.report.step("the existing cluster") as results:
                    make_existing_cluster(self.stack, self.owners)
                    results.append(f"{existing}, made by another program")
            create(self.stack, self.report, self.show_plan)
            self.remarks += self.stack.simulators(Faults()).clouds.remarks()
            machines = provisioner_for(self.stack, client)
            platform = training_platform(client, self.stack.name, self.say, machines)
            jobset = self._jobset(platform)
            self._use(platform, jobset)
            self._place_a_plain_pod(platform)
            read_back(self.stack, self.report)
            # Platforms are often taken down while jobs still run.
            leave_running(platform, jobset)
            self._write_as_the_controller(client)
            self.end(client)

    def end(self, client: KubeClient) -> None:
        """Destroy the stack, once its protection is lifted. Raises RehearsalError if the destroy leaves something behind."""
        if protected(self.stack.checkpoint()):
            self._refuse_destroy()
            self._lift_protection()
        destroy(self.stack, self.report, client, "destroy while a job runs")

    def configure(self, settings: Json) -> None:
        """Let the stack have other settings from the next step on."""
        self.stack = replace(self.stack, subject=replace(self.stack.subject, settings=settings))

    def _jobset(self, platform: Platform) -> Json:
        return example_jobset(self.stack, platform, spot_example(platform.provisioner))

    def _use(self, platform: Platform, jobset: Json) -> None:
        with self.report.step("a job loses its spot node") as results:
            shown = restart_on_spot(platform, jobset)
            problems = unmet_by_restart(shown)
            if problems:
                raise RehearsalError(f"the job did not come back as expected: {'; '.join(problems)}")
            pools = ", ".join(sorted({each.pool for each in shown.after}))
            results.append(f"back on {pools} after {shown.seconds:.1f} s, restarts: {shown.restarts}")

    def _place_a_plain_pod(self, platform: Platform) -> None:
        with self.report.step("a pod without any selection") as results:
            shown = default_placement(platform, plain_pod())
            has_gpus = platform.provisioner.has_gpus_on_demand()
            problems = unmet_by_default_placement(shown, has_gpus=has_gpus)
            if problems:
                raise RehearsalError(f"the pod is on the wrong node: {'; '.join(problems)}")
            results.append(f"on {shown.plain.capacity} {shown.plain.machine}, although spot had capacity")

    def _write_as_the_controller(self, client: KubeClient) -> None:
        with self.report.step("foreign writes with the controller's token") as results:
            if client.get("v1", "ServiceAccount", CONTROLLER, CONTROLLER_NAMESPACE) is None:
                results.append("no controller")
                return
            token = client.service_account_token(CONTROLLER_NAMESPACE, CONTROLLER, _TOKEN_SECONDS)
            kubeconfig = self.stack.kubeconfig.with_name(f"kubeconfig.{CONTROLLER}")
            kubeconfig.write_text(
                render_kubeconfig(CONTROLLER, read_cluster(self.stack.kubeconfig), {"token": token})
            )
            controller = KubeClient.from_kubeconfig(kubeconfig)
            objects = [client.list(*kind)[0] for kind in (("v1", "Node"), JOBSET)]
            allowed = allowed_foreign_writes(controller, objects)
            controller.close()
            kubeconfig.unlink()
            if allowed:
                raise RehearsalError(
                    f"{WRITE_POLICY} let the controller label {first_few(allowed)}: check the policy and its binding"
                )
            results.append(f"{len(objects)} refused by {WRITE_POLICY}")

    def _refuse_destroy(self) -> None:
        before = self.stack.checkpoint()
        with self.stack.session() as session, self.report.step("destroy while protected") as results:
            try:
                session.destroy()
            except EngineFailure as refusal:
                gone = len(before.resources) - len(self.stack.checkpoint().resources)
                if gone or "protected" not in str(refusal):
                    raise
                results.append(f"refused for {first_few(names(protected(before)))}; nothing was deleted")
            else:
                raise RehearsalError(
                    f"{self.stack.name} was destroyed in spite of its protection: check the `protect` option of its resources"
                )

    def _lift_protection(self) -> None:
        # Without the policy pack, which refuses a production stack without protection: its owner has decided.
        subject = replace(
            self.stack.subject,
            settings=unprotected(self.stack.subject.settings),
            policy_packs=(),
            policy_settings=(),
        )
        self.stack = replace(self.stack, subject=subject)
        with self.stack.session() as session, self.report.step("up with protected: false") as results:
            results.append(f"{session.up().changed} changed")
            left = protected(self.stack.checkpoint())
            if left:
                raise RehearsalError(
                    f"these resources are still protected with `protected: false`: {first_few(names(left))}"
                )


def provisioner_for(stack: Stack, client: KubeClient) -> Provisioner:
    """Return the provisioner of a stack's cluster: GKE's autoscaler, AKS's autoscaler or Karpenter, else Karpenter."""
    match stack.subject.cloud:
        case "gcp":
            cloud = stack.simulators(Faults()).clouds.state(GCP)
            nodes = ClusterNodes(stack.kubeconfig, GCP)
            return Gke(client=client, groups=InstanceGroups(cloud), nodes=nodes)
        case "azure":
            cloud = stack.simulators(Faults()).clouds.state(AZURE)
            if provisioned_cluster(cloud) is not None:
                return NodeAutoProvisioning(client)
            nodes = ClusterNodes(stack.kubeconfig, AZURE)
            return AksScaleSets(client=client, groups=ScaleSets(cloud), nodes=nodes)
        case _:
            return Karpenter(client)


def example_jobset(stack: Stack, platform: Platform, name: str) -> Json:
    """Return an example JobSet for the cloud of a stack, as the service account of a platform's training namespace."""
    example = load_example(stack.workspace.project_root, name, cloud=stack.subject.cloud)
    return acting_as(example, platform.trainer())


def spot_example(machines: Provisioner) -> str:
    """Return the example JobSet for spot: without GPUs if the stack has such a pool."""
    return JOBSET_ON_SPOT if machines.has_plain_spot() else JOBSET_ON_SPOT_GPUS
