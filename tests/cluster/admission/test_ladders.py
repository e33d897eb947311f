"""FallbackPolicies that the API server accepts: the same as the configuration accepts."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.fallback_policy import (
    API_VERSION,
    DEFINITION,
    KIND,
    ladder_spec,
    shape_object,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import (
    GIVES_UP_TOO_SOON,
    MOST_TIERS,
    NEEDS_TIMEOUT,
    NEVER,
    UNLIMITED,
    Failures,
    Ladder,
    Tier,
)
from pulumi_holdfast.ladder.ladder_rules import ladder_problems, timing_problems
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.pool_summary import summarize_pool
from pulumi_holdfast.ladder.reachability.shape import MOST_SHAPES, Shape, shape_problems
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.admission import TRAINING_NAMESPACE
from tests.support.json_objects import obj, objects
from tests.support.ladders import FACTS, MACHINES, SETTINGS, SHAPES
from tests.support.strategies.declared_shapes import declared_shapes

pytestmark = pytest.mark.cluster


A100_SPOT: Json = {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"}
A100: Json = {"pool": "a100"}


def fallback_policy(tiers: Sequence[Json], name: str = "ladder", options: Json | None = None) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": TRAINING_NAMESPACE},
        "spec": {"tiers": list(tiers), **(options or {})},
    }


def accepted(cluster: KubeClient, manifest: Json) -> Json:
    return cluster.apply(manifest, field_manager="tests", dry_run=True)


@pytest.mark.parametrize(
    ("ladder", "tiers"),
    [
        ("spot, then on-demand", [A100_SPOT, A100]),
        ("one on-demand tier", [A100]),
        ("one spot tier that is never left", [{"pool": "a100-spot", "maxFailures": -1}]),
        (
            "an on-demand tier left by failures alone",
            [{"pool": "h100", "maxFailures": 0, "facts": {"capacity": "on-demand"}}, A100],
        ),
        ("a tier left by waiting alone", [{"pool": "a100-spot", "procurementTimeout": "1h30m"}, A100]),
        (
            "a tier that no failure ends",
            [{"pool": "s", "maxFailures": -1, "procurementTimeout": "720h"}, A100],
        ),
        ("as many tiers as may be", [{**A100_SPOT, "pool": f"s{i}"} for i in range(MOST_TIERS - 1)] + [A100]),
    ],
)
def test_a_valid_ladder_is_accepted(cluster: KubeClient, ladder: str, tiers: Sequence[Json]) -> None:
    stored = accepted(cluster, fallback_policy(tiers))
    assert obj(stored["spec"])["tiers"] == tiers, f"{ladder}: must be stored as it is written"


@pytest.mark.parametrize(
    ("reason", "tiers"),
    [
        ("spec.tiers: Invalid value", []),
        ("Too many", [{**A100_SPOT, "pool": f"s{i}"} for i in range(MOST_TIERS)] + [A100]),
        ("each pool may be in a ladder once", [A100_SPOT, A100_SPOT, A100]),
        ("needs a limit", [{"pool": "a100-spot"}, A100]),
        ("needs a limit", [{"pool": "a100-spot", "maxFailures": -1}, A100]),
        (NEEDS_TIMEOUT, [{"pool": "a100-spot", "maxFailures": 5}, A100]),
        (NEEDS_TIMEOUT, [{"pool": "a100-spot", "maxFailures": 5, "facts": {"capacity": "spot"}}, A100]),
        ("no tier follows the last one", [A100_SPOT]),
        ("no tier follows the last one", [A100_SPOT, {**A100, "procurementTimeout": "15m"}]),
        ("greater than or equal to -1", [{"pool": "a100-spot", "maxFailures": -2}, A100]),
        ("expected numeric", [{"pool": "a100-spot", "maxFailures": "5"}, A100]),
        ("should match", [{"pool": "a100-spot", "procurementTimeout": "15"}, A100]),
        ("must be a duration with units", [{"pool": "a100-spot", "procurementTimeout": ""}, A100]),
        ("must be a duration with units", [{"pool": "a100-spot", "procurementTimeout": "0m"}, A100]),
        ("must be a duration with units", [{"pool": "a100-spot", "procurementTimeout": "721h"}, A100]),
        ("must be a duration with units", [{"pool": "a100-spot", "procurementTimeout": "999999h"}, A100]),
        ("spec.tiers\\[0\\].pool: Required", [{"maxFailures": 5}, A100]),
        ("should match", [{"pool": "A100"}]),
        ("field not declared in schema", [{**A100_SPOT, "maxRestarts": 5}, A100]),
    ],
)
def test_an_invalid_ladder_is_rejected_with_the_reason(
    cluster: KubeClient, reason: str, tiers: Sequence[Json]
) -> None:
    with pytest.raises(ApiError, match=reason):
        accepted(cluster, fallback_policy(tiers))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"failures": "any"},
        {"failures": "evictions", "outageWindow": "5m", "applicationFailures": 0},
        {"returnAfter": "never", "failureWindow": "24h"},
        {"returnAfter": "4h", "holdTimeout": "10m"},
        {"holdTimeout": "10m"},
        {"giveUpAfter": "24h", "startTimeout": "30m", "deadline": "48h", "applicationFailures": -1},
    ],
)
def test_settings_of_a_ladder_are_stored_unchanged(cluster: KubeClient, options: Json) -> None:
    stored = accepted(cluster, fallback_policy([A100_SPOT, A100], options=options))
    assert stored["spec"] == {"tiers": [A100_SPOT, A100], **options}


@pytest.mark.parametrize(
    ("reason", "tiers", "options"),
    [
        ("Unsupported value", [A100_SPOT, A100], {"failures": "all"}),
        ("should match", [A100_SPOT, A100], {"outageWindow": "300"}),
        ("must be a duration with units", [A100_SPOT, A100], {"giveUpAfter": "0s"}),
        (GIVES_UP_TOO_SOON, [A100_SPOT, A100], {"giveUpAfter": "30s"}),
        ("greater than or equal to -1", [A100_SPOT, A100], {"applicationFailures": -2}),
        ("less than or equal to 10000", [A100_SPOT, A100], {"applicationFailures": 99999}),
        ("returnAfter needs a ladder of two or more tiers", [A100], {"returnAfter": "4h"}),
        ("holdTimeout applies to failback", [A100], {"holdTimeout": "10m"}),
        (
            "holdTimeout applies to failback",
            [A100_SPOT, A100],
            {"returnAfter": "never", "holdTimeout": "10m"},
        ),
        ("should match", [A100_SPOT, A100], {"returnAfter": "sometimes"}),
        ("or never", [A100_SPOT, A100], {"returnAfter": "0h"}),
        ("failureWindow needs", [{**A100_SPOT, "maxFailures": 101}, A100], {"failureWindow": "24h"}),
    ],
)
def test_an_invalid_setting_is_rejected_with_the_reason(
    cluster: KubeClient, reason: str, tiers: Sequence[Json], options: Json
) -> None:
    with pytest.raises(ApiError, match=reason):
        accepted(cluster, fallback_policy(tiers, options=options))


def test_pool_facts_are_stored_unchanged(cluster: KubeClient) -> None:
    tiers = objects(ladder_spec(SETTINGS, {"a100-spot": FACTS})["tiers"])
    stored = accepted(cluster, fallback_policy(tiers))
    assert obj(stored["spec"])["tiers"] == tiers


@pytest.mark.parametrize(
    ("reason", "facts"),
    [
        ("facts.capacity: Required", {}),
        ("Unsupported value", {"capacity": "preemptible"}),
        ("Unsupported value", {"capacity": "spot", "taints": [{"key": "a", "effect": "Never"}]}),
        ("Too many", {"capacity": "spot", "labels": {f"k{i}": "v" for i in range(17)}}),
        ("should match", {"capacity": "spot", "machine": {"cpu": "many", "memory": "1Gi"}}),
        ("greater than or equal to 1", {"capacity": "spot", "maxNodes": 0}),
    ],
)
def test_impossible_pool_facts_are_rejected(cluster: KubeClient, reason: str, facts: Json) -> None:
    with pytest.raises(ApiError, match=reason):
        accepted(cluster, fallback_policy([{**A100_SPOT, "facts": facts}, A100]))


def test_a_summary_can_be_reported(cluster: KubeClient) -> None:
    status: Json = {
        "observedGeneration": 1,
        "summary": "1 running, 1 waiting",
        "jobs": 2,
        "moving": 0,
        "tiers": [{"pool": "a100-spot", "jobs": 1, "waiting": 1}, {"pool": "a100", "jobs": 1, "waiting": 0}],
        "problems": ["spec.tiers[0].pool: there is no pool a100-spot"],
    }
    stored = cluster.merge_patch(
        API_VERSION, KIND, "ladder", {"status": status}, namespace=TRAINING_NAMESPACE, subresource="status"
    )
    assert stored["status"] == status, "what is not in the definition would be dropped without a word"


def test_a_ladder_with_another_name_is_rejected(cluster: KubeClient) -> None:
    with pytest.raises(ApiError, match="is named ladder"):
        accepted(cluster, fallback_policy([A100], name="fast"))


def test_the_definition_has_a_status_of_its_own_and_a_short_name(cluster: KubeClient) -> None:
    definition = cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", DEFINITION)
    assert definition is not None
    spec = obj(definition["spec"])
    assert obj(spec["names"])["shortNames"] == ["fbp"]
    (version,) = objects(spec["versions"])
    assert "status" in obj(version["subresources"])


#: Alike, so that the configuration has nothing to say that the API server cannot know.
NAMES = ("a", "b", "spot")
POOLS = [
    Pool(
        name=name,
        capacity=CapacityType.SPOT if name == "spot" else CapacityType.ON_DEMAND,
        has_gpus=False,
        max_nodes=1,
        is_default=name == "a",
    )
    for name in NAMES
]
POOL_FACTS = {pool.name: summarize_pool(pool, MACHINES, pool.taints) for pool in POOLS}

tiers = st.builds(
    Tier,
    pool=st.sampled_from(NAMES),
    max_failures=st.sampled_from((None, None, -1, 0, 5)),
    procurement_timeout=st.sampled_from((None, None, timedelta(seconds=1), timedelta(hours=1, minutes=30))),
    price=st.sampled_from((None, None, 2.5)),
    max_price=st.sampled_from((None, None, None, 2.5, 2.25)),
)
sometimes = st.sampled_from((None, None, timedelta(hours=4)))
ladders = st.builds(
    Ladder,
    # The API server does not ask for the capacity of the last tier.
    tiers=st.lists(tiers, min_size=1, max_size=4).filter(lambda listed: listed[-1].pool != "spot").map(tuple),
    failures=st.sampled_from((None, *Failures)),
    outage_window=sometimes,
    application_failures=st.sampled_from((None, UNLIMITED, 0)),
    return_after=st.sampled_from((None, NEVER, timedelta(hours=4))),
    hold_timeout=sometimes,
    give_up_after=st.sampled_from(
        (None, None, None, timedelta(minutes=14, seconds=59), timedelta(minutes=15))
    ),
)


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(ladder=ladders)
def test_a_ladder_is_accepted_exactly_when_the_configuration_accepts_it(
    cluster: KubeClient, ladder: Ladder
) -> None:
    problems = [*ladder_problems(ladder, POOLS, "ladder"), *timing_problems(ladder, "fallback")]
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "ladder", "namespace": TRAINING_NAMESPACE},
        "spec": ladder_spec(ladder, POOL_FACTS),
    }
    if problems:
        with pytest.raises(ApiError, match="is invalid"):
            cluster.apply(manifest, field_manager="tests", dry_run=True)
    else:
        stored = cluster.apply(manifest, field_manager="tests", dry_run=True)
        assert stored["spec"] == ladder_spec(ladder, POOL_FACTS)


FINETUNE: Json = {"name": "finetune", "pods": 4, "cpu": "48", "memory": "512Gi", "gpus": 8}


def accepted_shapes(cluster: KubeClient, shapes: Sequence[Json]) -> Json:
    manifest: Json = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "ladder", "namespace": TRAINING_NAMESPACE},
        "spec": {**ladder_spec(SETTINGS), "shapes": list(shapes)},
    }
    return obj(cluster.apply(manifest, field_manager="tests", dry_run=True)["spec"])


@pytest.mark.parametrize(
    ("what", "shapes"),
    [
        ("what a stack writes", [shape_object(shape) for shape in SHAPES]),
        ("a name alone", [{"name": "fit"}]),
        ("a part of a CPU", [{**FINETUNE, "cpu": "1.5"}]),
        ("memory in powers of ten", [{**FINETUNE, "memory": "500M"}]),
        ("pieces of a device in quotes", [{**FINETUNE, "devices": {"rdma/ib": "1"}}]),
        ("as many as may be", [{"name": f"s{i}"} for i in range(MOST_SHAPES)]),
        ("none", []),
    ],
)
def test_shapes_are_stored_unchanged(cluster: KubeClient, what: str, shapes: Sequence[Json]) -> None:
    assert accepted_shapes(cluster, shapes)["shapes"] == shapes, f"{what}: nothing is added to it"


@pytest.mark.parametrize(
    ("reason", "shapes"),
    [
        ("each shape needs a unique name", [FINETUNE, {"name": "fit"}, FINETUNE]),
        ("name: Required", [{"gpus": 8}]),
        ("should match", [{**FINETUNE, "name": "Fine_Tune"}]),
        ("accelerator needs gpus", [{**FINETUNE, "gpus": 0, "accelerator": "a100"}]),
        ("accelerator needs gpus", [{"name": "fit", "accelerator": "a100"}]),
        ("should match", [{**FINETUNE, "memory": "512"}]),
        ("should match", [{**FINETUNE, "memory": "512GB"}]),
        ("should match", [{**FINETUNE, "cpu": "48Gi"}]),
        ("greater than or equal to 1", [{**FINETUNE, "pods": 0}]),
        ("less than or equal to 64", [{**FINETUNE, "gpus": 65}]),
        ("Too many", [{"name": f"s{i}"} for i in range(MOST_SHAPES + 1)]),
        ("field not declared in schema", [{**FINETUNE, "parallelism": 4}]),
        ("set cpu, memory, gpus, efa instead", [{**FINETUNE, "devices": {"nvidia.com/gpu": 8}}]),
        ("should match", [{**FINETUNE, "devices": {"ephemeral-storage": "200GB"}}]),
        ("remove these labels from selector", [{**FINETUNE, "selector": {"holdfast.dev/pool": "a100"}}]),
        ("remove these labels", [{**FINETUNE, "selector": {"karpenter.sh/capacity-type": "spot"}}]),
        (
            "operator Exists takes no value",
            [{**FINETUNE, "tolerations": [{"key": "team", "operator": "Exists", "value": "x"}]}],
        ),
        ("tolerates every taint", [{**FINETUNE, "tolerations": [{"value": "vision"}]}]),
        ("Unsupported value", [{**FINETUNE, "architectures": ["arm"]}]),
        ("duplicate entries", [{**FINETUNE, "architectures": ["arm64", "arm64"]}]),
        ("Unsupported value", [{**FINETUNE, "samePlacement": "rack"}]),
    ],
)
def test_invalid_shapes_are_rejected_with_the_reason(
    cluster: KubeClient, reason: str, shapes: Sequence[Json]
) -> None:
    with pytest.raises(ApiError, match=reason):
        accepted_shapes(cluster, shapes)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(shapes=st.lists(declared_shapes(valid=False), max_size=3))
def test_shapes_are_accepted_exactly_when_the_configuration_accepts_them(
    cluster: KubeClient, shapes: list[Shape]
) -> None:
    written = [shape_object(shape) for shape in shapes]
    is_taken = len({shape.name for shape in shapes}) == len(shapes) and not list(
        shape_problems(shapes, "shapes")
    )
    if is_taken:
        assert accepted_shapes(cluster, written)["shapes"] == written
    else:
        # A repeated element of a set is refused before the object is validated.
        with pytest.raises(ApiError, match=r"is invalid|duplicate entries"):
            accepted_shapes(cluster, written)
