"""What the manifests run is what lies in `examples/training`, with the versions it was tried with."""

import re
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.aws.config.sections import AwsPlatform
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.quantities import parse_cpu, parse_memory
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner, machine_capacity
from pulumi_holdfast.ladder.reachability.shape import Resources
from pulumi_holdfast.stack_program import load_platform
from tests.support.builders.configurations import new_cluster
from tests.support.json_objects import obj, objects
from tests.support.training_program import TRAINING

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
CLOUDS = ["aws", "azure", "gcp"]
MANIFESTS = sorted(f"{cloud}/{path.name}" for cloud in CLOUDS for path in (EXAMPLES / cloud).glob("*.yaml"))
TRIED = (ROOT / "tests/soak/frameworks/requirements.txt").read_text(encoding="utf-8")


def text(manifest: str) -> str:
    return (EXAMPLES / manifest).read_text(encoding="utf-8")


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_the_program_that_a_manifest_runs_is_there_and_its_first_lines_say_how_it_gets_there(
    manifest: str,
) -> None:
    programs = set(re.findall(r"/train/(\S+?\.py)", text(manifest)))
    assert programs
    assert all((TRAINING / program).is_file() for program in programs)
    assert re.search(
        r"^#   kubectl create configmap train -n \w+ --from-file examples/training$",
        text(manifest),
        re.MULTILINE,
    )


#: The vCPUs of standard machines that a new AWS account may run on spot.
NEW_ACCOUNT = 5


def test_the_first_job_on_aws_fits_an_empty_account() -> None:
    platform = load_platform(ROOT / "stacks/Pulumi.aws-dev.yaml")
    assert isinstance(platform, AwsPlatform)
    job = obj(yaml.safe_load(text("aws/jobset-spot.yaml"))["spec"])
    (replicated,) = objects(job["replicatedJobs"])
    spec = obj(obj(replicated["template"])["spec"])
    (container,) = objects(obj(obj(spec["template"])["spec"])["containers"])
    asked = obj(obj(container["resources"])["requests"])
    pod = Resources(cpu_millis=parse_cpu(str(asked["cpu"])), memory_mib=parse_memory(str(asked["memory"])))
    pods = int(str(spec["parallelism"]))
    (pool,) = [pool for pool in platform.pools if pool.capacity is CapacityType.SPOT]
    sizes = {
        machine.vcpus
        for machine in pool.machines(platform.region)
        if machine_capacity(machine, Provisioner.EKS).pods_of(pod) >= pods
    }
    assert sizes
    assert max(sizes) <= NEW_ACCOUNT


def _requests(pod: Json) -> Resources:
    (container,) = objects(obj(pod["spec"])["containers"])
    asked = obj(obj(container["resources"])["requests"])
    return Resources(cpu_millis=parse_cpu(str(asked["cpu"])), memory_mib=parse_memory(str(asked["memory"])))


def _fewest_vcpus(platform: AwsPlatform, capacity: CapacityType, pod: Resources) -> int:
    """The vCPUs of the smallest machine of the stack's pools that takes a pod."""
    return min(
        machine.vcpus
        for pool in platform.pools
        if pool.capacity is capacity
        for machine in pool.machines(platform.region)
        if machine_capacity(machine, Provisioner.EKS).pods_of(pod)
    )


def test_the_guide_says_what_the_ray_job_needs_beside_the_system_nodes() -> None:
    platform = load_platform(ROOT / "stacks/Pulumi.aws-dev.yaml")
    assert isinstance(platform, AwsPlatform)
    cluster = obj(obj(yaml.safe_load(text("aws/rayjob-spot.yaml"))["spec"])["rayClusterSpec"])
    (workers,) = objects(cluster["workerGroupSpecs"])
    spot = int(str(workers["replicas"])) * _fewest_vcpus(
        platform, CapacityType.SPOT, _requests(obj(workers["template"]))
    )
    head = _requests(obj(obj(cluster["headGroupSpec"])["template"]))
    # KubeRay's own pod submits the job, beside the head.
    beside = Resources(cpu_millis=head.cpu_millis + 500, memory_mib=head.memory_mib + 200)
    system = new_cluster(platform.cluster).system_nodes.count * platform.system_machines()[0].vcpus
    on_demand = system + _fewest_vcpus(platform, CapacityType.ON_DEMAND, beside)
    guide = " ".join((ROOT / "docs/getting-started-aws.md").read_text("utf-8").split())
    assert f"it needs {spot} vCPUs on spot, and {on_demand} on-demand with the system nodes" in guide


@pytest.mark.parametrize("manifest", [each for each in MANIFESTS if "gpu" in each])
def test_programs_on_gpus_share_memory_which_counts_as_that_of_their_pod(manifest: str) -> None:
    (replicated,) = objects(obj(yaml.safe_load(text(manifest))["spec"])["replicatedJobs"])
    pod = obj(obj(obj(replicated["template"])["spec"])["template"])
    (container,) = objects(obj(pod["spec"])["containers"])
    (name,) = [each["name"] for each in objects(container["volumeMounts"]) if each["mountPath"] == "/dev/shm"]
    (shared,) = [
        obj(each["emptyDir"]) for each in objects(obj(pod["spec"])["volumes"]) if each["name"] == name
    ]
    assert shared["medium"] == "Memory"
    assert parse_memory(str(shared["sizeLimit"])) < _requests(pod).memory_mib / 2


@pytest.mark.parametrize("manifest", [*MANIFESTS, "local/jobset-training-gpu.yaml"])
def test_programs_report_the_progress_that_a_drill_and_a_deadline_need(manifest: str) -> None:
    spec = obj(yaml.safe_load(text(manifest))["spec"])
    if "rayClusterSpec" in spec:
        (workers,) = objects(obj(spec["rayClusterSpec"])["workerGroupSpecs"])
        pod = obj(obj(workers["template"])["spec"])
    else:
        (replicated,) = objects(spec["replicatedJobs"])
        pod = obj(obj(obj(obj(replicated["template"])["spec"])["template"])["spec"])
    assert pod["automountServiceAccountToken"] is True, "the account of training pods mounts no token"
    (container,) = objects(pod["containers"])
    named = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert named in objects(container["env"])


@pytest.mark.parametrize("cloud", CLOUDS)
def test_ray_is_of_the_version_that_resuming_was_tried_with(cloud: str) -> None:
    manifest = text(f"{cloud}/rayjob-spot.yaml")
    versions = set(re.findall(r"rayproject/ray:(\S+)", manifest)) | set(
        re.findall(r'rayVersion: "(.+)"', manifest)
    )
    assert len(versions) == 1
    assert f"ray[default,train]=={versions.pop()}\n" in TRIED


@pytest.mark.parametrize("cloud", CLOUDS)
def test_ray_workers_find_the_programs_and_their_run(cloud: str) -> None:
    spec = obj(yaml.safe_load(text(f"{cloud}/rayjob-spot.yaml"))["spec"])
    environment = obj(yaml.safe_load(str(spec["runtimeEnvYAML"]))["env_vars"])
    assert environment["PYTHONPATH"] == "/train"
    assert environment["RUN"] == "train-with-ray"


@pytest.mark.parametrize("manifest", [each for each in MANIFESTS if each.startswith("azure/")])
def test_where_machines_go_without_a_word_checkpoints_are_written_more_often(manifest: str) -> None:
    assert re.search(r'STEPS_BETWEEN_CHECKPOINTS(, value)?: "30"', text(manifest))
