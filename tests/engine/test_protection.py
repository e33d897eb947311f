"""A protected stack refuses its destroy before anything is deleted, and goes once the protection is lifted."""

from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest

from holdfast.rehearsal.lifecycle.checks import names, protected, retained
from holdfast.simulator.pulumi import EngineFailure
from tests.support.clusters.simulated_program import a_target, run

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]

_BUCKET = "aws:s3/bucket:Bucket"
_ALL = frozenset({_BUCKET, "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"})


def _platform(*, is_protected: bool, is_retained: bool = False) -> Callable[[], None]:
    def program() -> None:
        import pulumi_aws as aws

        vpc = aws.ec2.Vpc("network", cidr_block="10.0.0.0/16")
        aws.ec2.Subnet("zone-a", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
        kept = pulumi.ResourceOptions(protect=is_protected, retain_on_delete=is_retained)
        aws.s3.Bucket("checkpoints", opts=kept)

    return program


def test_a_destroy_is_refused_and_nothing_is_deleted(tmp_path: Path) -> None:
    stage = a_target(tmp_path, _platform(is_protected=True))
    run(stage, lambda rehearsal: rehearsal.up())
    before = stage.checkpoint()
    assert names(protected(before)) == ["checkpoints"], "the state does not tell what is protected"
    with pytest.raises(EngineFailure, match="protected"):
        run(stage, lambda rehearsal: rehearsal.destroy())
    assert len(stage.objects(_ALL)) == 3, "something was deleted before the refusal"
    assert len(stage.checkpoint().resources) == len(before.resources), "something was forgotten"


def test_with_the_protection_lifted_it_goes(tmp_path: Path) -> None:
    run(a_target(tmp_path, _platform(is_protected=True)), lambda rehearsal: rehearsal.up())
    lifted = a_target(tmp_path, _platform(is_protected=False))
    run(lifted, lambda rehearsal: rehearsal.up())
    assert protected(lifted.checkpoint()) == [], "the way through does not lead through"
    run(lifted, lambda rehearsal: rehearsal.destroy())
    assert lifted.objects(_ALL) == (), "something is left"


def test_what_is_retained_is_known_before_and_there_after_a_destroy(tmp_path: Path) -> None:
    stage = a_target(tmp_path, _platform(is_protected=False, is_retained=True))
    run(stage, lambda rehearsal: rehearsal.up())
    kept = retained(stage.checkpoint())
    assert [urn.rsplit("::", 1)[-1] for urn in kept] == ["checkpoints"], "it would be taken for an orphan"
    run(stage, lambda rehearsal: rehearsal.destroy())
    (left,) = stage.objects(_ALL)
    assert left.startswith(next(iter(kept))), "the wrong thing was kept"
