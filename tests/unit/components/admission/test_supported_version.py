"""Clusters too old for the admission policies."""

from __future__ import annotations

import pytest

from holdfast.components.admission.rules import version_problem
from holdfast.scheduling import taints

FIELD = "holdfast:platform.cluster.version"


@pytest.mark.parametrize(
    "version", ["1.36", "1.36.3", "v1.36.3", "1.37", "2.0", "1.36.2-eks-1a2b3c", "1.36+"]
)
def test_a_cluster_that_serves_mutating_policies_is_taken(version: str) -> None:
    assert version_problem(FIELD, version, [taints.SPOT]) is None, (
        f"{version} serves MutatingAdmissionPolicy v1"
    )


@pytest.mark.parametrize("version", ["1.35", "1.9", "1.35.9", "0.99"])
def test_an_older_cluster_is_refused_with_the_tolerations_to_write_by_hand(version: str) -> None:
    problem = version_problem(FIELD, version, [taints.SPOT, taints.GPU])
    assert problem is not None, f"{version} serves no MutatingAdmissionPolicy v1"
    message = str(problem)
    for part in (
        FIELD,
        f'"{version}"',
        "1.36 or later",
        '{key: karpenter.sh/capacity-type, operator: Equal, value: "spot", effect: NoSchedule}',
        '{key: nvidia.com/gpu, operator: Equal, value: "present", effect: NoSchedule}',
    ):
        assert part in message, f"the refusal must say {part}: {message}"


@pytest.mark.parametrize("version", ["", "latest", "1", "1.x", "one.thirty-six"])
def test_what_is_no_version_is_refused(version: str) -> None:
    problem = version_problem(FIELD, version, [taints.SPOT])
    assert problem is not None, f"{version!r} says nothing about what the cluster serves"
    assert 'such as "1.36"' in problem.fix, "the refusal must show how a version is written"
