"""The API server and the configuration hold a ladder to the same rules."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.ladder import UNLIMITED, Failures, Ladder, Tier, ladder_problems, timing_problems
from holdfast.scheduling.pools import Pool
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.support.clusters.admission import TRAINING_NAMESPACE

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient

pytestmark = pytest.mark.cluster

#: On-demand and alike, so that the configuration has nothing to say that the API server cannot know.
NAMES = ("a", "b", "c")
POOLS = [
    Pool(name=name, capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=1, is_default=name == "a")
    for name in NAMES
]

tiers = st.builds(
    Tier,
    pool=st.sampled_from(NAMES),
    max_failures=st.sampled_from((None, None, -1, 0, 5)),
    procurement_timeout=st.sampled_from((None, None, timedelta(seconds=1), timedelta(hours=1, minutes=30))),
)
sometimes = st.sampled_from((None, None, timedelta(hours=4)))
ladders = st.builds(
    Ladder,
    tiers=st.lists(tiers, min_size=1, max_size=4).map(tuple),
    failures=st.sampled_from((None, *Failures)),
    outage_window=sometimes,
    application_failures=st.sampled_from((None, UNLIMITED, 0)),
    return_after=sometimes,
    hold_timeout=sometimes,
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
        "spec": ladder_spec(ladder),
    }
    if problems:
        with pytest.raises(KubeError, match="is invalid"):
            cluster.apply(manifest, field_manager="tests", dry_run=True)
    else:
        stored = cluster.apply(manifest, field_manager="tests", dry_run=True)
        assert stored["spec"] == ladder_spec(ladder), "a ladder that a stack file may hold is stored as it is"
