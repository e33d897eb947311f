"""A stateful property test: whatever happens to a job, in any order, the invariants hold."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pulumi_holdfast.controller.jobs.observation import Cause, Deadline, JobOutcome, MaxCost
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import Ledger, PoolUse
from pulumi_holdfast.controller.state_machine.decision import Decision, decide
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Failures, NoPolicy, Policy
from tests.support.builders.job_states import HOUR, LAST, LOWER, MINUTE, PODS, SPOT, T0, policy, tier, waiting
from tests.support.fakes.job_elsewhere import JobElsewhere, has_tier_elsewhere, is_settled
from tests.support.fakes.job_world import JobWorld
from tests.support.soak import sized

SPOT_FAILURES = SPOT.max_failures or 0
UP = policy(return_after=HOUR)
LADDERS: tuple[Policy | NoPolicy, ...] = (
    policy(),
    UP,
    policy(failures=Failures.EVICTIONS, return_after=HOUR),
    policy(tiers=(LOWER, LAST), return_after=HOUR),
    policy(tiers=(LOWER, SPOT, LAST)),
    policy(tiers=(tier("c-spot"), LAST)),
    policy(tiers=(LAST,), give_up_after=HOUR, application_failures=1),
    policy(deadline=2 * HOUR, return_after=HOUR),
    NoPolicy(),
    NoPolicy(problems=("spec.tiers: got no tier",)),
)
ON_DEMAND = replace(LAST, price=10.0, facts=DeclaredFacts(capacity=CapacityType.ON_DEMAND))
AT_SPOT = DeclaredFacts(capacity=CapacityType.SPOT)
CAPPED = replace(SPOT, facts=AT_SPOT, max_price=3.0, price=2.0)
WEST = tier("west/a-spot", facts=AT_SPOT)
#: With a tier elsewhere, a price cap, a failure window, and on-demand for deadlines and limits of cost.
PRICED = (
    policy(
        tiers=(CAPPED, replace(LOWER, facts=AT_SPOT), ON_DEMAND), return_after=HOUR, restart_cost=12 * MINUTE
    ),
    policy(tiers=(CAPPED, WEST, ON_DEMAND), return_after=HOUR, restart_cost=12 * MINUTE),
    policy(tiers=(CAPPED, WEST, ON_DEMAND), failure_window=5 * HOUR),
    policy(failure_window=2 * HOUR),
)
BEGUN = (*LADDERS[:4], *PRICED)
times = st.sampled_from([timedelta(seconds=1), MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 5 * HOUR])
jumps = st.sampled_from([MINUTE, -MINUTE, HOUR, -HOUR, 24 * HOUR, -24 * HOUR])


class LadderMachine(RuleBasedStateMachine):
    """A job, its world, and a controller that looks now and then, dies, and acts on what is no longer so."""

    world: JobWorld

    def __init__(self) -> None:
        super().__init__()
        self.late: tuple[Decision, int] | None = None

    @initialize(
        ladder=st.sampled_from(BEGUN),
        checkpoints_on_request=st.booleans(),
        slack=st.sampled_from([None, timedelta(0), HOUR, 10 * HOUR]),
        most=st.sampled_from([None, 5.0, 250.0]),
        gives_up=st.booleans(),
        recreates=st.booleans(),
        goes_away=st.booleans(),
        spent=st.sampled_from([0.0, 4.0]),
    )
    def begin(
        self,
        ladder: Policy | NoPolicy,
        slack: timedelta | None,
        most: float | None,
        spent: float,
        *,
        checkpoints_on_request: bool,
        gives_up: bool,
        recreates: bool,
        goes_away: bool,
    ) -> None:
        work = 20 * HOUR
        self.world = JobWorld(
            policy=ladder,
            checkpoints_on_request=checkpoints_on_request,
            deadline=None if slack is None else Deadline(finish_by=T0 + work + slack, work=work),
            max_cost=None if most is None else MaxCost(amount=most, gives_up=gives_up),
            can_be_recreated=recreates,
        )
        if spent:
            use = PoolUse(pool="on-demand", capacity=CapacityType.ON_DEMAND, cost=spent)
            ledger = Ledger(counted_from=T0, counted_until=T0, uses=(use,))
            self.world.annotation = write_state(waiting(ledger=ledger))
        self.elsewhere = JobElsewhere(home=self.world)
        if goes_away and has_tier_elsewhere(ladder):
            self._go_away(HOUR)

    @rule(dies_after=st.sampled_from([None, None, None, 0, 1]))
    def controller_reconciles(self, dies_after: int | None) -> None:
        self.world.reconcile(dies_after)

    @rule()
    def controller_decides_and_is_slow(self) -> None:
        decision = decide(self.world.record(), self.world.observe(), self.world.policy)
        self.late = decision, self.world.version

    @precondition(lambda self: self.late is not None)
    @rule()
    def slow_controller_acts(self) -> None:
        if self.late is not None:
            self.world.carry_out(*self.late)
            self.late = None

    @rule(time=times)
    def time_passes(self, time: timedelta) -> None:
        self.elsewhere.pass_time(time)

    @precondition(lambda self: self.elsewhere.there is None and has_tier_elsewhere(self.world.policy))
    @rule(runs_for=st.sampled_from([None, None, HOUR, 5 * HOUR]))
    def spot_at_home_is_sold_out(self, runs_for: timedelta | None) -> None:
        """The usual way to a tier elsewhere, which single steps rarely take."""
        self._go_away(runs_for)

    def _go_away(self, runs_for: timedelta | None) -> None:
        world = self.world
        for placed, time in ((PODS, HOUR), (0, 20 * MINUTE), (0, MINUTE), (0, MINUTE)):
            world.reconcile()
            world.operator_works()
            world.pods_terminate()
            world.capacity_comes(placed)
            world.reconcile()
            self.elsewhere.pass_time(time)
        world.reconcile()
        self.elsewhere.controllers_transfer()
        if self.elsewhere.there is not None and runs_for is not None:
            self.elsewhere.copy_reconciles()
            self.elsewhere.there.capacity_comes(PODS)
            self.elsewhere.copy_reconciles()
            self.elsewhere.pass_time(runs_for)

    @rule()
    def controllers_transfer(self) -> None:
        self.elsewhere.controllers_transfer()

    @rule()
    def copy_is_reconciled(self) -> None:
        self.elsewhere.copy_reconciles()

    @precondition(lambda self: self.elsewhere.there is not None)
    @rule(pods=st.sampled_from([PODS, PODS, 0]), is_lost=st.booleans())
    def capacity_comes_and_goes_there(self, pods: int, *, is_lost: bool) -> None:
        there = self.elsewhere.there
        if there is None:
            return
        there.operator_works()
        there.pods_terminate()
        if is_lost:
            there.evict(Cause.EVICTION, 1, is_seen=True)
        else:
            there.capacity_comes(pods)

    @rule(pool=st.sampled_from(["a-spot", "on-demand"]), price=st.sampled_from([None, 1.0, 5.0, 20.0]))
    def price_changes(self, pool: str, price: float | None) -> None:
        self.world.prices = {**self.world.prices}
        self.world.prices.pop(pool, None)
        if price is not None:
            self.world.prices[pool] = price

    @rule()
    def controller_is_replaced_by_another_version(self) -> None:
        self.world.another_version_writes()

    @rule()
    def operator_works(self) -> None:
        self.world.operator_works()

    @rule()
    def operator_restarts(self) -> None:
        self.world.operator_restarts()

    @rule()
    def pods_terminate(self) -> None:
        self.world.pods_terminate()

    @rule(pods=st.sampled_from([PODS, PODS, 0, 2]))
    def capacity_comes_and_goes(self, pods: int) -> None:
        self.world.capacity_comes(pods)

    @rule(placed=st.sampled_from([PODS, PODS, 0, 2]))
    def placeholders_come(self, placed: int) -> None:
        self.world.placeholders_come(placed)

    @rule(cause=st.sampled_from(Cause), pods=st.integers(1, PODS), is_seen=st.booleans())
    def pods_are_lost(self, cause: Cause, pods: int, *, is_seen: bool) -> None:
        self.world.evict(cause, pods, is_seen=is_seen)

    @rule()
    def user_suspends(self) -> None:
        self.world.user_suspends()

    @rule()
    def user_resumes(self) -> None:
        if self.elsewhere.there is None:  # otherwise admission refuses it
            self.world.user_resumes()

    @rule(stops=st.booleans())
    def user_stops_by_annotation_or_withdraws_it(self, *, stops: bool) -> None:
        if stops:
            self.world.user_stops()
        else:
            self.world.user_withdraws_the_stop()

    @rule(ladder=st.sampled_from((*LADDERS, *PRICED)))
    def policy_is_edited(self, ladder: Policy | NoPolicy) -> None:
        self.world.edit_policy(ladder)

    @rule(pool=st.sampled_from(["a-spot", "b-spot", "on-demand"]), exists=st.booleans())
    def pool_comes_and_goes(self, pool: str, *, exists: bool) -> None:
        self.world.missing = self.world.missing - {pool} if exists else self.world.missing | {pool}

    @rule(can=st.booleans())
    def job_can_be_suspended_or_not(self, *, can: bool) -> None:
        self.world.can_be_suspended = can

    @rule(follows=st.booleans())
    def label_is_set(self, *, follows: bool) -> None:
        self.world.follows = follows

    @rule(by=jumps, is_noticed=st.booleans())
    def clock_jumps(self, by: timedelta, *, is_noticed: bool) -> None:
        self.world.jump(by, is_noticed=is_noticed)

    @rule()
    def job_answers(self) -> None:
        self.world.checkpointed_at = self.world.requested_at

    @rule(outcome=st.sampled_from(JobOutcome))
    def job_ends(self, outcome: JobOutcome) -> None:
        if self.elsewhere.there is None:  # nothing of it runs at home meanwhile
            self.world.end(outcome)

    @invariant()
    def invariants_hold(self) -> None:
        self.elsewhere.check()
        assert not self.world.violations

    @invariant()
    def no_outage_moves_a_job_twice(self) -> None:
        world = self.world
        there = self.elsewhere.there.restarts if self.elsewhere.there is not None else 0
        outages = world.outages + self.elsewhere.restarts_there + there
        assert world.moves_by_count * SPOT_FAILURES <= outages

    def teardown(self) -> None:
        """Every path ends: with the world healed, the job runs or has ended, and nothing is held."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.missing, world.can_be_suspended, world.prices = set(), True, {}
        decision = self.come_to_rest()
        self.invariants_hold()
        assert world.reservation is None
        state = world.state()
        if world.stop_requested and world.follows and world.outcome is None and state is not None:
            assert world.suspended_by is not None
        if world.suspended_by == "us" and world.outcome is None:
            assert state is not None
            assert is_settled(world), f"left suspended by us in {state.phase}: {decision}"

    def come_to_rest(self) -> Decision:
        """Complete what is under way in both clusters."""
        decision = self.world.come_to_rest()
        for _ in range(20):
            before = self.world.record(), self.elsewhere.there is None
            self.elsewhere.controllers_transfer()
            decision = self.world.come_to_rest()
            if self.elsewhere.there is not None:
                self.elsewhere.there.come_to_rest()
                self.elsewhere.look()
            if before == (self.world.record(), self.elsewhere.there is None):
                break
        return decision


# `make soak` takes jobs through a million steps.
LadderMachine.TestCase.settings = settings(
    max_examples=sized(60, soak=25_000), stateful_step_count=40, deadline=None
)
TestLadder = LadderMachine.TestCase
