"""Each cloud's machines are bought by whoever buys them there."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from rehearsal.course.machines import machines_for
from rehearsal.engine import Subject
from rehearsal.paths import Workspace
from rehearsal.providers.faults import Faults
from rehearsal.scenes.aks import AksScaleSets, NodeAutoProvisioning
from rehearsal.scenes.gke import Gke
from rehearsal.scenes.karpenter import Karpenter
from rehearsal.stacks import Stack
from tests.support.aks_objects import aks_cluster

if TYPE_CHECKING:
    from rehearsal.kube.client import KubeClient
    from rehearsal.stacks import Surroundings

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
        surroundings=cast("Surroundings", object()),
    )


@pytest.mark.parametrize(("cloud", "kind"), [("aws", Karpenter), ("local", Karpenter), ("gcp", Gke)])
def test_most_clouds_have_one_way(cloud: str, kind: type[object], tmp_path: Path) -> None:
    assert type(machines_for(stack_on(cloud, tmp_path), CLIENT)) is kind, f"on {cloud}"


@pytest.mark.parametrize(("provisions_nodes", "kind"), [(True, NodeAutoProvisioning), (False, AksScaleSets)])
def test_aks_has_two(provisions_nodes: bool, kind: type[object], tmp_path: Path) -> None:
    stack = stack_on("azure", tmp_path)
    with stack.stand_ins(Faults()).clouds.state("azure-native").changing() as console:
        console.put(aks_cluster(provisions_nodes=provisions_nodes))
    assert type(machines_for(stack, CLIENT)) is kind, "by what the cluster is made with"
