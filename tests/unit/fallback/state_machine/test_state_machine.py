"""A stateful property test: whatever happens to a job, in any order, the invariants hold."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.fallback.state_machine.decision import Decision, decide
from holdfast.fallback.state_machine.observation import Cause, Outcome
from holdfast.fallback.state_machine.state import Phase
from holdfast.scheduling.ladder import Failures
from tests.support.builders.job_states import HOUR, LAST, LOWER, MINUTE, PODS, SPOT, policy, tier
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
times = st.sampled_from([timedelta(seconds=1), MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 5 * HOUR])
jumps = st.sampled_from([MINUTE, -MINUTE, HOUR, -HOUR, 24 * HOUR, -24 * HOUR])


class LadderMachine(RuleBasedStateMachine):
    """A job, its world, and a controller that looks now and then, dies, and acts on what is no longer so."""

    world: JobWorld

    def __init__(self) -> None:
        super().__init__()
        self.late: tuple[Decision, int] | None = None

    @initialize(ladder=st.sampled_from(LADDERS[:4]), checkpoints_on_request=st.booleans())
    def begin(self, ladder: Policy | NoPolicy, *, checkpoints_on_request: bool) -> None:
        self.world = JobWorld(policy=ladder, checkpoints_on_request=checkpoints_on_request)

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
        self.world.now += time

    @rule()
    def controller_is_replaced_by_another_version(self) -> None:
        self.world.another_version_writes()

    @rule()
    def operator_works(self) -> None:
        self.world.operator_works()

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
        self.world.user_resumes()

    @rule(stops=st.booleans())
    def user_stops_by_annotation_or_withdraws_it(self, *, stops: bool) -> None:
        if stops:
            self.world.user_stops()
        else:
            self.world.user_withdraws_the_stop()

    @rule(ladder=st.sampled_from(LADDERS))
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

    @rule(outcome=st.sampled_from(Outcome))
    def job_ends(self, outcome: Outcome) -> None:
        self.world.end(outcome)

    @invariant()
    def invariants_hold(self) -> None:
        assert not self.world.violations, f"{self.world.violations}"

    @invariant()
    def no_outage_moves_a_job_twice(self) -> None:
        world = self.world
        assert world.moves_by_count * SPOT_FAILURES <= world.restarts, (
            "each move by count costs three outages"
        )

    def teardown(self) -> None:
        """Every path ends: with the world healed, the job runs or has ended, and nothing is held."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.missing, world.can_be_suspended = set(), True
        decision = world.come_to_rest()
        self.invariants_hold()
        assert world.reservation is None, "capacity without a user is still reserved"
        state = world.state()
        if world.stop_requested and world.follows and world.outcome is None and state is not None:
            assert world.suspended_by is not None, "its user asks to stop it"
        if world.suspended_by == "us" and world.outcome is None:
            assert state is not None, "a job that we suspended was forgotten"
            assert state.phase is Phase.GIVEN_UP, f"left suspended by us in {state.phase}: {decision}"


# `make model` takes the same jobs through a million steps.
LadderMachine.TestCase.settings = settings(
    max_examples=sized(60, soak=2000), stateful_step_count=40, deadline=None
)
TestLadder = LadderMachine.TestCase
