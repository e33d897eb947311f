"""A run completes what a killed run left behind."""

import os
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.rehearsal.engine import EngineKilled
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from tests.soak.crash.proving import prove, prove_in_sequence, run_uninterrupted
from tests.soak.crash.selection import sample
from tests.soak.crash.targets import CloudTarget
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.builders.engine_records import urn
from tests.support.clusters.simulated_program import a_target, network, run
from tests.support.soak import sized

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    # A killed engine breaks off its stream of events.
    pytest.mark.filterwarnings("ignore:Error in event stream"),
]

_VPC = "aws:ec2/vpc:Vpc"


def _vpc(cidr: str) -> None:
    import pulumi_aws as aws

    pulumi.export("vpc", aws.ec2.Vpc("network", cidr_block=cidr).id)


def _kill_up(stage: CloudTarget, at: str) -> None:
    process = EngineProcess()
    faults = Faults(on_crash=process.kill)
    faults.crash_after_create(at)
    with pytest.raises(EngineKilled, match="run it again"):
        run(stage, lambda rehearsal: rehearsal.up(), faults=faults, process=process)


@pytest.mark.seeded
def test_the_run_after_a_kill_converges_with_an_undisturbed_run(tmp_path: Path) -> None:
    seed = seed_of(None, os.environ.get(SEED_VARIABLE))
    print(f"{SEED_VARIABLE}={seed}")
    stage = a_target(tmp_path, network)
    baseline = run_uninterrupted(stage)
    assert len(baseline.urns) == 6
    for at in sample(baseline.urns, sized(1, soak=6), seed):
        proof = prove(stage, at, baseline)
        assert proof.faults == (), f"after a kill at {proof.name} (seed {seed})"


@pytest.mark.soak
def test_the_last_run_after_several_kills_converges_with_an_undisturbed_run(tmp_path: Path) -> None:
    stage = a_target(tmp_path, network)
    baseline = run_uninterrupted(stage)
    proof = prove_in_sequence(stage, baseline.urns[1:4], baseline)
    assert proof.faults == ()
    assert proof.killed_up == proof.killed_destroy == baseline.urns[1:4]


def test_a_kill_that_never_happens_is_reported(tmp_path: Path) -> None:
    stage = a_target(tmp_path, network)
    baseline = run_uninterrupted(stage)
    (told,) = prove_in_sequence(stage, [urn("nowhere", _VPC)], baseline).faults
    assert told.startswith("no up was killed after urn:"), "a resource that is not made would count as proved"


def test_an_object_created_just_before_the_kill_is_adopted(tmp_path: Path) -> None:
    stage, shown = a_target(tmp_path, lambda: _vpc("10.0.0.0/16")), list[str]()
    _kill_up(stage, urn("network", _VPC))
    (made,) = stage.objects(frozenset({_VPC}))
    run(stage, lambda rehearsal: rehearsal.up(), show=shown.append)
    assert stage.objects(frozenset({_VPC})) == (made,)
    assert any("killed during creating network" in line for line in shown)


def test_a_killed_replacement_ends_with_one_object(tmp_path: Path) -> None:
    run(a_target(tmp_path, lambda: _vpc("10.0.0.0/16")), lambda rehearsal: rehearsal.up())
    changed = a_target(tmp_path, lambda: _vpc("10.1.0.0/16"))
    _kill_up(changed, urn("network", _VPC))
    assert len(changed.objects(frozenset({_VPC}))) == 2
    run(changed, lambda rehearsal: rehearsal.up())
    assert len(changed.objects(frozenset({_VPC}))) == 1
    assert run(changed, lambda rehearsal: rehearsal.up()).changed == 0
    run(changed, lambda rehearsal: rehearsal.destroy())
    assert changed.objects(frozenset({_VPC})) == ()


def test_a_stack_of_a_killed_run_can_be_destroyed_at_once(tmp_path: Path) -> None:
    stage = a_target(tmp_path, lambda: _vpc("10.0.0.0/16"))
    _kill_up(stage, urn("network", _VPC))
    run(stage, lambda rehearsal: rehearsal.destroy())
    assert stage.objects(frozenset({_VPC})) == ()
