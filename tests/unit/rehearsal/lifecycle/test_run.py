"""What a rehearsal came to is seen at a glance."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.rehearsal.lifecycle.run import Programme, provisioner_for
from holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from holdfast.rehearsal.scenarios.gke import Gke
from holdfast.rehearsal.scenarios.karpenter import Karpenter
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Subject
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.stacks import Stack, StackEnvironment
from tests.support.aks_objects import aks_cluster

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient


def test_each_act_is_announced_and_told_at_the_end() -> None:
    announced: list[str] = []
    programme = Programme(announce=announced.append)
    with programme.act("up") as seen:
        seen.append("3 created")
        seen.append("nothing is left")
    assert announced == ["up"], "whoever watches does not know what is going on"
    (act,) = programme.acts
    assert act.row[:2] == ("up", "3 created; nothing is left"), "what was seen is not told"
    assert "3 created" in programme.table(), "the table leaves an act out"


def test_an_act_that_fails_is_told_as_one_and_the_failure_goes_on() -> None:
    programme = Programme(announce=lambda _: None)
    with pytest.raises(RehearsalError), programme.act("a second up"):
        raise RehearsalError("a second up changed something")
    assert programme.acts[0].row[:2] == ("a second up", "FAILED"), "the table looks as if all went well"


CLIENT = cast("KubeClient", object())


def stack_on(cloud: str, folder: Path) -> Stack:
    """A stack of which nothing is made."""
    subject = Subject(
        program=lambda: None, project={"name": "holdfast"}, settings={}, packages=(), cloud=cloud
    )
    return Stack(
        name="test",
        place="test",
        workspace=Workspace(project_root=folder),
        subject=subject,
        environment=cast("StackEnvironment", object()),
    )


@pytest.mark.parametrize(("cloud", "kind"), [("aws", Karpenter), ("local", Karpenter), ("gcp", Gke)])
def test_most_clouds_have_one_way(cloud: str, kind: type[object], tmp_path: Path) -> None:
    assert type(provisioner_for(stack_on(cloud, tmp_path), CLIENT)) is kind, f"on {cloud}"


@pytest.mark.parametrize(("provisions_nodes", "kind"), [(True, NodeAutoProvisioning), (False, AksScaleSets)])
def test_aks_has_two(provisions_nodes: bool, kind: type[object], tmp_path: Path) -> None:
    stack = stack_on("azure", tmp_path)
    with stack.simulators(Faults()).clouds.state("azure-native").changing() as console:
        console.put(aks_cluster(provisions_nodes=provisions_nodes))
    assert type(provisioner_for(stack, CLIENT)) is kind, "by what the cluster is made with"
