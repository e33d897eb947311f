"""The whole local platform survives a run that is killed, and leaves nothing when it is taken down."""

import os
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from holdfast.rehearsal.commands import down
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.stacks import Stack
from tests.soak.crash import prove, run_undisturbed, sample
from tests.soak.crash.command import SEED_VARIABLE, seed_of
from tests.soak.crash.stages import StackStage
from tests.support.platform import platform_workspace
from tests.support.rehearsals import a_checkpoint, a_resource, write_checkpoint

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    # A killed engine breaks off its stream of events.
    pytest.mark.filterwarnings("ignore:Error in event stream"),
]


@pytest.fixture
def stack(tmp_path: Path) -> Generator[Stack]:
    stack = Stack.named("local", platform_workspace(tmp_path), report=lambda _: None)
    try:
        yield stack
    finally:
        stack.surroundings.remove()


def _processes_in(folder: Path) -> list[str]:
    return [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] and str(folder) in " ".join(process.info["cmdline"])
    ]


@pytest.mark.crash
def test_after_a_kill_the_platform_arrives_where_an_undisturbed_one_does(
    stack: Stack, tmp_path: Path
) -> None:
    seed = seed_of(None, os.environ.get(SEED_VARIABLE))
    print(f"{SEED_VARIABLE}={seed}")
    stack.surroundings.start()
    stage = StackStage(stack=stack)
    baseline = run_undisturbed(stage)
    assert baseline.left == (), f"a destroyed platform leaves {baseline.left}"
    for urn in sample(baseline.urns, 1, seed):
        proof = prove(stage, urn, baseline)
        assert proof.faults == (), f"after a kill at {proof.name} (seed {seed})"
    down(stack)
    assert _processes_in(tmp_path) == [], "a process of the platform is left"


def test_a_platform_whose_api_server_is_dead_is_taken_down_all_the_same(
    stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.surroundings.start()
    folder = EngineFolder.of("local", stack.workspace)
    write_checkpoint(folder.checkpoint(stack.subject.name, "local"), a_checkpoint([a_resource("vision")]))
    (server,) = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "kube-apiserver" and str(tmp_path) in " ".join(process.info["cmdline"])
    ]
    server.kill()
    server.wait(30)
    down(stack)
    assert "is dead: what it held goes with it" in capsys.readouterr().out, "nobody is told what was dropped"
    assert _processes_in(tmp_path) == [], "a process of the platform is left"
    assert not stack.holds_resources(), "the next up would look for objects that went with the API server"
    down(stack)
    assert "holds no resources" in capsys.readouterr().out, "a second down is harmless"
