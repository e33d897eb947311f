"""A RayJob of one gang of workers that follows a ladder, as admission changes it."""

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL


def gang_rayjob(
    name: str,
    namespace: str,
    *,
    pods: int,
    pool: str,
    cpu: str,
    pod: "Json | None" = None,
    annotations: "Json | None" = None,
    worker_annotations: "Json | None" = None,
    spec: "Json | None" = None,
) -> Json:
    """Return a RayJob with `pods` workers in a pool that request `cpu`, submitted over HTTP; its head is on no pool.

    `pod` adds fields to the workers' spec, `spec` to that of the RayJob.
    """
    workers: Json = {
        "groupName": "worker",
        "replicas": pods,
        "minReplicas": pods,
        "maxReplicas": pods,
        "rayStartParams": {},
        "template": {
            "metadata": {"annotations": worker_annotations or {}},
            "spec": {
                "nodeSelector": {POOL: pool},
                "containers": [_container("ray-worker", cpu)],
                **(pod or {}),
            },
        },
    }
    head: Json = {
        "rayStartParams": {},
        "template": {"spec": {"containers": [_container("ray-head", "100m")]}},
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {FOLLOWS: FOLLOWS_VALUE},
            "annotations": annotations or {},
        },
        "spec": {
            "entrypoint": "python -m train",
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {"rayVersion": "2.52.0", "headGroupSpec": head, "workerGroupSpecs": [workers]},
            **(spec or {}),
        },
    }


def _container(name: str, cpu: str) -> Json:
    return {"name": name, "image": "ray:1", "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}
