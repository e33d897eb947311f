"""What a move to another cluster and back must show, and how its ladder hurries."""

from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.scenarios.elsewhere import (
    STEPS,
    RoundTrip,
    Training,
    hurried,
    round_trip,
    tier_elsewhere,
    unmet_by_round_trip,
)

ADDRESS = "s3://checkpoints/tabular"


def training(site: str, began: int) -> Training:
    return Training(site=site, pool="cpu-spot", address=ADDRESS, resumed_from=began, saved=began + STEPS)


GOOD = RoundTrip(
    jobset="train",
    trainings=(training("home", 0), training("there", STEPS), training("home", 2 * STEPS)),
    seconds=(40.0, 50.0),
    together=(),
    copy_is_gone=True,
)


def test_a_job_that_goes_on_there_and_at_home_again_is_as_expected() -> None:
    assert unmet_by_round_trip(GOOD, home="home", there="there") == []
    assert round_trip(GOOD) == (
        "cpu-spot in home → cpu-spot in there → cpu-spot in home (after 40 s and 50 s); step 2000 carried over"
    )


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        (replace(GOOD, trainings=GOOD.trainings[:2]), "it ran in home, there"),
        (
            replace(GOOD, trainings=(*GOOD.trainings[:2], training("home", STEPS))),
            "in home it began at step 1000 and not at 2000",
        ),
        (
            replace(GOOD, trainings=(*GOOD.trainings[:2], replace(GOOD.trainings[2], address="s3://other"))),
            "its checkpoints have 2 addresses",
        ),
        (replace(GOOD, together=("a with b",)), "it ran in both clusters: a with b"),
        (replace(GOOD, copy_is_gone=False), "its copy in there is left"),
    ],
)
def test_each_fault_of_a_round_trip_is_named(seen: RoundTrip, problem: str) -> None:
    (found,) = unmet_by_round_trip(seen, home="home", there="there")
    assert found.startswith(problem)


POLICY: Json = {
    "metadata": {"name": "ladder", "namespace": "tabular"},
    "spec": {
        "tiers": [
            {"pool": "spot", "maxFailures": 5, "procurementTimeout": "10m"},
            {"pool": "spot-2", "maxFailures": 5, "procurementTimeout": "10m"},
            {"pool": "spot", "cluster": "there", "procurementTimeout": "20m"},
            {"pool": "cpu"},
        ],
        "returnAfter": "1h",
    },
}


def test_a_ladder_hurries_to_its_tier_elsewhere_and_changes_no_other() -> None:
    tiers = [mapping(each) for each in sequence(hurried(POLICY)["tiers"])]
    assert [each.get("maxFailures") for each in tiers] == [1, 1, None, None]
    assert [each.get("procurementTimeout") for each in tiers] == ["2m", "10s", "20m", None]
    assert tiers[2:] == [*sequence(mapping(POLICY["spec"])["tiers"])][2:]
    assert hurried(POLICY)["returnAfter"] == "20s"


def test_the_namespace_with_a_tier_elsewhere_is_found() -> None:
    plain: Json = {"metadata": {"namespace": "a"}, "spec": {"tiers": [{"pool": "cpu"}]}}
    assert tier_elsewhere([plain, POLICY]) == ("tabular", POLICY)
    with pytest.raises(RehearsalError, match="no training namespace has a tier in another cluster"):
        tier_elsewhere([plain])
