"""Which stacks a pull request previews."""

from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.rehearsal.affected_stacks import PROGRAM, affected, cloud_in, stacks_in

AWS = ["aws-dev", "aws-prod"]
STACKS = {"aws-dev": "aws", "aws-prod": "aws", "gcp-dev": "gcp", "local": "local"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("stacks/Pulumi.aws-dev.yaml", ["aws-dev"]),
        ("components/pulumi_holdfast/aws/training_cluster.py", AWS),
        ("components/pulumi_holdfast/aws/config/stack.py", AWS),
        ("components/pulumi_holdfast/aws/config/validation.py", AWS),
        ("components/pulumi_holdfast/config/validation.py", sorted(STACKS)),
        ("components/pulumi_holdfast/aws/control_plane/component.py", AWS),
        ("components/pulumi_holdfast/gcp/control_plane/parts/nodes.py", ["gcp-dev"]),
        ("components/pulumi_holdfast/aws/pools.py", AWS),
        ("components/pulumi_holdfast/kubernetes/charts/karpenter-crds/Chart.yaml", AWS),
        (
            "components/pulumi_holdfast/kubernetes/charts/karpenter-crds/files/karpenter.sh_nodepools.yaml",
            AWS,
        ),
        ("components/pulumi_holdfast/kubernetes/charts/karpenter-kwok-crds/Chart.yaml", ["local"]),
        (
            "components/pulumi_holdfast/kubernetes/charts/karpenter-kwok-crds/files/karpenter.sh_nodepools.yaml",
            ["local"],
        ),
        (
            "components/pulumi_holdfast/kubernetes/charts/jobset-crds/files/jobset.x-k8s.io_jobsets.yaml",
            sorted(STACKS),
        ),
        ("components/pulumi_holdfast/ladder/machines/aws.json", AWS),
        ("components/pulumi_holdfast/ladder/machines/local.json", ["local"]),
        ("components/pulumi_holdfast/kubernetes/operators/job_operators.py", sorted(STACKS)),
        ("requirements.lock", sorted(STACKS)),
        ("components/pulumi_holdfast/controller/state_machine/failover.py", sorted(STACKS)),
        ("README.md", []),
        ("tests/unit/infra/test_aws.py", []),
        ("stacks/Pulumi.retired.yaml", []),
    ],
)
def test_a_file_affects_only_the_stacks_it_can_change(path: str, expected: list[str]) -> None:
    assert affected([path], STACKS) == expected


def test_a_stack_affected_by_several_files_is_listed_once() -> None:
    files = [
        "components/pulumi_holdfast/aws/pools.py",
        "components/pulumi_holdfast/config/naming.py",
        "stacks/Pulumi.aws-dev.yaml",
    ]
    assert affected(files, STACKS) == sorted(STACKS)


def test_the_cloud_of_a_stack_is_the_one_in_its_file() -> None:
    stacks = {"research": "aws", "aws-lab": "gcp", "broken": None}
    assert affected(["components/pulumi_holdfast/aws/pools.py"], stacks) == ["broken", "research"]
    assert affected(["components/pulumi_holdfast/gcp/pools.py"], stacks) == ["aws-lab", "broken"]


@pytest.mark.parametrize(
    ("text", "cloud"),
    [
        ("config:\n  holdfast:platform:\n    cloud: aws\n", "aws"),
        ("config:\n  holdfast:platform:\n    # cloud: aws\n    'cloud': 'gcp'\n", "gcp"),
        ("config:\n  holdfast:platform: {cloud: azure, pools: []}\n", "azure"),
        ("config: {}\n", None),
    ],
)
def test_the_cloud_is_read_without_a_yaml_parser(text: str, cloud: str | None) -> None:
    assert cloud_in(text) == cloud


def test_the_clouds_of_the_repository_are_those_that_yaml_reads() -> None:
    files = {file.stem.removeprefix("Pulumi."): file for file in Path("stacks").glob("Pulumi.*.yaml")}
    parsed = {name: yaml.safe_load(file.read_text())["config"] for name, file in files.items()}
    assert stacks_in(Path("stacks")) == {
        name: config["holdfast:platform"]["cloud"] for name, config in parsed.items()
    }


def test_pulumi_deployments_previews_a_stack_for_the_same_files() -> None:
    file = Path(__file__).parents[3] / "examples/delivery/Pulumi.deployments.yaml"
    settings = yaml.safe_load(file.read_text("utf-8"))["settings"]
    ours = {
        f"{path}**" if path.endswith("/") else path for path in PROGRAM if (file.parents[2] / path).exists()
    }
    assert {*settings["gitHub"]["paths"]} == ours | {"stacks/Pulumi.aws-dev.yaml"}
