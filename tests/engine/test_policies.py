"""The policy pack judges stacks on the real engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Namespace

from rehearsal.engine import EngineFailure, Outcome, Rehearsal, Subject
from tests.support.control_plane import scratch_workspace
from tests.support.echo_provider import EchoStandIns
from tests.support.stack_resources import capacity_requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Program = Callable[[], None]

pytestmark = pytest.mark.engine

PACK = Path(__file__).parents[2] / "policies"
MANDATORY = "training-ladder-ends-on-demand"
ADVISORY = "training-ladder-end-not-known-yet"

A100_SPOT = {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"}
A100 = {"pool": "a100"}


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> EchoStandIns:
    # The user's own engine may have the real provider, which would look for a cluster.
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home-of-nobody"))
    return EchoStandIns()


def training_namespace(name: str, *tiers: object) -> Namespace:
    """A training namespace with its ladder, made without this project's components."""
    namespace = Namespace(name, metadata={"name": name, "labels": {"holdfast.dev/training": "true"}})
    CustomResource(
        f"{name}-ladder",
        api_version="holdfast.dev/v1alpha1",
        kind="FallbackPolicy",
        metadata={"name": "ladder", "namespace": name},
        spec={"tiers": list(tiers)},
    )
    return namespace


def node_pool(name: str, capacity_type: str) -> None:
    """A NodePool whose nodes carry its name."""
    template = {
        "metadata": {"labels": {"holdfast.dev/pool": name}},
        "spec": {"requirements": [capacity_requirement(capacity_type)]},
    }
    CustomResource(
        name,
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": name},
        spec={"template": template},
    )


def stack_of(namespaces: Mapping[str, Sequence[object]]) -> Program:
    """A program of training namespaces with these tiers, and of both pools."""

    def program() -> None:
        for name, tiers in namespaces.items():
            training_namespace(name, *tiers)
        node_pool("a100-spot", "spot")
        node_pool("a100", "on-demand")

    return program


def run(
    root: Path, stand_ins: EchoStandIns, program: Program, command: Callable[[Rehearsal], Outcome]
) -> Outcome:
    """Run one command on a stack of its own, with the pack."""
    subject = Subject(
        program=program,
        project={"name": "holdfast", "runtime": "python"},
        settings={},
        packages=("kubernetes",),
        policy_packs=(PACK,),
    )
    with Rehearsal.open("dev", scratch_workspace(root), subject=subject, stand_ins=stand_ins) as rehearsal:
        return command(rehearsal)


def test_a_stack_with_somewhere_to_fall_back_to_passes(tmp_path: Path, stand_ins: EchoStandIns) -> None:
    program = stack_of({"vision": [A100_SPOT, A100]})
    outcome = run(tmp_path, stand_ins, program, lambda rehearsal: rehearsal.preview())
    assert outcome.packs == {"holdfast": "0.1.0"}, "the pack must have judged the run"
    assert outcome.verdicts == (), "there is nothing to complain of"


def test_a_stack_with_nowhere_to_fall_back_to_is_stopped(tmp_path: Path, stand_ins: EchoStandIns) -> None:
    program = stack_of({"vision": [A100_SPOT], "tabular": [A100_SPOT, A100]})
    with pytest.raises(EngineFailure, match=MANDATORY) as stopped:
        run(tmp_path, stand_ins, program, lambda rehearsal: rehearsal.preview())
    (verdict,) = stopped.value.outcome.verdicts
    assert (verdict.policy, verdict.level) == (MANDATORY, "mandatory"), "it is no mere advice"
    assert verdict.urn.endswith("::vision-ladder"), "the verdict points at the ladder"
    for part in ("namespace 'vision'", "pool 'a100-spot'", "Append a tier", "'a100'"):
        assert part in verdict.message, f"the verdict must say {part}: {verdict.message}"


def test_an_update_is_stopped_before_anything_is_made(tmp_path: Path, stand_ins: EchoStandIns) -> None:
    program = stack_of({"vision": [A100_SPOT]})
    with pytest.raises(EngineFailure, match=MANDATORY):
        run(tmp_path, stand_ins, program, lambda rehearsal: rehearsal.up())
    assert stand_ins.echo.created == [], "a stack that may not be made must not be half made"


def test_an_unknown_is_advice_and_the_violation_beside_it_still_stops(
    tmp_path: Path, stand_ins: EchoStandIns
) -> None:
    def program() -> None:
        stack_of({"tabular": [A100_SPOT]})()
        other = Namespace("other", metadata={"name": "other"})
        # Nobody knows an id before the update.
        training_namespace("vision", A100_SPOT, {"pool": other.id.apply(lambda found: found.lower())})

    with pytest.raises(EngineFailure, match=MANDATORY) as stopped:
        run(tmp_path, stand_ins, program, lambda rehearsal: rehearsal.preview())
    verdicts = {verdict.policy: verdict for verdict in stopped.value.outcome.verdicts}
    assert verdicts.keys() == {MANDATORY, ADVISORY}, "one statement each"
    assert "namespace 'tabular'" in verdicts[MANDATORY].message, "what is known stops the run"
    assert verdicts[ADVISORY].level == "advisory", "what is not known yet stops nothing"
    assert "namespace 'vision'" in verdicts[ADVISORY].message, "and says what it waits for"
