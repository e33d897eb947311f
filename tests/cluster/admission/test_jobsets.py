"""How admission mutates a JobSet on a real API server."""

import json

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME
from pulumi_holdfast.kubernetes.admission.jobset import EVICTIONS, MOST_RESTARTS
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    CAPACITY_TYPE,
    FOLLOWS,
    GPU_RESOURCE,
    ORIGINAL,
    POOL,
    TRAINING,
    TRAINING_VALUE,
)
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    expression,
    jobs_of,
    jobset,
    ladder,
    marked,
    pod_template,
    replicated_job,
    required_affinity,
    selectors_of,
    templates_of,
)
from tests.support.clusters.admission import OTHER_NAMESPACE, make_namespace, wait_until_enforced
from tests.support.clusters.job_admission import admitted_job, as_manifest
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

SPOT = {CAPACITY_TYPE: "spot"}
LABEL = {FOLLOWS: "true"}


def label_of(job: Json) -> object:
    return labels_of(job).get(FOLLOWS)


def original_of(job: Json) -> Json:
    return obj(json.loads(str(annotations_of(job)[ORIGINAL])))


def failure_policy_of(job: Json) -> Json:
    return obj(obj(job["spec"]).get("failurePolicy"))


def test_a_job_on_spot_follows_from_the_first_tier_by_the_pools_name_alone(cluster: KubeClient) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template(SPOT))))
    assert label_of(found) == "true"
    assert selectors_of(found) == {"worker": {POOL: "a100-spot"}}
    assert marked(found) == ["worker"], "the controller must know which pods it moves"


def test_a_lost_pod_fails_its_job_at_once_with_the_reason(cluster: KubeClient) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template(SPOT))))
    job = jobs_of(found)["worker"]
    assert job["backoffLimit"] == 0, "one pod alone must not come back to a gang that waits for it"
    assert obj(obj(job["template"])["spec"])["restartPolicy"] == "Never"
    assert job["podFailurePolicy"] == {
        "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    }


def test_evictions_do_not_count_towards_max_restarts(cluster: KubeClient) -> None:
    written: Json = {"failurePolicy": {"maxRestarts": 5}}
    found = failure_policy_of(admitted_job(cluster, jobset(replicated_job(pod_template(SPOT)), spec=written)))
    assert found["maxRestarts"] == MOST_RESTARTS
    (rule,) = objects(found["rules"])
    assert (rule["name"], rule["action"]) == (EVICTIONS, "RestartJobSetAndIgnoreMaxRestarts")


def test_a_job_without_a_failure_policy_gets_one(cluster: KubeClient) -> None:
    found = failure_policy_of(admitted_job(cluster, jobset(replicated_job(pod_template(SPOT)))))
    assert found["maxRestarts"] == MOST_RESTARTS
    assert len(objects(found["rules"])) == 1


def test_rules_of_the_author_come_after_the_eviction_rule(cluster: KubeClient) -> None:
    own: Json = {"name": "Hopeless", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}
    written: Json = {"failurePolicy": {"maxRestarts": 2_000_000, "rules": [own]}}
    found = failure_policy_of(admitted_job(cluster, jobset(replicated_job(pod_template(SPOT)), spec=written)))
    assert [rule["name"] for rule in objects(found["rules"])] == [EVICTIONS, "Hopeless"]
    assert found["maxRestarts"] == 2_000_000


def test_pod_failure_rules_of_the_author_come_after_the_eviction_rule(cluster: KubeClient) -> None:
    own: Json = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    job: Json = {
        "podFailurePolicy": {"rules": [own]},
        "podReplacementPolicy": "TerminatingOrFailed",
        "backoffLimit": 6,
    }
    found = jobs_of(admitted_job(cluster, jobset(replicated_job(pod_template(SPOT), job=job))))["worker"]
    first, second = objects(obj(found["podFailurePolicy"])["rules"])
    assert "onPodConditions" in first
    assert second == own
    assert found["podReplacementPolicy"] == "Failed"


def test_replaced_fields_are_kept_in_an_annotation(cluster: KubeClient) -> None:
    template = pod_template({**SPOT, "disk": "fast"}, spec={"restartPolicy": "OnFailure"})
    written = jobset(
        replicated_job(template, job={"backoffLimit": 3}),
        annotations={"team": "vision"},
        spec={"failurePolicy": {"maxRestarts": 5}},
    )
    found = admitted_job(cluster, written)
    assert original_of(found) == {
        "maxRestarts": 5,
        "replicatedJobs": {
            "worker": {
                "nodeSelector": {**SPOT, "disk": "fast"},
                "restartPolicy": "OnFailure",
                "backoffLimit": 3,
            }
        },
    }
    assert annotations_of(found)["team"] == "vision"
    assert selectors_of(found)["worker"] == {POOL: "a100-spot", "disk": "fast"}


@pytest.mark.parametrize("metadata", [None, {}, {"labels": {"app": "train"}}, {"annotations": {"a": "b"}}])
def test_a_template_is_labeled_with_any_metadata(cluster: KubeClient, metadata: Json | None) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template(SPOT, metadata=metadata))))
    template = obj(templates_of(found)["worker"]["metadata"])
    assert obj(template["labels"]) == {**obj(obj(metadata).get("labels")), FOLLOWS: "true"}


