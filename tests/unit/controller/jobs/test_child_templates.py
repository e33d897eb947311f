"""The Jobs and pods that JobSet and KubeRay create for a job. A cluster test compares them with what the operators create."""

from pulumi_holdfast.controller.jobs.child_templates import ChildTemplate, child_templates, pod_of_job
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import HOSTNAME, POOL, ZONE
from tests.support.builders.fallback_objects import jobset, pod_spec, rayjob, replicated_job, worker_group
from tests.support.json_objects import obj, objects

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def job_of(template: ChildTemplate) -> Json:
    assert template.job is not None
    return template.job


def test_each_replicated_job_has_its_first_job_and_that_jobs_first_pod() -> None:
    first, second = child_templates(
        jobset(replicated_job("driver", parallelism=1), replicated_job("workers", replicas=3))
    )
    assert (first.pods, second.pods) == (1, 6)
    assert obj(job_of(second)["metadata"])["name"] == "train-workers-0"
    labels = obj(obj(second.pod["metadata"])["labels"])
    assert labels["jobset.sigs.k8s.io/job-global-index"] == "1"
    assert labels["jobset.sigs.k8s.io/global-replicas"] == "4"
    assert labels["batch.kubernetes.io/job-name"] == "train-workers-0"
    assert obj(second.pod["spec"])["subdomain"] == "train"


def test_a_template_that_runs_no_pod_is_left_out() -> None:
    (only,) = child_templates(jobset(replicated_job("a"), replicated_job("none", replicas=0)))
    assert only.name == "a"
    assert child_templates({"kind": "JobSet", "metadata": {"name": "a"}}) == ()
    assert child_templates({"kind": "RayJob", "metadata": {"name": "a"}}) == ()


def test_an_indexed_job_gives_its_pods_an_index_and_a_host_name() -> None:
    job: Json = {
        "metadata": {"name": "train-w-0", "namespace": "vision", "uid": "u"},
        "spec": {
            "completionMode": "Indexed",
            "template": {"spec": pod_spec(initContainers=[{"name": "prepare"}])},
        },
    }
    pod = pod_of_job(job)
    metadata, spec = obj(pod["metadata"]), obj(pod["spec"])
    index = "batch.kubernetes.io/job-completion-index"
    assert (metadata["generateName"], spec["hostname"]) == ("train-w-0-0-", "train-w-0-0")
    assert obj(metadata["annotations"])[index] == obj(metadata["labels"])[index] == "0"
    for container in (*objects(spec["containers"]), *objects(spec["initContainers"])):
        assert [each["name"] for each in objects(container["env"])] == ["JOB_COMPLETION_INDEX"]


def test_templates_that_end_before_others_begin_are_named_through_others() -> None:
    waits: Json = {"name": "load", "status": "Complete"}
    ready: Json = {"name": "serve", "status": "Ready"}
    load, serve, train = child_templates(
        jobset(
            replicated_job("load"),
            replicated_job("serve", dependsOn=[waits]),
            replicated_job("train", dependsOn=[ready]),
        )
    )
    assert (load.after, serve.after, train.after) == (frozenset(), {"load"}, {"load"})


def test_an_exclusive_topology_of_the_template_replaces_that_of_the_jobset() -> None:
    own = replicated_job("own", replicas=2)
    template: Json = {**obj(own["template"]), "metadata": {"annotations": {EXCLUSIVE: ZONE}}}
    made = child_templates(
        jobset({**own, "template": template}, replicated_job("other"), annotations={EXCLUSIVE: HOSTNAME})
    )
    assert [each.apart_by for each in made] == [(ZONE, 2), (HOSTNAME, 1)]
    assert obj(obj(job_of(made[0])["metadata"])["annotations"])[EXCLUSIVE] == ZONE


def test_claims_that_the_jobset_creates_are_mounted_where_a_container_names_them() -> None:
    mounts: Json = {"name": "train", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    policies = [{"templates": [{"metadata": {"name": "data"}}, {"metadata": {"name": "unused"}}]}]
    made = jobset(replicated_job(template=pod_spec({POOL: "a"}, containers=[mounts])))
    (template,) = child_templates({**made, "spec": {**obj(made["spec"]), "volumeClaimPolicies": policies}})
    (volume,) = objects(obj(template.pod["spec"])["volumes"])
    assert obj(volume["persistentVolumeClaim"])["claimName"] == "data-train"


def test_a_rayjob_has_a_head_its_groups_and_the_job_that_submits_it() -> None:
    head, workers, submitter = child_templates(rayjob(worker_group("gpu", selector={POOL: "spot-a"})))
    assert [each.name for each in (head, workers, submitter)] == ["head", "gpu", "submitter"]
    assert [each.follows for each in (head, workers, submitter)] == [False, True, False]
    assert obj(obj(head.pod["metadata"])["labels"])["ray.io/node-type"] == "head"
    waits = objects(obj(workers.pod["spec"])["initContainers"])[-1]
    assert (waits["name"], waits["image"]) == ("wait-gcs-ready", "train:1")
    assert obj(job_of(submitter)["metadata"])["name"] == "train"
    assert obj(submitter.pod["spec"])["restartPolicy"] == "Never"


def test_a_rayjob_in_another_mode_has_no_job_that_submits_it() -> None:
    names = [each.name for each in child_templates(rayjob(submissionMode="HTTPMode"))]
    assert names == ["head", "worker"]


def test_a_submitter_of_the_author_is_taken() -> None:
    template: Json = {"spec": {"containers": [{"name": "mine", "image": "mine:1"}]}}
    *_, submitter = child_templates(rayjob(submitterPodTemplate=template))
    assert [each["name"] for each in objects(obj(submitter.pod["spec"])["containers"])] == ["mine"]
