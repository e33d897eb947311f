"""When a drill refuses, which node it takes, which rights that needs, and its report."""

from dataclasses import replace

import pytest

from pulumi_holdfast.cli.kubectl.drill.plan import (
    Taking,
    Target,
    cannot_vanish,
    choose_node,
    plan_lines,
    refusal,
    rights_needed,
    target_of,
)
from pulumi_holdfast.cli.kubectl.drill.recovery import Progress, Stage, begin
from pulumi_holdfast.cli.kubectl.drill.report import DrillResult, report_object, report_text
from pulumi_holdfast.controller.jobs.observation import Deadline
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import FailbackAttempt, FailbackStage, JobState, Pace
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import STATE, CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts
from tests.support.builders.fallback_objects import UID, jobset, ray_worker, worker
from tests.support.builders.job_states import HOUR, LAST, MINUTE, T0, observed, policy, running, tier, waiting
from tests.support.json_objects import obj

CLAIMED = Target(node="n1", claim="claim-1", pods=("train-0",))
PLAIN = Target(node="n1", claim=None, pods=("train-0",))


def asked(state: JobState | None, job: Json | None = None, *, reports: bool = True) -> Problem | None:
    return refusal(job or jobset(), state, policy(), observed(), reports=reports)


def test_job_that_runs_and_has_failures_left_may_lose_a_node() -> None:
    assert asked(running(evictions=1)) is None


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (asked(None), "on no tier"),
        (asked(waiting()), "phase Waiting"),
        (asked(running(), reports=False), "reports no progress"),
        (asked(running(evictions=2)), "2 of 3 failures"),
        (asked(running(evictions=1, application_failures=1)), "2 of 3 failures"),
        (
            asked(running(failback=FailbackAttempt(pool="a-spot", stage=FailbackStage.RESERVING, since=T0))),
            "failback under way",
        ),
        (asked(running(), jobset(status={"restartsCountTowardsMax": 5})), "5 of maxRestarts: 5"),
    ],
)
def test_drill_refuses_what_would_move_end_or_mismeasure_the_job(problem: Problem | None, words: str) -> None:
    assert problem is not None
    assert words in str(problem)
    assert problem.fix


def test_a_job_whose_restarts_do_not_count_evictions_may_lose_a_node() -> None:
    made = jobset(status={"restartsCountTowardsMax": 0})
    rules: list[Json] = [{"name": "EvictionsDoNotCount", "action": "RestartJobSetAndIgnoreMaxRestarts"}]
    for ended_by, may in (({"maxRestarts": 0, "rules": rules}, True), ({"maxRestarts": 0}, False)):
        job: Json = {**made, "spec": {**obj(made["spec"]), "failurePolicy": ended_by}}
        assert (asked(running(), job) is None) is may


@pytest.mark.parametrize(("slack", "is_refused"), [(44, True), (46, False)])
def test_job_with_a_deadline_keeps_slack_for_three_restarts(slack: int, is_refused: bool) -> None:
    spot = tier(facts=DeclaredFacts(capacity=CapacityType.SPOT))
    ladder = policy(tiers=(spot, replace(LAST, facts=DeclaredFacts(capacity=CapacityType.ON_DEMAND))))
    deadline = Deadline(finish_by=T0 + HOUR + slack * MINUTE, work=2 * HOUR, progress=0.5)
    state = running(evictions=2, pace=Pace(work_done=HOUR, counts_from=T0, progress=0.5))
    problem = refusal(jobset(), state, ladder, observed(deadline=deadline), reports=True)
    assert (problem is not None) is is_refused


def test_node_with_the_fewest_pods_is_taken_and_never_a_ray_heads() -> None:
    pods = [worker("a", node="n1"), worker("b", node="n1"), worker("c", node="n2"), worker("d")]
    assert choose_node(pods, None) == "n2"
    assert choose_node(pods, "n1") == "n1"
    assert choose_node(pods, "n9") is None
    head = ray_worker("head", node="n3")
    metadata: Json = {**obj(head["metadata"]), "labels": {"ray.io/node-type": "head"}}
    marked: Json = {**head, "metadata": metadata}
    assert choose_node([marked], None) is None


def test_each_way_to_take_a_node_needs_its_rights_and_no_others() -> None:
    def rights(target: Target, taking: Taking) -> list[str]:
        return [str(each) for each in rights_needed(target, taking, "vision")]

    assert rights(CLAIMED, Taking.NOTICE) == ["delete nodeclaims.karpenter.sh"]
    assert rights(PLAIN, Taking.NOTICE) == [
        "get nodes",
        "patch nodes",
        "create pods/eviction in the namespace vision",
    ]
    assert rights(CLAIMED, Taking.VANISH) == ["patch nodes", "delete nodes", "delete nodeclaims.karpenter.sh"]


def test_node_whose_machine_would_go_on_running_does_not_vanish() -> None:
    assert cannot_vanish(PLAIN) is not None, "two gangs would write one checkpoint"
    assert cannot_vanish(CLAIMED) is None
    assert cannot_vanish(replace(PLAIN, is_simulated=True)) is None


def test_plan_names_the_node_the_pods_the_others_and_the_failure() -> None:
    node: Json = {"metadata": {"name": "n1", "annotations": {"kwok.x-k8s.io/node": "fake"}}}
    claim: Json = {"metadata": {"name": "claim-1"}, "status": {"nodeName": "n1"}}
    target = target_of("n1", node, [claim], [worker("train-0", node="n1"), worker("train-1", node="n2")])
    assert target == replace(CLAIMED, is_simulated=True)
    job = jobset(annotations={STATE: write_state(running(uid=UID, evictions=1))})
    text = "\n".join(plan_lines(job, target, Taking.NOTICE, policy(), ["web/shop"]))
    for words in ("node n1 (notice)", "claim-1", "train-0", "web/shop", "failure 2 of 3 on a-spot"):
        assert words in text, text


def result(*, most: float | None = None, price: float | None = None) -> DrillResult:
    before = Progress(share=0.2, done=200, total=1000)
    after = Progress(share=0.16, done=160, total=1000)
    record = replace(
        begin([worker("a", node="n1")], before, "a-spot"),
        after=after,
        stages={stage: float(second) for second, stage in enumerate(Stage)},
        node_seconds=1800.0,
    )
    return DrillResult(
        job="jobset/train", taking=Taking.NOTICE, target=PLAIN, recovery=record, most_lost=most, price=price
    )


def test_report_has_steps_seconds_and_money() -> None:
    text = report_text(result(price=3.0))
    for words in (
        "200 of 1000 steps",
        "160 of 1000 steps",
        "40 steps, 4.00% of the work",
        "1.5000 (0.500 node-hours",
    ):
        assert words in text, text
    found = report_object(result(price=3.0))
    assert (found["stepsLost"], found["cost"], found["nodeHours"]) == (40, 1.5, 0.5)


@pytest.mark.parametrize(("most", "fails"), [(None, False), (40, False), (39, True)])
def test_more_steps_than_allowed_fail_the_drill(most: float | None, fails: bool) -> None:
    assert (result(most=most).problem is not None) is fails


def test_job_that_did_not_recover_fails_the_drill() -> None:
    short = replace(result(), recovery=replace(result().recovery, stages={Stage.LOST: 1.0}))
    assert short.problem is not None
    assert "200 of 1000" in short.problem
