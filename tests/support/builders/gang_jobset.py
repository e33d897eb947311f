"""A JobSet of one gang that follows a ladder, as admission changes it."""

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL

_DISRUPTED: Json = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def gang_jobset(
    name: str,
    namespace: str,
    *,
    pods: int,
    pool: str,
    cpu: str,
    failure_policy: Json,
    pod: "Json | None" = None,
    annotations: "Json | None" = None,
    labels: "Json | None" = None,
) -> Json:
    """Return a JobSet with `pods` pods in a pool that request `cpu`; `pod` adds fields to their spec, and `annotations` and `labels` are theirs."""
    spec: Json = {
        "restartPolicy": "Never",
        "nodeSelector": {POOL: pool},
        "containers": [{"name": "train", "image": "train", "resources": {"requests": {"cpu": cpu}}}],
        **(pod or {}),
    }
    template: Json = {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [_DISRUPTED]},
        "template": {"metadata": {"annotations": annotations or {}, "labels": labels or {}}, "spec": spec},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": namespace, "labels": {FOLLOWS: FOLLOWS_VALUE}},
        "spec": {
            "failurePolicy": failure_policy,
            "replicatedJobs": [{"name": "worker", "replicas": 1, "template": {"spec": template}}],
        },
    }