def test_other_jobs_beside_spot_workers_keep_their_selectors(unvalidated: KubeClient) -> None:
    found = admitted_job(
        unvalidated,
        jobset(
            replicated_job(pod_template(), "driver"),
            replicated_job(pod_template({CAPACITY_TYPE: "on-demand"}), "store"),
            replicated_job(pod_template(SPOT)),
        ),
    )
    assert marked(found) == ["worker"], "a driver that asks for nothing is meant for the default pool"
    assert selectors_of(found)["driver"] == {}
    assert selectors_of(found)["store"] == {CAPACITY_TYPE: "on-demand"}
    assert "podFailurePolicy" not in jobs_of(found)["driver"]


def test_a_job_with_only_the_label_follows_with_all_its_pods(cluster: KubeClient) -> None:
    jobs = (replicated_job(pod_template(), "driver"), replicated_job(pod_template()))
    found = admitted_job(cluster, jobset(*jobs, labels=LABEL))
    assert selectors_of(found) == {"driver": {POOL: "a100-spot"}, "worker": {POOL: "a100-spot"}}


@pytest.mark.parametrize("pool", ["cpu-spot", "a100-spot"])
def test_a_job_that_names_a_spot_tier_starts_there(cluster: KubeClient, pool: str) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template({POOL: pool}))))
    assert label_of(found) == "true"
    assert selectors_of(found)["worker"] == {POOL: pool}


def test_a_job_on_the_on_demand_tier_follows_only_with_the_label(cluster: KubeClient) -> None:
    written = jobset(replicated_job(pod_template({POOL: "a100"})))
    assert label_of(admitted_job(cluster, written)) is None
    asked = jobset(replicated_job(pod_template({POOL: "a100"})), labels=LABEL)
    found = admitted_job(cluster, asked)
    assert (selectors_of(found)["worker"], marked(found)) == ({POOL: "a100"}, ["worker"])


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (jobset(replicated_job(pod_template())), "it asks for nothing"),
        (jobset(replicated_job(pod_template(SPOT)), labels={FOLLOWS: "false"}), "its author said no"),
        (jobset(replicated_job(pod_template({CAPACITY_TYPE: "on-demand"}))), "it asks for on-demand"),
        (jobset(replicated_job(pod_template({POOL: "elsewhere"})), labels=LABEL), "its pool is on no ladder"),
        (
            jobset(replicated_job(pod_template(SPOT)), spec={"managedBy": "kueue.x-k8s.io/multikueue"}),
            "another cluster's JobSet runs it",
        ),
        (jobset(), "it has no pods"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_job_that_does_not_follow_is_stored_unchanged(unvalidated: KubeClient, job: Json, why: str) -> None:
    found = admitted_job(unvalidated, job)
    assert ORIGINAL not in annotations_of(found), why
    assert selectors_of(found) == selectors_of(job), why
    assert "failurePolicy" not in obj(found["spec"]), why


GPUS: Json = {
    "containers": [{"name": "train", "image": "train:1", "resources": {"limits": {GPU_RESOURCE: 8}}}]
}


@pytest.fixture(scope="module")
def known(cluster: KubeClient) -> KubeClient:
    """The same cluster, where the namespaces `gpu-team` and `cpu-team` have ladders whose machines are known."""
    for name, gpus in (("gpu-team", 8), ("cpu-team", 0)):
        make_namespace(cluster, name, {TRAINING: TRAINING_VALUE})
        facts: Json = {"capacity": "spot", "machine": {"cpu": "96", "memory": "1Ti", "gpus": gpus}}
        spot: Json = {"pool": f"{name}-spot", "maxFailures": 5, "procurementTimeout": "15m", "facts": facts}
        tiers: list[Json] = [spot, {"pool": name}]
        cluster.apply(ladder(*tiers, namespace=name), field_manager="tests")
        probe = jobset(replicated_job(pod_template()), namespace=name, labels=LABEL)
        wait_until_enforced(cluster, lambda client, probe=probe: is_admitted(client, probe))
    return cluster


def is_admitted(cluster: KubeClient, job: Json) -> bool:
    try:
        admitted_job(cluster, job)
    except ApiError:  # its ladder is not known yet
        return False
    return True


@pytest.mark.parametrize(
    ("namespace", "spec", "follows"),
    [("gpu-team", GPUS, True), ("gpu-team", {}, False), ("cpu-team", GPUS, False), ("cpu-team", {}, True)],
)
def test_a_job_follows_only_a_ladder_with_the_machines_that_it_needs(
    known: KubeClient, namespace: str, spec: Json, follows: bool
) -> None:
    job = jobset(replicated_job(pod_template(SPOT, spec=spec)), namespace=namespace)
    found = selectors_of(admitted_job(known, job))["worker"]
    assert found == ({POOL: f"{namespace}-spot"} if follows else SPOT)


def test_a_helper_follows_its_job_to_gpu_machines(known: KubeClient) -> None:
    jobs = (replicated_job(pod_template(SPOT), "loader"), replicated_job(pod_template(SPOT, spec=GPUS)))
    found = admitted_job(known, jobset(*jobs, namespace="gpu-team"))
    assert marked(found) == ["loader", "worker"]


def test_the_label_overrides_the_machines_that_a_job_seems_to_need(known: KubeClient) -> None:
    found = admitted_job(
        known, jobset(replicated_job(pod_template(SPOT)), namespace="gpu-team", labels=LABEL)
    )
    assert selectors_of(found)["worker"] == {POOL: "gpu-team-spot"}


def test_jobs_outside_training_namespaces_are_unchanged(cluster: KubeClient) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template(SPOT)), namespace=OTHER_NAMESPACE))
    assert selectors_of(found) == {"worker": SPOT}


