"""Kills `up` and `destroy` of whole stacks, and compares what the next runs leave with an undisturbed run."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.commands import down
from pulumi_holdfast.rehearsal.engine.checkpoint import type_in
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.soak.crash.proving import prove, prove_in_sequence, run_uninterrupted
from tests.soak.crash.selection import drawn, pivotal, sample
from tests.soak.crash.targets import StackTarget
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.clusters.cloud_workspaces import cloud_workspace
from tests.support.clusters.control_plane import processes_of
from tests.support.platform import platform_workspace

pytestmark = [
    pytest.mark.soak,
    pytest.mark.cluster,
    pytest.mark.engine,
    pytest.mark.timeout(1800),
    # A killed engine breaks off its stream of events.
    pytest.mark.filterwarnings("ignore:Error in event stream"),
]

#: Last part of the resource type of what each stack depends on most.
PIVOTAL_TYPES = {
    "aws-dev": {"ServiceLinkedRole", "Cluster", "Release", "NodePool"},
    "azure-dev": {"ManagedCluster", "NodePool"},
    "gcp-dev": {"Cluster", "NodePool", "ManagedFolderIamMember"},
}


@pytest.fixture
def seed() -> int:
    found = seed_of(None, os.environ.get(SEED_VARIABLE))
    print(f"{SEED_VARIABLE}={found}")
    return found


@pytest.fixture
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Stack]:
    name = str(request.param)
    workspace = platform_workspace(tmp_path) if name == "local" else cloud_workspace(tmp_path)
    found = Stack.named(name, workspace, report=lambda _: None)
    try:
        found.environment.start()
        yield found
    finally:
        found.environment.remove()


@pytest.mark.parametrize("stack", PIVOTAL_TYPES, indirect=True)
def test_a_cloud_stack_killed_at_pivotal_resources_converges(stack: Stack, seed: int) -> None:
    stage = StackTarget(stack=stack)
    baseline = run_uninterrupted(stage)
    kinds = {type_in(urn).rpartition(":")[2] for urn in pivotal(baseline.urns)}
    assert kinds == PIVOTAL_TYPES[stack.name]
    chosen = drawn(baseline.urns, 2, seed)
    proof = prove_in_sequence(stage, chosen, baseline)
    faults = "\n".join(proof.faults)
    assert not faults, f"after kills at {chosen} (seed {seed}):\n{faults}"
    # A resource created beside another one may be finished in a run that is already being killed.
    first = next(urn for urn in chosen if type_in(urn).endswith((":Cluster", ":ManagedCluster")))
    assert first in proof.killed_up


@pytest.mark.parametrize("stack", ["local"], indirect=True)
def test_the_local_platform_killed_at_a_resource_converges(stack: Stack, seed: int) -> None:
    stage = StackTarget(stack=stack)
    baseline = run_uninterrupted(stage)
    assert baseline.left == ()
    for urn in sample(baseline.urns, 1, seed):
        proof = prove(stage, urn, baseline)
        assert proof.faults == (), f"after a kill at {proof.name} (seed {seed})"
    down(stack)
    assert processes_of(stack.workspace) == []
