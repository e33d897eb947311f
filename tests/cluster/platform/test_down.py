"""`holdfast rehearse down` removes a local platform whose API server is dead."""

from collections.abc import Generator
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.commands import down
from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.control_plane.processes import processes_in
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.support.builders.engine_records import a_checkpoint, a_resource, write_checkpoint
from tests.support.clusters.control_plane import processes_of
from tests.support.platform import platform_workspace

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def stack(tmp_path: Path) -> Generator[Stack]:
    found = Stack.named("local", platform_workspace(tmp_path), report=lambda _: None)
    try:
        found.environment.start()
        yield found
    finally:
        found.environment.remove()


def test_down_removes_a_platform_whose_api_server_is_dead(
    stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = EngineFolder.of("local", stack.workspace)
    write_checkpoint(folder.checkpoint(stack.subject.name, "local"), a_checkpoint([a_resource("vision")]))
    plane = Layout.of(stack.place, stack.workspace)
    (server,) = processes_in(plane.cluster_dir, ["kube-apiserver"])
    server.process.kill()
    server.process.wait(30)
    down(stack)
    assert "is dead: its objects are removed with it" in capsys.readouterr().out
    assert processes_of(stack.workspace) == []
    assert not stack.holds_resources(), "the next up would look for objects that the API server held"
    down(stack)
    assert "holds no resources" in capsys.readouterr().out
