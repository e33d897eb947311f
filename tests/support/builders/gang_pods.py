"""The pods that an operator creates for a job."""

from collections.abc import Iterator

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.reachability.shape import Shape
from tests.support.json_objects import obj, objects


def pods_of(job: Json) -> list[Json]:
    """The specifications of the pods of a JobSet, or of a RayJob with its head and its submitter."""
    return list(_of_jobset(obj(job["spec"])) if job["kind"] == "JobSet" else _of_rayjob(obj(job["spec"])))


def _of_jobset(spec: Json) -> Iterator[Json]:
    for each in objects(spec["replicatedJobs"]):
        job = obj(obj(each["template"])["spec"])
        for _ in range(int(str(each.get("replicas", 1))) * int(str(job.get("parallelism", 1)))):
            yield obj(obj(job["template"])["spec"])


def _of_rayjob(spec: Json) -> Iterator[Json]:
    cluster = obj(spec["rayClusterSpec"])
    head = obj(obj(obj(cluster["headGroupSpec"])["template"])["spec"])
    # KubeRay's submitter runs the head's image, and asks for half a CPU.
    yield from (head, {"restartPolicy": "Never", "containers": [{"name": "submitter", "image": "ray:2"}]})
    for group in objects(cluster["workerGroupSpecs"]):
        for _ in range(int(str(group["replicas"]))):
            yield obj(obj(group["template"])["spec"])


def pods_of_shape(shape: Shape) -> list[Json]:
    """The specifications of a gang's pods."""
    gpus = {"nvidia.com/gpu": str(shape.requests.gpus)} if shape.requests.gpus else {}
    requests = {"cpu": f"{shape.requests.cpu_millis}m", "memory": f"{shape.requests.memory_mib}Mi"}
    container: Json = {
        "name": "train",
        "image": "train:1",
        "resources": {"requests": requests, "limits": gpus},
    }
    return [{"containers": [container]}] * shape.pods


def pod(name: str, namespace: str, spec: Json) -> Json:
    """A pod of that specification which needs no service account of its cloud's."""
    kept = {key: value for key, value in spec.items() if key != "serviceAccountName"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": kept,
    }
