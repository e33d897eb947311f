"""Runs the lifecycle of two stacks between which jobs move: home is up first, then the other cluster, then the tier there."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.aws.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine import CommandOutcome
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.connected_settings import StackSettings, accepting, alone, leaving
from pulumi_holdfast.rehearsal.lifecycle.run import (
    LifecycleRun,
    StepReport,
    create,
    example_jobset,
    provisioner_for,
    read_back,
)
from pulumi_holdfast.rehearsal.scenarios.elsewhere import (
    Site,
    move_there_and_back,
    round_trip,
    tier_elsewhere,
    unmet_by_round_trip,
)
from pulumi_holdfast.rehearsal.scenarios.manifests import JOBSET_ON_SPOT, JOBSET_ON_SPOT_GPUS
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, begins_with_gpus
from pulumi_holdfast.rehearsal.scenarios.spot_restart import leave_running
from pulumi_holdfast.rehearsal.stacks import Stack
from pulumi_holdfast.rehearsal.stacks.clusters_here import issuer_of

_AWS: Final = "aws"
#: What a rehearsal of two stacks does not show.
REMARKS: Final = (
    "the 15 minutes that EKS takes to trust an issuer",
    "the bytes of checkpoints and the permission to read them: the scenario carries their last step, by the address of the pods",
    "one account for both stacks: each has a simulated account of its own",
)


@dataclass(kw_only=True)
class TwoStackRun:
    """The lifecycles of `home` and `there`, whose control planes are up and which hold no resources yet.

    `show_plan` receives the outcome of each preview; `say` prints what happens in the scenario.
    """

    home: Stack
    there: Stack
    report: StepReport
    show_plan: Callable[[CommandOutcome], None]
    say: Callable[[str], None]
    remarks: list[str] = field(default_factory=list[str])

    def run(self) -> None:
        """Run every step. Raises RehearsalError if a step does not show what it must."""
        settings = _settings(self.home), _settings(self.there)
        home, there = self._lifecycle(self.home), self._lifecycle(self.there)
        with (
            closing(KubeClient.from_kubeconfig(self.home.kubeconfig)) as at_home,
            closing(KubeClient.from_kubeconfig(self.there.kubeconfig)) as beyond,
        ):
            home.configure(alone(settings[0]))
            create(home.stack, home.report, self.show_plan)
            there.configure(accepting(settings[1], settings[0], issuer=_issuer(home.stack)))
            create(there.stack, there.report, self.show_plan)
            home.configure(leaving(*settings))
            connected = self.report.of(f"{self.home.name} with a tier in {self.there.name}")
            create(home.stack, connected, self.show_plan)
            self.remarks += sorted({each for run in (home, there) for each in _cloud_remarks(run.stack)})
            self.remarks += REMARKS
            sites, jobset = self._move(at_home, beyond)
            for run in (home, there):
                read_back(run.stack, run.report)
            self._disconnect(home, alone(settings[0]))
            # The other stack first: as long as it exists, it refers to home's checkpoints.
            for run, site in ((there, sites[1]), (home, sites[0])):
                leave_running(site.platform, jobset)
                run.end(site.platform.client)

    def _lifecycle(self, stack: Stack) -> LifecycleRun:
        report = self.report.of(stack.name)
        return LifecycleRun(stack=stack, report=report, show_plan=self.show_plan, say=self.say)

    def _move(self, at_home: KubeClient, beyond: KubeClient) -> tuple[tuple[Site, Site], Json]:
        name = f"a job moves to {self.there.name} and returns"
        with self.report.of(self.home.name).step(name) as results:
            namespace, policy = tier_elsewhere(at_home.list("holdfast.dev/v1alpha1", "FallbackPolicy"))
            sites = (self._site(self.home, at_home, namespace), self._site(self.there, beyond, namespace))
            example = JOBSET_ON_SPOT_GPUS if begins_with_gpus(policy) else JOBSET_ON_SPOT
            jobset = example_jobset(self.home, sites[0].platform, example)
            shown = move_there_and_back(*sites, jobset)
            problems = unmet_by_round_trip(shown, home=self.home.name, there=self.there.name)
            if problems:
                raise RehearsalError(f"the job did not move and return as expected: {'; '.join(problems)}")
            results.append(round_trip(shown))
        return sites, jobset

    def _site(self, stack: Stack, client: KubeClient, namespace: str) -> Site:
        platform = Platform(
            client=client,
            namespace=namespace,
            say=lambda line: self.say(f"{stack.name}: {line}"),
            machines=provisioner_for(stack, client),
        )
        return Site(name=stack.name, platform=platform)

    def _disconnect(self, home: LifecycleRun, settings: Json) -> None:
        home.configure(settings)
        with home.stack.session() as session, home.report.step("up without the tier elsewhere") as results:
            results.append(f"{session.up().changed} changed")


def connected(home: Stack, there: Stack) -> tuple[Stack, Stack]:
    """Return both stacks with one state of the engine, in which they can refer to each other.

    Raises RehearsalError for stacks between which no job can move.
    """
    if home.name == there.name:
        raise RehearsalError(f"--to {there.name} is the stack itself: name a stack in another region")
    for stack in (home, there):
        if stack.subject.cloud != _AWS:
            raise RehearsalError(
                f"{stack.name} is a stack on {stack.subject.cloud}: name two stacks on AWS. The services that exchange "
                "tokens for GKE and AKS are not simulated"
            )
    return home, replace(there, backend=home.place)


def _settings(stack: Stack) -> StackSettings:
    reference = f"organization/{stack.subject.name}/{stack.name}"
    return StackSettings(name=stack.name, reference=reference, settings=stack.subject.settings)


def _cloud(stack: Stack) -> CloudState:
    return stack.simulators(Faults()).clouds.state(_AWS)


def _cloud_remarks(stack: Stack) -> list[str]:
    return stack.simulators(Faults()).clouds.remarks()


def _issuer(stack: Stack) -> str:
    """The issuer of a stack's tokens: what `pulumi stack output issuer` prints."""
    (cluster,) = _cloud(stack).read().of_type(CLUSTER)
    return issuer_of(cluster.outputs)
