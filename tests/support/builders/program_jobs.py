"""A program with CPU pools, a ladder over them, and jobs that it creates itself."""

from typing import cast

from holdfast.policies.program.resources import StackResource, Value
from holdfast.scheduling.json import UNKNOWN, Json
from holdfast.scheduling.labels import CAPACITY_TYPE, INSTANCE_TYPE, POOL
from tests.support.builders.stack_resources import NODE_POOL_TYPE, ladder, namespace, resource
from tests.support.builders.training_jobs import jobset, pod_template, replicated_job
from tests.support.json_objects import obj

JOB_SET = "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet"
RAY_JOB = "kubernetes:ray.io/v1:RayJob"
JOB = "kubernetes:batch/v1:Job"

TIERS: list[Value] = [{"pool": "cpu-spot", "maxFailures": 5, "procurementTimeout": "15m"}, {"pool": "cpu"}]


def cpu_pool(name: str, kind: str, *, nodes: int = 4, **template: Value) -> StackResource:
    """A NodePool of machines with 4 CPUs and 16 GiB, `nodes` of them at most."""
    spec: dict[str, Value] = {
        "requirements": [
            {"key": CAPACITY_TYPE, "operator": "In", "values": [kind]},
            {"key": INSTANCE_TYPE, "operator": "In", "values": ["m7i.xlarge"]},
        ],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        **template,
    }
    props: dict[str, Value] = {
        "metadata": {"name": name},
        "spec": {
            "template": {"metadata": {"labels": {POOL: name}}, "spec": spec},
            "limits": {"cpu": str(4 * nodes)},
        },
    }
    return resource(NODE_POOL_TYPE, name, props)


def job_program(*jobs: StackResource, nodes: int = 4) -> list[StackResource]:
    """The namespace, its ladder, its pools, and these jobs."""
    pools = [cpu_pool("cpu-spot", "spot", nodes=nodes), cpu_pool("cpu", "on-demand", nodes=nodes)]
    return [namespace(), ladder(TIERS), *pools, *jobs]


def declared(type_token: str, job: Json) -> StackResource:
    """A job as a resource of the program."""
    return resource(type_token, "train", cast("dict[str, Value]", dict(job)))


def requesting(**amounts: str) -> Json:
    """A container with these requests."""
    return {"name": "train", "image": "train:1", "resources": {"requests": amounts}}


def declared_jobset(
    pod: Json,
    *,
    parallelism: int = 1,
    selector: str = "cpu-spot",
    metadata: Json | None = None,
    unknown: str = "",
) -> StackResource:
    """A JobSet of one replicated job on a pool, whose pods have this specification.

    `unknown` is a label that its pods select with a value that only the update knows.
    """
    template = pod_template({POOL: selector}, spec={"containers": [requesting(cpu="3", memory="8Gi")], **pod})
    job = jobset(replicated_job(template, job={"parallelism": parallelism}))
    made = declared(
        JOB_SET, {**job, "metadata": {"name": "train", "namespace": "vision", **(metadata or {})}}
    )
    if unknown:
        selected = cast("dict[str, Value]", obj(obj(template["spec"])["nodeSelector"]))
        selected[unknown] = UNKNOWN
    return made
