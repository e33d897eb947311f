"""Which stacks a pull request previews."""

import pytest

from holdfast.rehearsal.affected_stacks import affected

AWS = ["aws-dev", "aws-prod"]
STACKS = frozenset({"aws-dev", "aws-prod", "gcp-dev", "local"})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("stacks/Pulumi.aws-dev.yaml", ["aws-dev"]),
        ("infra/aws/stack.py", AWS),
        ("infra/aws/config/stack.py", AWS),
        ("infra/aws/config/validation.py", AWS),
        ("infra/config/validation.py", sorted(STACKS)),
        ("components/cluster/eks/component.py", AWS),
        ("components/cluster/gke.py", ["gcp-dev"]),
        ("components/cluster/gke/parts/nodes.py", ["gcp-dev"]),
        ("components/pools/ec2.py", AWS),
        ("components/charts/karpenter-crds/Chart.yaml", AWS),
        ("components/charts/karpenter-crds/files/karpenter.sh_nodepools.yaml", AWS),
        ("components/charts/karpenter-kwok-crds/Chart.yaml", ["local"]),
        ("components/charts/karpenter-kwok-crds/files/karpenter.sh_nodepools.yaml", ["local"]),
        ("components/charts/jobset-crds/files/jobset.x-k8s.io_jobsets.yaml", sorted(STACKS)),
        ("scheduling/machines/aws.json", AWS),
        ("scheduling/machines/local.json", ["local"]),
        ("components/operators/job_operators.py", sorted(STACKS)),
        ("requirements.lock", sorted(STACKS)),
        ("README.md", []),
        ("tests/unit/infra/test_aws.py", []),
        ("stacks/Pulumi.retired.yaml", []),
    ],
)
def test_a_file_affects_only_the_stacks_it_can_change(path: str, expected: list[str]) -> None:
    assert affected([path], STACKS) == expected, f"a change of {path} alone must preview exactly these stacks"


def test_a_stack_affected_by_several_files_is_listed_once() -> None:
    files = ["infra/aws/pools.py", "infra/naming.py", "stacks/Pulumi.aws-dev.yaml"]
    assert affected(files, STACKS) == sorted(STACKS), "one job per stack"
