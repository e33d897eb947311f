"""JobSets, RayJobs and pods as tests write them, and readers of what admission makes of them."""

from collections.abc import Mapping, Sequence

from pulumi_holdfast.kubernetes.admission.rules import karpenter_rules
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, GPU_RESOURCE, CapacityType
from pulumi_holdfast.ladder.pools import Pool
from tests.support.json_objects import obj, objects

NAMESPACE = "vision"


def ladder(*tiers: Json, namespace: str = NAMESPACE, **options: str) -> Json:
    """A ladder of these tiers."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "ladder", "namespace": namespace},
        "spec": {"tiers": list(tiers), **options},
    }


def pod_template(
    selector: Mapping[str, str] | None = None, *, metadata: Json | None = None, spec: Json | None = None
) -> Json:
    """A template of a pod that selects by this, with what is given put over it."""
    return {
        **({} if metadata is None else {"metadata": metadata}),
        "spec": {
            "containers": [{"name": "train", "image": "train:1"}],
            **({} if selector is None else {"nodeSelector": selector}),
            **(spec or {}),
        },
    }


def replicated_job(template: Json, name: str = "worker", job: Json | None = None) -> Json:
    """One of a JobSet's jobs, with what is given put over its specification."""
    return {"name": name, "template": {"spec": {"template": template, **(job or {})}}}


def jobset(
    *jobs: Json,
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
) -> Json:
    """A JobSet of these jobs, with what is given put over its specification."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(namespace, labels, annotations),
        "spec": {"replicatedJobs": list(jobs), **(spec or {})},
    }


def worker_group(template: Json, name: str = "worker") -> Json:
    """One of a RayJob's groups of workers."""
    return {
        "groupName": name,
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "rayStartParams": {},
        "template": template,
    }


def rayjob(
    *groups: Json,
    head: Json | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
) -> Json:
    """A RayJob with these groups of workers, with what is given put over its specification."""
    cluster: Json = {
        "headGroupSpec": {"rayStartParams": {}, "template": head or pod_template()},
        "workerGroupSpecs": list(groups),
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": _metadata(NAMESPACE, labels, annotations),
        "spec": {"entrypoint": "python -m train", "rayClusterSpec": cluster, **(spec or {})},
    }


def _metadata(
    namespace: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> Json:
    return {
        "name": "train",
        "namespace": namespace,
        **({} if labels is None else {"labels": labels}),
        **({} if annotations is None else {"annotations": annotations}),
    }


def jobs_of(job: Json) -> Mapping[str, Json]:
    """The specification of each of a JobSet's Jobs, by name."""
    found = objects(obj(job["spec"])["replicatedJobs"])
    return {str(each["name"]): obj(obj(each["template"])["spec"]) for each in found}


def templates_of(job: Json) -> Mapping[str, Json]:
    """The templates of a job's pods, by the name of what they belong to; a Ray head's under `head`."""
    if job["kind"] == "JobSet":
        return {name: obj(each["template"]) for name, each in jobs_of(job).items()}
    cluster = obj(obj(job["spec"])["rayClusterSpec"])
    groups = {
        str(each["groupName"]): obj(each["template"]) for each in objects(cluster.get("workerGroupSpecs"))
    }
    return {"head": obj(obj(cluster["headGroupSpec"])["template"]), **groups}


def selectors_of(job: Json) -> Mapping[str, Json]:
    """What each template selects by."""
    return {
        name: obj(obj(template["spec"]).get("nodeSelector")) for name, template in templates_of(job).items()
    }


def marked(job: Json) -> Sequence[str]:
    """The templates that are marked as following."""
    return [
        name
        for name, template in templates_of(job).items()
        if obj(obj(template.get("metadata")).get("labels")).get(FOLLOWS) == "true"
    ]


POOLS = (
    Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=4, is_default=True),
    Pool(name="cpu-spot", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=4),
    Pool(name="a100", capacity=CapacityType.ON_DEMAND, has_gpus=True, max_nodes=4),
    Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=4),
)
RULES = karpenter_rules(POOLS)
SPOT_RULE, GPU_RULE = RULES


def container(gpus: str | None = None, name: str = "train") -> Json:
    """A container, with as many GPUs as given."""
    return {
        "name": name,
        "image": "train:1",
        **({"resources": {"limits": {GPU_RESOURCE: gpus}}} if gpus else {}),
    }


def pod(
    *,
    namespace: str,
    name: str = "worker",
    annotations: Mapping[str, str] | None = None,
    containers: Sequence[Json] | None = None,
    spec: Json | None = None,
) -> Json:
    """A pod that asks for nothing, with what is given put over it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {"containers": list(containers or [container()]), **(spec or {})},
    }


def required_affinity(*terms: Sequence[Json]) -> Json:
    """A required node affinity: any of the terms, each a list of expressions."""
    selector: Json = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def preferred_affinity(*expressions: Json) -> Json:
    """A node affinity that weighs in, and binds to nothing."""
    preference: Json = {"weight": 1, "preference": {"matchExpressions": list(expressions)}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def expression(key: str, operator: str, *values: str) -> Json:
    """One expression of a node affinity term."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
