"""Which stacks a pull request previews."""

import pytest

from rehearsal.touched import touched

STACKS = frozenset({"aws-dev", "aws-prod", "gcp-dev", "local"})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("stacks/Pulumi.aws-dev.yaml", ["aws-dev"]),
        ("infra/aws.py", ["aws-dev", "aws-prod"]),
        ("components/cluster/gke.py", ["gcp-dev"]),
        ("components/charts/karpenter-kwok-crds/Chart.yaml", ["local"]),
        ("scheduling/machines/local.json", ["local"]),
        ("components/operators/operators.py", sorted(STACKS)),
        ("requirements.lock", sorted(STACKS)),
        ("README.md", []),
        ("tests/infra/test_aws.py", []),
        ("stacks/Pulumi.retired.yaml", []),
    ],
)
def test_a_file_touches_the_stacks_it_can_change_and_no_others(path: str, expected: list[str]) -> None:
    assert touched([path], STACKS) == expected, f"a change of {path} alone must preview exactly these stacks"


def test_a_stack_touched_by_several_files_is_previewed_once() -> None:
    assert touched(["infra/aws.py", "infra/naming.py", "stacks/Pulumi.aws-dev.yaml"], STACKS) == sorted(
        STACKS
    ), "one job per stack, whatever the number of files"
