"""Programs with training clusters on the real engine: judged by the policy pack, and through the package's plugin."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, cast

import pulumi
import pulumi_aws
import pytest
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

import pulumi_holdfast as holdfast
from pulumi_holdfast.kubernetes.labels import transformation
from pulumi_holdfast.package_plugin import SCHEMA
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineFailure, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from pulumi_holdfast.training_clusters import Value
from tests.engine.test_policy_pack import EchoProviders
from tests.support.clusters.control_plane import scratch_workspace
from tests.support.doc_pages import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

COMPONENT: Final = "holdfast:index:EksTrainingCluster"
REGIONS: Final = ("us-east-2", "us-west-2")


class Providers:
    """A simulated AWS, and a Kubernetes that accepts everything."""

    def __init__(self, place: Path) -> None:
        folder = EngineFolder.of("dev", scratch_workspace(place))
        self._aws = SimulatedClouds(
            folder=folder.cloud_states, checkpoint=folder.checkpoint("clusters", "dev"), faults=Faults()
        )
        self._kubernetes = EchoProviders()

    def provider(self, package: str) -> ResourceProviderServicer:
        return (self._aws if package == "aws" else self._kubernetes).provider(package)

    def made(self, operation: PendingOperation) -> str | None:
        return None


def arguments(**changed: Value) -> dict[str, Value]:
    machines: list[Value] = ["m7i.xlarge", "m6i.xlarge"]
    return {
        "cluster": {"privateAccessCidrs": ["10.0.0.0/8"]},
        "pools": [
            {
                "name": "cpu",
                "capacity": "on-demand",
                "instanceTypes": machines,
                "maxNodes": 20,
                "default": True,
            },
            {"name": "cpu-spot", "capacity": "spot", "instanceTypes": machines, "maxNodes": 8},
        ],
        "namespaces": [
            {
                "name": "vision",
                "ladder": [
                    {"pool": "cpu-spot", "maxFailures": 5, "procurementTimeout": "10m"},
                    {"pool": "cpu"},
                ],
            }
        ],
        **changed,
    }


def preview(place: Path, program: Callable[[], object]) -> CommandOutcome:
    subject = Subject(
        program=cast("Callable[[], None]", program),
        project={"name": "clusters", "runtime": "python"},
        settings={"config": {"aws:region": "us-west-2"}},
        packages=("aws", "kubernetes"),
        policy_packs=(ROOT / "policies",),
        policy_settings=(ROOT / "policies/profiles/strict.json",),
    )
    with Rehearsal.open(
        "dev", scratch_workspace(place), subject=subject, providers=Providers(place)
    ) as rehearsal:
        return rehearsal.preview()


def stopped(place: Path, program: Callable[[], object]) -> CommandOutcome:
    with pytest.raises(EngineFailure) as failure:
        preview(place, program)
    return failure.value.outcome


def consolidating(kind: str, props: Mapping[str, object]) -> Mapping[str, object] | None:
    if not kind.endswith(":NodePool"):
        return None
    spec = cast("Mapping[str, object]", props["spec"])
    return {
        "spec": {
            **spec,
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
        }
    }


def test_the_pack_has_nothing_to_say_of_a_cluster_as_it_is(tmp_path: Path) -> None:
    outcome = preview(tmp_path, partial(holdfast.EksTrainingCluster, "research", arguments()))
    assert not [each.policy for each in outcome.verdicts if each.stops]
    assert outcome.packs


def test_the_pack_stops_a_cluster_that_the_program_makes_unsafe(tmp_path: Path) -> None:
    changed = pulumi.ResourceOptions(transformations=[transformation(consolidating)])
    outcome = stopped(tmp_path, partial(holdfast.EksTrainingCluster, "research", arguments(), changed))
    assert "no-voluntary-disruption" in {each.policy for each in outcome.verdicts if each.stops}


class FromTheWire(pulumi.ComponentResource):
    """A cluster as generated SDKs of other languages ask for it: the engine calls the plugin."""

    def __init__(
        self, name: str, args: Mapping[str, Value], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(COMPONENT, name, {**args, "kubeconfig": None}, opts, remote=True)


@pytest.fixture
def _plugin_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def test_the_engine_accepts_the_schema_of_the_package() -> None:
    engine = find_tool("pulumi", Workspace(project_root=ROOT))
    checked = subprocess.run([engine, "schema", "check", SCHEMA], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.usefixtures("_plugin_on_the_path")
def test_the_plugin_makes_two_clusters_with_two_providers_and_outputs_of_the_program(tmp_path: Path) -> None:
    def program() -> None:
        for region in REGIONS:
            given = pulumi.ResourceOptions(provider=pulumi_aws.Provider(region, region=region))
            vpc = pulumi_aws.ec2.Vpc(f"{region}-vpc", cidr_block="10.20.0.0/16", opts=given)
            subnets: list[Value] = [
                pulumi_aws.ec2.Subnet(
                    f"{region}{zone}",
                    vpc_id=vpc.id,
                    availability_zone=f"{region}{zone}",
                    cidr_block=block,
                    opts=given,
                ).id
                for zone, block in {"a": "10.20.0.0/19", "b": "10.20.32.0/19"}.items()
            ]
            FromTheWire(
                f"in-{region}",
                arguments(network={"vpcId": vpc.id, "privateSubnetIds": subnets}),
                pulumi.ResourceOptions(providers=[cast("pulumi.ProviderResource", given.provider)]),
            )

    outcome = preview(tmp_path, program)
    assert not [each.policy for each in outcome.verdicts if each.stops]
    made = [step.summary for step in outcome.steps]
    assert sum("aws:eks/cluster:Cluster" in each or "aws:eks:Cluster" in each for each in made) == len(
        REGIONS
    ), made


@pytest.mark.usefixtures("_plugin_on_the_path")
def test_the_plugin_reports_wrong_arguments_by_property_without_a_traceback(tmp_path: Path) -> None:
    outcome = stopped(tmp_path, lambda: FromTheWire("research", arguments(pool=[], budget=-1)))
    said = outcome.stdout
    assert "budget" in said
    assert 'Write "pools".' in said
    assert "package_plugin.py" not in said, "a traceback of the plugin reached the user"
