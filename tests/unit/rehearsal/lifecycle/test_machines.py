"""Each cloud's machines are bought by whoever buys them there."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.rehearsal.lifecycle.run import provisioner_for
from holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from holdfast.rehearsal.scenarios.gke import Gke
from holdfast.rehearsal.scenarios.karpenter import Karpenter
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Subject
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.stacks import Stack
from tests.support.aks_objects import aks_cluster

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient
    from holdfast.simulator.stacks import StackEnvironment

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
