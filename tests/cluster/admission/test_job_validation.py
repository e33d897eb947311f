"""Jobs that cannot fall back are refused when they are created, with the reason."""

from collections.abc import Mapping

import pytest

from pulumi_holdfast.controller.jobs.base_observation import max_cost_events
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME
from pulumi_holdfast.kubernetes.admission.job_validation import LONGEST_MESSAGE
from pulumi_holdfast.kubernetes.admission.jobset import EVICTIONS
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    AFTER_MAX_COST,
    CAPACITY_TYPE,
    EXCLUSIVE_TOPOLOGY,
    FOLLOWS,
    MAX_COST,
    POOL,
    SPOT,
)
from tests.support.builders.training_jobs import (
    expression,
    jobset,
    pod_template,
    replicated_job,
    required_affinity,
)
from tests.support.clusters.admission import OTHER_NAMESPACE
from tests.support.clusters.job_admission import (
    ALLOWED_CLAIM,
    BARE,
    STACKS_CLAIM,
    Judging,
    admitted_job,
    gang,
    mounting,
    training,
)
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster


LABEL = {FOLLOWS: "true"}
ON_SPOT = {CAPACITY_TYPE: SPOT}


def on_gpus(*jobs: Json, labels: Mapping[str, str] | None = None, spec: Json | None = None) -> Json:
    return jobset(*jobs, namespace="gpus", labels=labels, spec=spec)


def requiring(*terms: list[Json]) -> Json:
    return {"affinity": required_affinity(*terms)}


def rule(action: str, **fields: list[str]) -> Json:
    return {"name": EVICTIONS, "action": action, **fields}


def ended_by(*rules: Json, restarts: int = 5) -> Json:
    return {"failurePolicy": {"maxRestarts": restarts, "rules": list(rules)}}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (
            gang(training(cpu="97")),
            "none of its machine types fits a pod of 8 GPUs, 97 CPU, 512 GiB: p4d has",
        ),
        (gang(training(memory="1153Gi")), "none of its machine types fits"),
        (gang(training(gpus="16")), "none of its machine types fits a pod of 16 GPUs"),
        (gang(training(), pods=5), "it has room for at most 4 of the 5 pods that have to run together"),
        (
            gang(training(devices={"google.com/tpu": "4", "example.com/fpga": "1"})),
            "fits a pod of 8 GPUs, 48 CPU, 512 GiB, 1 example.com/fpga, 4 google.com/tpu: p4d has",
        ),
        (gang(training(devices={"hugepages-2Mi": "1Gi"})), "512 GiB, 1024 MiB hugepages-2Mi: p4d has"),
        (gang(training(devices={"vpc.amazonaws.com/efa": "1"})), "fits a pod of 8 GPUs, 1 EFA, 48 CPU"),
        (
            gang(training(spec={"resources": {"limits": {"hugepages-2Mi": "1Gi", "memory": "2000Gi"}}})),
            "512 GiB, 1024 MiB hugepages-2Mi: p4d has",
        ),
        (gang(training(cpu="9E")), "fits a pod of 8 GPUs, 1024000 CPU, 512 GiB"),
        (gang(training(), pods=2**31 - 1), "4 of the 2147483647 pods"),
        (
            gang(training({**ON_SPOT, "disk": "nvme"})),
            "tier 2 → pool a100: the pods select disk=nvme, but its nodes have disk=slow",
        ),
        (
            gang(training({**ON_SPOT, "rack": "7"})),
            "the pods select rack=7, but its nodes do not have this label. Remove rack from the job",
        ),
        (
            gang(training(spec=requiring([expression("disk", "In", "fast", "nvme")]))),
            "the pods require disk by node affinity, and no term of it matches its nodes",
        ),
        (
            gang(training(spec=requiring([expression("generation", "Gt", "4")]))),
            "the pods require generation by node affinity",
        ),
        (
            gang(training(spec=requiring([expression(CAPACITY_TYPE, "NotIn", "on-demand")]))),
            "worker requires karpenter.sh/capacity-type by node affinity",
        ),
        (
            gang(training(spec=mounting("scratch"))),
            "worker mounts the volume claim scratch, which may be bound to a zone",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_job_that_cannot_reach_the_end_of_its_ladder_is_rejected(
    judging: Judging, job: Json, why: str
) -> None:
    found = judging.refusal(on_gpus(job))
    assert why in found
    assert found.rstrip().endswith("."), "and what would fix it, to the end"


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        (
            (gang(training(), 3, "actors"), gang(training(), 3, "learners")),
            "the job cannot fall back: tier 2 → pool a100: all its nodes together have 32 GPUs",
        )
    ],
    ids=["more than all nodes have"],
)
def test_pods_that_run_together_must_fit_together(judging: Judging, jobs: tuple[Json, ...], why: str) -> None:
    assert why in judging.refusal(on_gpus(*jobs))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "absent"}, 'serviceaccount "absent" not found'),
        ({"priorityClassName": "absent"}, "no PriorityClass with name absent was found"),
        ({"runtimeClassName": "absent"}, 'RuntimeClass "absent" not found'),
        ({"restartPolicy": "Always", "volumes": [{"name": "a b"}]}, "the Job of worker: "),
    ],
    ids=["service account", "priority class", "runtime class", "invalid"],
)
def test_what_the_api_server_refuses_about_pods_is_said_in_its_words(
    judging: Judging, spec: Json, why: str
) -> None:
    found = judging.refusal(on_gpus(gang(training(spec=spec))))
    assert found.startswith("The API server refuses ")
    assert why in found


