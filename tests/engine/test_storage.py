"""Stacks with every kind of volume on the real engine, each with a job that mounts all of them, judged by the policy pack."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pulumi
import pytest
import yaml
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.aws import training_cluster as aws
from pulumi_holdfast.aws.control_plane.access import Caller
from pulumi_holdfast.azure import training_cluster as azure
from pulumi_holdfast.gcp import training_cluster as gcp
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.engine import Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.stack_program import load_platform
from tests.engine.test_policy_pack import EchoProviders
from tests.support.clusters.control_plane import scratch_workspace
from tests.support.doc_pages import ROOT
from tests.support.json_objects import obj

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

PACKAGES = {"aws": "aws", "azure": "azure-native", "gcp": "gcp"}


CLUSTERS: Mapping[
    str, Callable[[Any, str], aws.TrainingCluster | azure.TrainingCluster | gcp.TrainingCluster]
] = {
    "aws": lambda platform, name: aws.TrainingCluster(
        "main", aws.TrainingClusterArgs(platform=platform, environment=name, caller=Caller())
    ),
    "azure": lambda platform, name: azure.TrainingCluster(
        "main", azure.TrainingClusterArgs(platform=platform, environment=name)
    ),
    "gcp": lambda platform, name: gcp.TrainingCluster(
        "main", gcp.TrainingClusterArgs(platform=platform, environment=name)
    ),
}


class Providers:
    """A simulated cloud, and a Kubernetes that accepts everything."""

    def __init__(self, place: Path, stack: str) -> None:
        folder = EngineFolder.of(stack, scratch_workspace(place))
        self._cloud = SimulatedClouds(
            folder=folder.cloud_states, checkpoint=folder.checkpoint("holdfast", stack), faults=Faults()
        )
        self._kubernetes = EchoProviders()

    def provider(self, package: str) -> ResourceProviderServicer:
        return (self._kubernetes if package == "kubernetes" else self._cloud).provider(package)

    def made(self, operation: PendingOperation) -> str | None:
        return None


def example(cloud: str) -> Json:
    return obj(yaml.safe_load((ROOT / f"examples/{cloud}/jobset-data.yaml").read_text("utf-8")))


@pytest.mark.parametrize("cloud", PACKAGES)
def test_a_stack_with_every_volume_is_made_once_and_its_job_is_proved(cloud: str, tmp_path: Path) -> None:
    name, manifest = f"{cloud}-data", example(cloud)
    file = ROOT / f"stacks/Pulumi.{name}.yaml"
    stack = yaml.safe_load(file.read_text("utf-8"))

    def program() -> None:
        cluster = CLUSTERS[cloud](load_platform(file), name)
        KubernetesObject(
            "job",
            str(manifest["apiVersion"]),
            "JobSet",
            {"metadata": {**obj(manifest["metadata"]), "namespace": "vision"}, "spec": manifest["spec"]},
            opts=pulumi.ResourceOptions(provider=cluster.kubernetes, depends_on=[cluster]),
        )

    subject = Subject(
        program=program,
        project={"name": "holdfast", "runtime": "python"},
        settings={"config": cast("Mapping[str, object]", stack["config"])},
        packages=(PACKAGES[cloud], "kubernetes"),
        policy_packs=(ROOT / "policies",),
        policy_settings=(ROOT / "policies/profiles/strict.json",),
    )
    with Rehearsal.open(
        name, scratch_workspace(tmp_path), subject=subject, providers=Providers(tmp_path, name)
    ) as rehearsal:
        made = rehearsal.up()
        assert not [each.policy for each in made.verdicts if each.stops]
        again = rehearsal.up()
        assert again.changed == 0, [step.summary for step in again.steps]
        rehearsal.destroy()
