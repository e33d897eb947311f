"""The report of a lifecycle run, and the provisioner of each cloud."""

from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.rehearsal.engine import Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.run import provisioner_for
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from pulumi_holdfast.rehearsal.scenarios.gke import Gke
from pulumi_holdfast.rehearsal.scenarios.karpenter import Karpenter
from pulumi_holdfast.rehearsal.stacks import Stack, StackEnvironment
from tests.support.builders.aks_objects import aks_cluster

CLIENT = cast("KubeClient", object())


def stack_on(cloud: str, folder: Path) -> Stack:
    """Return a stack that holds no resources."""
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
def test_the_provisioner_follows_from_the_cloud(cloud: str, kind: type[object], tmp_path: Path) -> None:
    assert type(provisioner_for(stack_on(cloud, tmp_path), CLIENT)) is kind


@pytest.mark.parametrize(("provisions_nodes", "kind"), [(True, NodeAutoProvisioning), (False, AksScaleSets)])
def test_the_provisioner_of_aks_follows_from_the_cluster(
    provisions_nodes: bool, kind: type[object], tmp_path: Path
) -> None:
    stack = stack_on("azure", tmp_path)
    with stack.simulators(Faults()).clouds.state("azure-native").changing() as console:
        console.put(aks_cluster(provisions_nodes=provisions_nodes))
    assert type(provisioner_for(stack, CLIENT)) is kind