def test_pods_that_pod_security_forbids_are_refused_before_they_exist(judging: Judging) -> None:
    level = "pod-security.kubernetes.io/enforce"

    def enforce(value: str | None) -> None:
        judging.client.merge_patch("v1", "Namespace", "gpus", {"metadata": {"labels": {level: value}}})

    enforce("baseline")
    try:
        found = judging.refusal(on_gpus(gang(training(spec={"hostNetwork": True}))))
        assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in found
        assert not judging.problems(on_gpus(gang(training())))
    finally:
        enforce(None)


def test_child_jobs_that_need_a_node_pool_each_cannot_run_on_a_tier(judging: Judging) -> None:
    job = jobset(
        {**gang(training(), 1), "replicas": 2},
        namespace="gpus",
        annotations={EXCLUSIVE_TOPOLOGY: "cloud.google.com/gke-nodepool"},
    )
    assert "each of its 2 child Jobs needs a value of cloud.google.com/gke-nodepool" in judging.refusal(job)


def test_templates_that_start_on_different_tiers_are_rejected(judging: Judging) -> None:
    jobs = (gang(training({POOL: "a100-spot"}), 1, "one"), gang(training({POOL: "a100"}), 1, "other"))
    assert "its templates start on different tiers: a100-spot, a100" in judging.refusal(
        on_gpus(
            gang(training({POOL: "a100-spot"}), 1, "one"),
            {**jobs[1], "template": marked_template(jobs[1])},
            labels=LABEL,
        )
    )


def marked_template(job: Json) -> Json:
    """A template that is marked by its author, as one that came out of admission."""
    return {"spec": {"template": {"metadata": {"labels": LABEL}, "spec": training({POOL: "a100"})["spec"]}}}


def test_a_job_that_depends_on_another_needs_no_capacity_beside_it(judging: Judging) -> None:
    after: Json = {"dependsOn": [{"name": "first", "status": "Complete"}]}
    jobs = (gang(training(), 3, "first"), {**gang(training(), 3, "second"), **after})
    assert not judging.problems(on_gpus(*jobs))


def test_a_job_that_would_be_stuck_above_on_demand_capacity_is_rejected(judging: Judging) -> None:
    large = gang(training({CAPACITY_TYPE: SPOT}, cpu="20", memory="8Gi", gpus="0"), 1)
    found = judging.refusal(jobset(large, namespace="cpus"))
    assert "tier 1 → pool cpu-small: none of its machine types fits a pod of 20 CPU, 8 GiB" in found
    assert "No pod runs there, so no failure leads past it" in found


def test_a_tier_without_capacity_is_allowed_if_its_timeout_leads_on(judging: Judging) -> None:
    pinned = gang(training({**ON_SPOT, "disk": "slow"}))
    assert not judging.problems(on_gpus(pinned))


def test_jobs_of_a_ladder_that_never_leaves_spot_are_accepted(judging: Judging) -> None:
    assert not judging.problems(jobset(gang(training()), namespace="spot"))


def test_a_job_that_starts_on_the_last_tier_is_validated_on_it_only(judging: Judging) -> None:
    job = gang(training({POOL: "a100", "disk": "slow"}))
    assert not judging.problems(on_gpus(job, labels=LABEL))


def test_a_labeled_job_that_cannot_follow_is_rejected_with_the_reason(judging: Judging) -> None:
    elsewhere = gang(training({POOL: "elsewhere"}))
    found = judging.refusal(on_gpus(elsewhere, labels=LABEL))
    assert "none of its templates can follow the ladder of its namespace, which has a100-spot, a100" in found


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({MAX_COST: "$250"}, 'max-cost is "$250". Write a number above 0, such as 250'),
        ({MAX_COST: "0.00"}, 'max-cost is "0.00"'),
        ({AFTER_MAX_COST: "wait"}, "needs fallback.holdfast.dev/max-cost"),
        ({MAX_COST: "250", AFTER_MAX_COST: "stop"}, "Write wait or give-up."),
        ({MAX_COST: "250.50", AFTER_MAX_COST: "give-up"}, ""),
    ],
)
def test_limits_of_cost_are_accepted_exactly_when_the_controller_reads_them(
    judging: Judging, annotations: Mapping[str, str], why: str
) -> None:
    job = on_gpus(gang(training()))
    job = {**job, "metadata": {**obj(job["metadata"]), "annotations": annotations}}
    assert bool(max_cost_events(job)) == bool(why)
    if why:
        assert why in judging.refusal(job), "an amount that is misread would be spent"
    else:
        assert not judging.problems(job)


CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
EPHEMERAL: Json = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]}
CODE: Json = {"volumes": [{"name": "code", "configMap": {"name": "train"}}]}


@pytest.mark.parametrize(
    "spec",
    [mounting(ALLOWED_CLAIM), mounting(STACKS_CLAIM), EPHEMERAL, CODE],
    ids=["listed by the namespace", "the stack's own", "one that comes and goes with its pod", "no claim"],
)
def test_volumes_that_are_not_zonal_are_accepted(judging: Judging, spec: Json) -> None:
    assert not judging.problems(on_gpus(gang(training(spec=spec))))


def test_volume_claim_templates_are_zonal_too(judging: Judging) -> None:
    template: Json = {
        "metadata": {"name": "scratch"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    spec: Json = {"volumeClaimPolicies": [{"templates": [template]}]}
    assert "the job mounts the volume claim scratch" in judging.refusal(on_gpus(gang(training()), spec=spec))


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        (ended_by(rule("FailJobSet")), True),
        (ended_by(rule("FailJobSet", onJobFailureReasons=["PodFailurePolicy"])), True),
        (ended_by(rule("FailJobSet", onJobFailureReasons=["DeadlineExceeded"])), False),
        (ended_by(rule("RestartJobSet")), False),
        (ended_by(rule("RestartJobSetAndIgnoreMaxRestarts")), False),
    ],
    ids=["fails", "fails when evicted", "fails by its deadline", "restarts", "restarts without limit"],
)
def test_a_job_that_ends_with_its_first_eviction_is_rejected(
    judging: Judging, policy: Json, ends: bool
) -> None:
    job = on_gpus(gang(training()), spec=policy)
    if ends:
        assert "its failure policy fails it at the first pod that is lost" in judging.refusal(job)
    else:
        assert not judging.problems(job)


def test_where_evictions_alone_are_counted_a_rule_that_counts_restarts_needs_some(judging: Judging) -> None:
    policy = ended_by(rule("RestartJobSet"), restarts=0)
    job = jobset(gang(training()), namespace="evictions", spec=policy)
    assert "its failure policy fails it" in judging.refusal(job)
    assert not judging.problems(jobset(gang(training()), namespace="evictions"))


#: What JobSet's own webhook fills in; here is none.
DEFAULTED: Json = {"restartPolicy": "OnFailure"}
HOPELESS = gang(training(cpu="9000", spec=mounting("scratch")))


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (on_gpus(HOPELESS, labels={FOLLOWS: "false"}), "its author keeps it off the ladder"),
        (on_gpus(gang(training({}, cpu="9000"))), "it asks for nothing of a ladder"),
        (on_gpus(HOPELESS, labels={QUEUE_NAME: "team"}), "Kueue decides where it runs"),
        (on_gpus(HOPELESS, spec={"managedBy": "kueue.x-k8s.io/multikueue"}), "another cluster runs it"),
        (jobset(HOPELESS, namespace=OTHER_NAMESPACE), "no training namespace"),
        (jobset(gang(training(cpu="9000")), namespace="vision"), "what its ladder's pools are is not known"),
        (
            on_gpus(gang(training({**ON_SPOT, "topology.k8s.aws/network-node-layer-1": "nn-1"}))),
            "the cloud gives nodes labels that no ladder knows",
        ),
        (
            on_gpus(
                gang(
                    training(
                        spec=requiring([expression("disk", "In", "slow")], [expression("disk", "Exists")])
                    )
                )
            ),
            "one alternative is enough",
        ),
        (
            on_gpus(
                gang(training()),
                replicated_job(pod_template(spec={**mounting("scratch"), **DEFAULTED}), "driver"),
            ),
            "a driver stays on the default pool",
        ),
        (
            on_gpus(gang(training()), replicated_job(pod_template({POOL: "cpu"}, spec=DEFAULTED), "driver")),
            "nor does one that names a pool of no tier move",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_jobs_without_a_verdict_are_accepted(judging: Judging, job: Json, why: str) -> None:
    assert not judging.problems(job), why


def test_a_job_created_before_its_ladder_is_rejected_by_the_mutating_policy(judging: Judging) -> None:
    with pytest.raises(ApiError) as caught:
        admitted_job(judging.client, jobset(gang(training()), namespace=BARE))
    assert "no params found" in str(caught.value)
    assert "training-jobsets'" in str(caught.value)


def test_a_message_with_many_problems_stays_readable(judging: Judging) -> None:
    jobs = [gang(training(cpu="9000", spec=mounting(f"claim-{n}")), name=f"worker-{n}") for n in range(12)]
    found = judging.refusal(on_gpus(*jobs))
    assert "worker-0 mounts" in found
    assert len(found) <= LONGEST_MESSAGE + 1