def test_kueues_jobs_keep_their_selectors(cluster: KubeClient) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template(SPOT)), labels={QUEUE_NAME: "spot"}))
    assert selectors_of(found) == {"worker": SPOT}
    assert label_of(found) == "true", "the controller must know of it, to say what it does about it"
    assert jobs_of(found)["worker"]["backoffLimit"] == 0


@pytest.mark.parametrize(
    ("terms", "left"),
    [
        ([[expression(CAPACITY_TYPE, "In", "spot")]], None),
        (
            [[expression(CAPACITY_TYPE, "In", "spot"), expression("disk", "In", "fast")]],
            [[expression("disk", "In", "fast")]],
        ),
        ([[expression(CAPACITY_TYPE, "In", "spot")], [expression("disk", "Exists")]], None),
        (
            [
                [expression(CAPACITY_TYPE, "In", "on-demand", "spot"), expression("disk", "Exists")],
                [expression("zone", "Gt", "1")],
            ],
            [[expression("disk", "Exists")], [expression("zone", "Gt", "1")]],
        ),
    ],
    ids=["spot alone", "spot and more", "spot or something else", "two ways, one of them spot"],
)
def test_only_the_spot_terms_of_a_required_affinity_are_removed(
    cluster: KubeClient, terms: list[list[Json]], left: list[list[Json]] | None
) -> None:
    spec: Json = {"affinity": required_affinity(*terms)}
    found = templates_of(admitted_job(cluster, jobset(replicated_job(pod_template(spec=spec)))))["worker"]
    expected = obj(None if left is None else required_affinity(*left)["nodeAffinity"])
    assert obj(obj(obj(found["spec"])["affinity"])["nodeAffinity"]) == expected


def test_admission_is_idempotent(cluster: KubeClient) -> None:
    written = jobset(
        replicated_job(pod_template(), "driver"),
        replicated_job(pod_template(SPOT), job={"podFailurePolicy": {"rules": []}}),
        spec={"failurePolicy": {"maxRestarts": 5}},
    )
    once = admitted_job(cluster, written)
    again = admitted_job(cluster, as_manifest(once))
    assert as_manifest(again) == as_manifest(once)


def test_a_malformed_job_is_rejected_by_the_api(cluster: KubeClient) -> None:
    with pytest.raises(ApiError) as caught:
        admitted_job(cluster, jobset({"name": "worker"}, labels=LABEL))
    assert "training-jobsets" not in str(caught.value)


def test_a_failed_expression_is_reported_briefly(cluster: KubeClient) -> None:
    with pytest.raises(ApiError) as caught:
        admitted_job(cluster, jobset(spec={"replicatedJobs": "worker"}))
    assert len(str(caught.value)) < 500
