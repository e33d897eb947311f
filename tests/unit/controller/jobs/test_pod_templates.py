"""Pod templates: the templates that follow, their selectors after a move, and their effective requests."""

import pytest

from pulumi_holdfast.controller.jobs.pod_templates import (
    followers,
    requests_of,
    selector_of,
    shape_of,
    with_pool,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL, STAYS_VALUE


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
def test_a_moved_job_selects_only_its_pool_on_any_cloud(selector: dict[str, str]) -> None:
    moved = with_pool({"nodeSelector": selector}, "cpu", reserved_for_uid=None)
    assert selector_of(moved) == {POOL: "cpu"}


def test_other_selectors_stay() -> None:
    moved = with_pool({"nodeSelector": {"topology.kubernetes.io/zone": "a"}}, "cpu", reserved_for_uid=None)
    assert selector_of(moved) == {"topology.kubernetes.io/zone": "a", POOL: "cpu"}


def container(cpu: str, **fields: str) -> Json:
    return {"resources": {"requests": {"cpu": cpu}}, **fields}


def test_requests_are_those_that_the_scheduler_takes() -> None:
    spec: Json = {"containers": [container("500m"), container("1")]}
    assert requests_of(spec) == {"cpu": "1500m"}
    spec: Json = {"containers": [container("1")], "initContainers": [container("3"), container("2")]}
    assert requests_of(spec) == {"cpu": "3"}
    sidecar = container("1", restartPolicy="Always")
    spec: Json = {"containers": [container("2")], "initContainers": [sidecar, container("4")]}
    assert requests_of(spec) == {"cpu": "5"}
    limits: Json = {"resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1"}}}
    assert requests_of({"containers": [limits]}) == {"cpu": "1", "nvidia.com/gpu": "8"}
    assert requests_of({"containers": [container("1")], "overhead": {"cpu": "250m"}}) == {"cpu": "1250m"}
    spec: Json = {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}
    assert requests_of(spec) == {"cpu": "4"}


def test_a_shape_has_no_toleration_of_a_reservation() -> None:
    tolerations = [{"key": "holdfast.dev/reserved-for"}, {"key": "nvidia.com/gpu"}]
    shape = shape_of({"containers": [container("1")], "tolerations": tolerations}, 3)
    assert (shape.count, shape.tolerations) == (3, ({"key": "nvidia.com/gpu"},))


LABELED: Json = {"metadata": {"labels": {FOLLOWS: FOLLOWS_VALUE}}}
STAYING: Json = {"metadata": {"labels": {FOLLOWS: STAYS_VALUE}}}
POOL_SELECTED: Json = {"spec": {"nodeSelector": {POOL: "a-spot"}}}
SPOT_SELECTED: Json = {"spec": {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}}}
ZONE_SELECTED: Json = {"spec": {"nodeSelector": {"topology.kubernetes.io/zone": "a"}}}
PLAIN: Json = {"spec": {}}


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ((LABELED, POOL_SELECTED), (True, False)),
        ((STAYING, POOL_SELECTED), (False, True)),
        ((POOL_SELECTED, PLAIN), (True, False)),
        ((PLAIN, SPOT_SELECTED), (False, True)),
        ((ZONE_SELECTED, PLAIN), (True, True)),
        ((PLAIN, PLAIN), (True, True)),
        ((), ()),
    ],
    ids=["label", "label of another value", "pool", "capacity", "no capacity", "no selector", "no template"],
)
def test_templates_follow_by_label_then_by_capacity_else_all(
    templates: tuple[Json, ...], expected: tuple[bool, ...]
) -> None:
    assert followers(templates) == expected
