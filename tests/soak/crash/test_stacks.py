"""A stack of a cloud survives runs that are killed, whatever they had just made or deleted."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from holdfast.simulator.pulumi.checkpoint import type_in
from holdfast.simulator.stacks import Stack
from tests.soak.crash import pivotal, prove_in_turn, run_undisturbed
from tests.soak.crash.command import SEED_VARIABLE, drawn, seed_of
from tests.soak.crash.stages import StackStage
from tests.support.cloud_platform import cloud_workspace

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.engine,
    pytest.mark.crash,
    pytest.mark.timeout(900),
    # A killed engine breaks off its stream of events.
    pytest.mark.filterwarnings("ignore:Error in event stream"),
]

#: What a stack turns on, by the last part of its type.
TURNS_ON = {
    "aws-dev": {"ServiceLinkedRole", "Cluster", "Release", "NodePool"},
    "azure-dev": {"ManagedCluster", "NodePool"},
    "gcp-dev": {"Cluster", "NodePool", "ManagedFolderIamMember"},
}


@pytest.fixture(params=TURNS_ON)
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Stack]:
    stack = Stack.named(request.param, cloud_workspace(tmp_path), report=lambda _: None)
    try:
        stack.surroundings.start()
        yield stack
    finally:
        stack.surroundings.remove()


def test_after_kills_at_what_it_turns_on_it_arrives_where_an_undisturbed_one_does(stack: Stack) -> None:
    seed = seed_of(None, os.environ.get(SEED_VARIABLE))
    print(f"{SEED_VARIABLE}={seed}")
    stage = StackStage(stack=stack)
    baseline = run_undisturbed(stage)
    kinds = {type_in(urn).rpartition(":")[2] for urn in pivotal(baseline.urns)}
    assert kinds == TURNS_ON[stack.name], "what it turns on has other names now"
    chosen = drawn(baseline.urns, 2, seed)
    proof = prove_in_turn(stage, chosen, baseline)
    faults = "\n".join(proof.faults)
    assert not faults, f"after kills at {chosen} (seed {seed}):\n{faults}"
    # What is made beside another resource may be finished in a run that is being killed already.
    first = next(urn for urn in chosen if type_in(urn).endswith((":Cluster", ":ManagedCluster")))
    assert first in proof.killed_up, "everything waits for the cluster, so a kill after it must have come"
