"""A simulated job with a copy in another cluster: both sides have a controller of their own, and home takes the transfer's steps.

A step here is a whole transfer: what happens between its writes is explored in `transfer_world`.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.base_observation import deadline_of, max_cost_of
from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.controller.jobs.observation import CopyStatus
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.other_clusters.copies import copy_of, state_of
from pulumi_holdfast.controller.state_machine.ledger import use_of
from pulumi_holdfast.controller.state_machine.spending_limits import spent_on_demand
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import AFTER_MAX_COST, FINISH_BY, MAX_COST, STATE, WORK, CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Policy, cluster_of, pool_there
from pulumi_holdfast.ladder.quantities import format_duration
from tests.support.builders.fallback_objects import jobset
from tests.support.builders.job_states import LAST, PODS, SPOT, UID, policy
from tests.support.fakes.job_world import JobWorld

_SECOND: Final = timedelta(seconds=1)
_ON_DEMAND: Final = DeclaredFacts(capacity=CapacityType.ON_DEMAND)
_THERE: Final = policy(
    tiers=(SPOT, type(LAST)(pool="on-demand", price=10.0, facts=_ON_DEMAND)), failure_window=None
)


@dataclass(kw_only=True)
class JobElsewhere:
    """The home of a job, and its copy; None while there is none. `restarts_there`: of copies that are gone."""

    home: JobWorld
    there: JobWorld | None = None
    restarts_there: int = 0
    transfers: int = field(default=0)

    def controllers_transfer(self) -> None:
        """Create the copy that home's ladder wants, or take it back; home sees what it is then."""
        state = self.home.state()
        wanted = state is not None and state.phase is Phase.AWAY and bool(cluster_of(state.pool))
        if wanted and self.there is None and not self.home.pods + self.home.leaving:
            self._create()
        elif not wanted and self.there is not None:
            self._remove(self.there)
        self.look()

    def look(self) -> None:
        """Show home what its copy is now."""
        self.home.may_run_here = self.there is None
        self.home.copy = None if self.there is None else self._status(self.there)

    def copy_reconciles(self) -> None:
        if self.there is not None:
            self.there.reconcile()
            self.home.violations += self.there.violations
            self.there.violations = []

    def pass_time(self, time: timedelta) -> None:
        self.home.pass_time(time)
        if self.there is not None:
            self.there.pass_time(time)

    def check(self) -> None:
        """Record a job that runs in both clusters."""
        home, there = self.home, self.there
        if there is not None and there.pods + there.leaving and home.placed and not home.is_suspended:
            home.violations.append("gangs of one job are alive in both clusters")

    def _job(self) -> Json:
        home = self.home
        annotations = {STATE: home.annotation or ""}
        if home.deadline is not None:
            annotations[FINISH_BY] = home.deadline.finish_by.isoformat()
            annotations[WORK] = format_duration(home.deadline.work)
        if home.max_cost is not None:
            annotations[MAX_COST] = f"{home.max_cost.amount:.2f}"
            annotations[AFTER_MAX_COST] = "give-up" if home.max_cost.gives_up else "wait"
        found = jobset(annotations=annotations)
        state = home.state()
        if state is not None:
            annotations[STATE] = write_state(state)
        metadata = found["metadata"]
        assert isinstance(metadata, dict), "the builder's"
        return {**found, "metadata": {**metadata, "uid": UID, "annotations": annotations}}

    def _create(self) -> None:
        home, job = self.home, self._job()
        home.version += 1
        copy = copy_of(JobSetKind(), job, home="home", epoch=1, pool="a-spot")
        self.transfers += 1
        self.there = JobWorld(
            policy=_THERE,
            now=home.now,
            created=home.created,
            deadline=deadline_of(copy, ()),
            max_cost=max_cost_of(copy),
            prices={"on-demand": 10.0},
        )
        self._check_limits(self.there, job)

    def _check_limits(self, there: JobWorld, job: Json) -> None:
        home, state = self.home, state_of(job)
        assert state is not None, "it is away"
        if home.max_cost is not None:
            spent = spent_on_demand(state)
            if (
                there.max_cost is None
                or there.max_cost.amount + spent > max(home.max_cost.amount, spent) + 0.01
            ):
                home.violations.append(f"a copy may spend {there.max_cost}, after {spent} of {home.max_cost}")
        first = there.reconcile().state
        if home.deadline is not None and state.pace is not None and first is not None:
            done = None if first.pace is None else first.pace.work_done
            if done is None or abs(done - min(state.pace.work_done, home.deadline.work)) > _SECOND:
                home.violations.append(f"a copy begins with {done} done, of {state.pace.work_done}")

    def _remove(self, there: JobWorld) -> None:
        """Stop the copy; home reads its last ledger, and then it is gone."""
        there.stop_requested = True
        for _ in range(4):
            there.reconcile()
            there.operator_works()
            there.pods_terminate()
        self.look()
        self.home.reconcile()
        self.restarts_there += there.restarts
        self.there = None
        self.home.version += 1

    def _status(self, there: JobWorld) -> CopyStatus:
        state = there.state()
        if state is None:
            return CopyStatus(pods_expected=PODS, uid="copy", cluster="west")
        return CopyStatus(
            pods_expected=PODS,
            pods_placed=0 if there.is_suspended else there.placed,
            pool=pool_there(state.pool),
            capacity=use_of(state.ledger, state.pool).capacity,
            evictions=state.evictions,
            application_failures=state.application_failures,
            unexplained=state.unexplained,
            is_given_up=state.phase is Phase.GIVEN_UP,
            uid=f"copy-{self.transfers}",
            cluster="west",
            ledger=state.ledger,
            is_closed=state.phase in {Phase.STOPPED, Phase.GIVEN_UP, Phase.FINISHED},
            pace=state.pace,
        )


def is_settled(world: JobWorld) -> bool:
    """Whether a job that its controller has suspended may stay so: it is given up, or its copy runs elsewhere."""
    state = world.state()
    return state is not None and (
        state.phase is Phase.GIVEN_UP or (state.phase is Phase.AWAY and world.copy is not None)
    )


def has_tier_elsewhere(ladder: object) -> bool:
    """Whether a ladder has a tier in another cluster."""
    return isinstance(ladder, Policy) and any(tier.cluster for tier in ladder.tiers)
