"""What a template selects once it is on a tier."""

from __future__ import annotations

import pytest

from holdfast.fallback.jobs.pod_templates import selector_of, with_pool
from holdfast.scheduling.labels import POOL


@pytest.mark.parametrize(
    "selector",
    [
        {"karpenter.sh/capacity-type": "spot"},
        {"cloud.google.com/gke-spot": "true"},
        {"cloud.google.com/gke-provisioning": "spot"},
        {"cloud.google.com/compute-class": "spot-first"},
        {"kubernetes.azure.com/scalesetpriority": "spot"},
        {"kubernetes.azure.com/priority": "spot"},
    ],
    ids=lambda selector: next(iter(selector)),
)
def test_a_moved_job_selects_its_pool_and_no_capacity_in_any_clouds_words(selector: dict[str, str]) -> None:
    moved = with_pool({"nodeSelector": selector}, "cpu", held_for=None)
    assert selector_of(moved) == {POOL: "cpu"}, (
        "one left over from spot would make the on-demand tier unschedulable"
    )


def test_what_else_its_author_selected_stays() -> None:
    moved = with_pool({"nodeSelector": {"topology.kubernetes.io/zone": "a"}}, "cpu", held_for=None)
    assert selector_of(moved) == {"topology.kubernetes.io/zone": "a", POOL: "cpu"}, "a zone is no capacity"
