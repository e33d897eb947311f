"""The outputs of a stack, read by another program with a StackReference on the real engine."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.clouds import pool_summaries
from pulumi_holdfast.config.clusters import AcceptedClusterSection
from pulumi_holdfast.kubernetes.fallback_policy import facts_object
from pulumi_holdfast.kubernetes.other_clusters import OtherStacks, exported_tiers, home_checkpoints
from pulumi_holdfast.kubernetes.outputs import ClusterOutputs, stack_outputs
from pulumi_holdfast.ladder.reachability.facts import read_pool_facts
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineFailure, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.stack_program import export
from tests.support.builders.configurations import aws_platform, gcp_platform, nap_platform
from tests.support.clusters.control_plane import scratch_workspace
from tests.support.fakes.pulumi_engine import asking_component

pytestmark = pytest.mark.engine

PLACE, PRODUCER, CONSUMER = "references", "producer", "consumer"
PLATFORMS = {"aws": aws_platform, "gcp": gcp_platform, "azure": nap_platform}
IDENTITIES = {
    "aws": "arn:aws:iam::123456789012:role/vision",
    "gcp": "principal://iam.googleapis.com/projects/1/x",
    "azure": "00000000-0000-0000-0000-00000000cccc",
}


def run(folder: Path, stack: str, program: Callable[[], None]) -> CommandOutcome:
    """Bring up a program without providers, in a state that others share."""
    workspace = scratch_workspace(folder)
    place = EngineFolder.of(PLACE, workspace)
    clouds = SimulatedClouds(
        folder=place.cloud_states, checkpoint=place.checkpoint(stack, stack), faults=Faults()
    )
    subject = Subject(
        program=program, project={"name": stack, "runtime": "python"}, settings={"config": {}}, packages=()
    )
    with Rehearsal.open(stack, workspace, subject=subject, providers=clouds, place=PLACE) as opened:
        return opened.up()


def producer(cloud: str) -> Callable[[], None]:
    platform = PLATFORMS[cloud]()

    def program() -> None:
        outputs = ClusterOutputs(
            pools=platform.scheduling_pools(),
            namespaces=platform.namespaces,
            facts=pool_summaries(platform),
            region="us-east-1",
            cluster=pulumi.Output.from_input("holdfast-dev"),
            kubeconfig='{"kind": "Config"}',
            issuer="https://issuer.example.com",
            checkpoints="checkpoints-0a1b2c3",
            checkpoint_uris={"vision": "s3://checkpoints-0a1b2c3/vision"},
            identities={"vision": pulumi.Output.from_input(IDENTITIES[cloud])},
        )
        export(outputs)

    return program


def consumer() -> None:
    """Another team's program, which knows the name of the stack only."""
    reference = pulumi.StackReference(f"organization/{PRODUCER}/{PRODUCER}")
    pulumi.export("found", stack_outputs(reference).apply(lambda found: json.dumps(asdict(found))))


@pytest.mark.parametrize("cloud", PLATFORMS)
def test_a_second_program_reads_the_outputs_by_reference(tmp_path: Path, cloud: str) -> None:
    run(tmp_path, PRODUCER, producer(cloud))
    found = json.loads(str(run(tmp_path, CONSUMER, consumer).outputs["found"]))
    assert found["cluster"] == "holdfast-dev"
    assert json.loads(found["kubeconfig"])["kind"] == "Config"
    assert found["issuer"] == "https://issuer.example.com"
    assert found["pools"]["a100-spot"] == {"capacity": "spot", "has_gpus": True, "max_nodes": 8}
    assert found["ladders"]["vision"] == ["a100-spot", "a100"]
    assert found["checkpoints"] == "checkpoints-0a1b2c3"
    assert found["identities"] == {"vision": IDENTITIES[cloud]}


def test_a_stack_without_the_outputs_is_refused_in_words(tmp_path: Path) -> None:
    run(tmp_path, PRODUCER, lambda: pulumi.export("cluster", "holdfast-dev"))
    with pytest.raises(EngineFailure, match="update it with this release first"):
        run(tmp_path, CONSUMER, consumer)


def accepting(cloud: str) -> Callable[[], None]:
    """The program of a stack on a cloud that accepts the jobs of the first one, with their checkpoints."""
    home = AcceptedClusterSection.model_validate(
        {
            "name": "home",
            "issuer": "https://issuer.example.com",
            "namespaces": ["vision"],
            "checkpoints": f"organization/{PRODUCER}/{PRODUCER}",
        },
        strict=False,
    )

    def program() -> None:
        pulumi.export("uri", home_checkpoints([home], cloud, parent=asking_component())["vision"].uri)

    return program


def test_a_home_on_another_cloud_stops_the_stack_that_accepts_its_jobs_in_one_message(tmp_path: Path) -> None:
    run(tmp_path, PRODUCER, producer("aws"))
    assert run(tmp_path, CONSUMER, accepting("AWS")).outputs["uri"] == "s3://checkpoints-0a1b2c3/vision"
    with pytest.raises(EngineFailure) as refused:
        run(tmp_path, CONSUMER, accepting("Azure"))
    said = str(refused.value)
    assert (
        'acceptsFrom[0].checkpoints: got "organization/producer/producer", which exports the address' in said
    )
    assert "Traceback" not in said


def home(folder: Path) -> str:
    """What the tier of a stack in another cluster says, in a state with or without that cluster's stack."""

    def program() -> None:
        platform = aws_platform()
        (vision,) = (each for each in platform.namespaces if each.name == "vision")
        away = vision.ladder[0].model_copy(update={"cluster": "there"})
        namespace = vision.model_copy(update={"ladder": (vision.ladder[0], away, *vision.ladder[1:])})
        references = {"there": pulumi.StackReference(f"organization/{PRODUCER}/{PRODUCER}")}
        found = exported_tiers(
            namespace,
            OtherStacks(references=references, region="us-east-1"),
            checkpoint_uri="s3://of-home/vision",
            pools=pool_summaries(platform),
        )
        pulumi.export("tier", found["there", "a100-spot"].apply(json.dumps))

    return str(run(folder, CONSUMER, program).outputs["tier"])


def test_a_tier_in_another_cluster_says_what_its_stack_exports(tmp_path: Path) -> None:
    run(tmp_path, PRODUCER, lambda: pulumi.export("cluster", "holdfast-dev"))
    assert json.loads(home(tmp_path)) == {}
    run(tmp_path, PRODUCER, producer("aws"))
    found = json.loads(home(tmp_path))
    stored, facts = found["facts"], facts_object(pool_summaries(aws_platform())["a100-spot"])
    assert read_pool_facts("a", stored) == read_pool_facts("a", facts)
    assert found["exported"] == {
        "stack": f"organization/{PRODUCER}/{PRODUCER}",
        "ladder": ["a100-spot", "a100"],
        "checkpoints": "s3://checkpoints-0a1b2c3/vision",
        "reachesCheckpoints": True,
    }
