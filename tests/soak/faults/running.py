"""A fault run from its first job to its verdict."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from holdfast.fallback.policy.parser import parse_policy
from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.rehearsal.timeline.witness import Witness
from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from tests.soak.fault_proxy.front import standing_front
from tests.soak.faults.arena import NAMESPACE, PODS, job, job_name, ladder
from tests.soak.faults.controller import kept_controller
from tests.soak.faults.deadly_write import DeadlyWrite
from tests.soak.faults.ground import Ground
from tests.soak.faults.injecting import Injector
from tests.soak.faults.outcome import Outcome, judged
from tests.soak.faults.plan import Plan
from tests.soak.faults.record import Record
from tests.soak.faults.servers import Servers
from tests.soak.faults.settling import Settling

# How long a round may take: a job that yields to another pauses for up to 4 minutes, and what a job more asks of the
# control plane takes it up to a second for each of its moves.
_ROUND_SECONDS: Final = 400.0
_ROUND_SECONDS_PER_JOB: Final = 4.0
_MOST_GRACE: Final = 3
# Every job more that moves at the same time keeps the same two cores busy for as long.
_LAG: Final = timedelta(seconds=3)
_LAG_PER_JOB: Final = timedelta(milliseconds=50)
_AT_ONCE: Final = 8
_RETURNING: Final = {"returnAfter": "45s", "holdTimeout": "40s"}


def run_faults(ground: Ground, plan: Plan, *, say: Callable[[str], None]) -> Outcome:
    """Give the faults of a plan to so many jobs, and hold what became of them against the ladder's own function.

    Raises RehearsalError where a round does not come to rest.
    """
    random = Random(plan.seed)
    policy = ladder(plan.failures, _RETURNING if plan.returns else {})
    names = [job_name(number) for number in range(plan.jobs)]
    ground.prepare(policy)
    with ExitStack() as stack:
        front = stack.enter_context(
            standing_front(ground.layout.kubeconfig, ground.folder, token=ground.token())
        )
        deadly_write = DeadlyWrite()
        front.fate = deadly_write.fate
        controller = stack.enter_context(
            kept_controller(front.kubeconfig, ground.folder / "chaos-controller.log")
        )
        witness = stack.enter_context(Witness(ground.client, NAMESPACE).watching())
        injector = Injector(
            client=ground.client,
            witness=witness,
            deadly_write=deadly_write,
            controller=controller,
            servers=Servers(ground.layout),
            say=say,
        )
        settling = Settling(
            witness=witness,
            injector=injector,
            jobs=names,
            seconds=_ROUND_SECONDS + _ROUND_SECONDS_PER_JOB * plan.jobs,
        )
        jobs = [job(number, ends_in=f"{random.randint(0, _MOST_GRACE)}s") for number in range(plan.jobs)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(ground.apply, jobs))
        say(f"{plan.jobs} jobs made")
        settling.wait()
        say("every job runs")
        _give(plan, injector, settling, say)
        while True:
            with witness.look():
                # A job may have set out for a better tier since, which is no end to be judged.
                if settling.is_settled():
                    return _outcome(witness, names, injector, _parsed(policy), writes=front.writes)
            settling.wait()


def _give(plan: Plan, injector: Injector, settling: Settling, say: Callable[[str], None]) -> None:
    for number, faults in enumerate(plan.rounds, 1):
        say(f"round {number} of {len(plan.rounds)}")
        for fault in faults:
            injector.give(fault)
        settling.wait()
        if injector.deadly_write.spare():
            say("no write was left for the controller to die at")
        settling.pause()
    injector.recover()
    settling.wait()


def _parsed(policy: Json) -> Policy:
    parsed = parse_policy(policy)
    if isinstance(parsed, NoPolicy):
        raise RehearsalError(f"the run's own policy cannot be used: {'; '.join(parsed.problems)}")
    return parsed


def _outcome(
    witness: Witness, names: Sequence[str], injector: Injector, policy: Policy, *, writes: int
) -> Outcome:
    until, kills = datetime.now(UTC), tuple(injector.kills)
    records = [
        Record(
            trace=witness.job(name),
            pods=PODS,
            vanished=injector.vanished,
            until=until,
            kills=kills,
            lag=_LAG + _LAG_PER_JOB * len(names),
        )
        for name in names
    ]
    return judged(
        records, policy, overlaps=witness.overlaps, deaths=injector.controller.deaths, writes=writes
    )
