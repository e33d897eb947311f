"""Changes of the repository's stacks that break one rule each, and the stacks to which they apply."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.pools.all_pools import declared_pools
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import Program, Props, every, of, put, without

KARPENTER = ("local", "aws-dev", "aws-prod", "azure-dev")
AWS = ("aws-dev", "aws-prod")
GCP = ("gcp-dev", "gcp-prod")
AKS = ("azure-prod",)
AZURE = ("azure-dev", "azure-prod")
ALL = ("local", *AWS, *AZURE, *GCP)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a program, the stacks to which it applies, and the one rule that it breaks."""

    what: str
    rule: str
    stacks: Sequence[str]
    apply: Callable[[Program], None]


def ladder(program: Program) -> StackResource:
    """The ladder of the namespace `tabular` of every stack: cpu-spot, then cpu."""
    return of(program, ":FallbackPolicy", "main-namespace-tabular-ladder")


def tiers(program: Program) -> list[Props]:
    """Its tiers."""
    return cast("list[Props]", cast("Props", ladder(program).props["spec"])["tiers"])


def pool(program: Program, name: str) -> StackResource:
    """The resource that declares a pool."""
    return next(each.resource for each in declared_pools(program) if each.label == name)


def template(program: Program, name: str, value: Value, *path: str | int) -> None:
    """Set a value in the template of a NodePool."""
    put(pool(program, name), value, "spec", "template", *path)


def _requirement(program: Program, name: str, key: str) -> Props:
    spec = cast("Props", cast("Props", pool(program, name).props["spec"])["template"])
    listed = cast("list[Props]", cast("Props", spec["spec"])["requirements"])
    return next(each for each in listed if each["key"] == key)


def _shapes(program: Program, *shapes: Props) -> None:
    put(ladder(program), list(shapes), "spec", "shapes")


def _without_timeout(program: Program) -> None:
    tiers(program)[0].pop("procurementTimeout", None)


def _no_room(program: Program, name: str) -> None:
    declared = pool(program, name)
    if declared.type.endswith(":NodePool") and declared.type.startswith("kubernetes:"):
        put(declared, {"nodes": "0"}, "spec", "limits")
    elif declared.type.startswith("gcp:"):
        put(declared, {"totalMaxNodeCount": 0.0}, "autoscaling")
    else:
        put(declared, 0.0, "maxCount")


def _foreign_taint(program: Program, name: str) -> None:
    declared = pool(program, name)
    if declared.type.startswith("kubernetes:"):
        put(
            declared,
            [{"key": "team", "value": "nlp", "effect": "NoSchedule"}],
            "spec",
            "template",
            "spec",
            "taints",
        )
    elif declared.type.startswith("gcp:"):
        put(declared, [{"key": "team", "value": "nlp", "effect": "NO_SCHEDULE"}], "nodeConfig", "taints")
    else:
        put(declared, ["team=nlp:NoSchedule"], "nodeTaints")


def _untaint(program: Program) -> None:
    declared = pool(program, "cpu-spot")
    if declared.type.startswith("kubernetes:"):
        put(declared, [], "spec", "template", "spec", "taints")
    else:
        put(declared, [], "nodeConfig", "taints")


def _spot_taint_on_demand(program: Program) -> None:
    rule = of(program, ":MutatingAdmissionPolicy", "main-admission-spot")
    annotations = cast("Props", cast("Props", rule.props["metadata"])["annotations"])
    # Admission adds the toleration to pods for the pool, so that only the taint is wrong.
    parsed = json.loads(cast("str", annotations["holdfast.dev/tolerates"]))
    for selection in parsed["selections"]:
        if selection["key"] == POOL:
            selection["values"].append("a100")
    annotations["holdfast.dev/tolerates"] = json.dumps(parsed)
    declared = pool(program, "a100")
    if declared.type.startswith("kubernetes:"):
        listed = cast("Props", cast("Props", cast("Props", declared.props["spec"])["template"])["spec"])[
            "taints"
        ]
        cast("list[Value]", listed).append(
            {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}
        )
    elif declared.type.startswith("gcp:"):
        put(
            declared,
            [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}],
            "nodeConfig",
            "taints",
        )
    else:
        cast("list[Value]", declared.props["nodeTaints"]).append("karpenter.sh/capacity-type=spot:NoSchedule")


def _without_default(program: Program) -> None:
    """Taint the default pool; admission adds the toleration to its own ladder's pods."""
    rule = of(program, ":MutatingAdmissionPolicy", "main-admission-gpu")
    annotations = cast("Props", cast("Props", rule.props["metadata"])["annotations"])
    mine: Props = {
        "taint": {"key": "team", "value": "nlp", "effect": "NoSchedule"},
        "selections": [{"key": POOL, "values": ["cpu"]}],
        "resources": [],
    }
    program.append(
        replace(
            rule,
            urn=f"{rule.urn}-team",
            props={"metadata": {"annotations": {**annotations, "holdfast.dev/tolerates": json.dumps(mine)}}},
        )
    )
    _foreign_taint(program, "cpu")


def _other_accelerator(program: Program) -> None:
    declared = pool(program, "a100")
    if declared.type.startswith("kubernetes:"):
        _requirement(program, "a100", "node.kubernetes.io/instance-type")["values"] = [
            {"local": "p5.48xlarge", "aws-prod": "p5.48xlarge"}.get(declared.stack, "p5.48xlarge")
        ]
    elif declared.type.startswith("gcp:"):
        put(declared, "a3-highgpu-8g", "nodeConfig", "machineType")
    else:
        put(declared, "Standard_ND96isr_H100_v5", "vmSize")


def _without_budget(program: Program) -> None:
    put(pool(program, "cpu-spot"), [{"nodes": "100%", "reasons": ["Empty"]}], "spec", "disruption", "budgets")


def _gone(ending: str, name: str = "") -> Callable[[Program], None]:
    return lambda program: without(program, of(program, ending, name))


def _all_gone(ending: str) -> Callable[[Program], None]:
    return lambda program: without(program, *every(program, ending))


def _set(ending: str, value: Value, *path: str | int, name: str = "") -> Callable[[Program], None]:
    return lambda program: put(of(program, ending, name), value, *path)


def _unprotected(ending: str, name: str) -> Callable[[Program], None]:
    def change(program: Program) -> None:
        target = of(program, ending, name)
        program[program.index(target)] = replace(target, is_protected=False)

    return change


def _pod_on_spot_that_refuses(program: Program) -> None:
    body: Props = {
        "metadata": {"name": "keeper", "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {
            "nodeSelector": {"karpenter.sh/capacity-type": "spot"},
            "containers": [{"name": "main", "image": "registry.example.com/train:1.2"}],
        },
    }
    program.append(
        replace(ladder(program), type="kubernetes:core/v1:Pod", urn=f"{ladder(program).urn}-pod", props=body)
    )


REACH, END = "training-reaches-on-demand", "training-ladder-ends-on-demand"
HUGE: Props = {"name": "huge", "pods": 1.0, "cpu": "2000", "memory": "1Gi"}
WIDE: Props = {"name": "wide", "pods": 500.0, "cpu": "3", "memory": "1Gi"}
FOREIGN: Props = {
    "name": "foreign",
    "pods": 1.0,
    "cpu": "1",
    "memory": "1Gi",
    "gpus": 1.0,
    "accelerator": "none-such",
}

CHANGES: tuple[Change, ...] = (
    Change(what="the ladder is gone", rule=END, stacks=ALL, apply=_gone(":FallbackPolicy", "main-namespace-tabular-ladder")),
    Change(what="the ladder has no tiers", rule=END, stacks=ALL, apply=lambda p: put(ladder(p), [], "spec", "tiers")),
    Change(what="the last tier is gone", rule=END, stacks=ALL, apply=lambda p: tiers(p).__delitem__(1)),
    Change(what="the last tier names no pool", rule=END, stacks=ALL, apply=lambda p: tiers(p)[1].__setitem__("pool", "")),
    Change(what="the last tier names a pool that does not exist", rule=END, stacks=ALL, apply=lambda p: tiers(p)[1].__setitem__("pool", "gone")),
    Change(what="the ladder has another name", rule=END, stacks=ALL, apply=lambda p: put(ladder(p), "way", "metadata", "name")),
    Change(what="a shape is larger than any machine", rule=REACH, stacks=ALL, apply=lambda p: _shapes(p, HUGE)),
    Change(what="a gang is larger than the on-demand pool", rule=REACH, stacks=ALL, apply=lambda p: _shapes(p, WIDE)),
    Change(what="a shape names an accelerator no tier has", rule=REACH, stacks=ALL, apply=lambda p: _shapes(p, FOREIGN)),
    Change(what="the spot tier has no time limit", rule="training-ladder-leaves-spot", stacks=ALL, apply=_without_timeout),
    Change(what="the spot pool may have no nodes, and nothing leads past it", rule=REACH, stacks=ALL,
           apply=lambda p: (_no_room(p, "cpu-spot"), _without_timeout(p))[0]),
    Change(what="the on-demand pool may have no nodes", rule=REACH, stacks=ALL, apply=lambda p: _no_room(p, "cpu")),
    Change(what="the first tier names a pool that does not exist, and nothing leads past it", rule=REACH, stacks=ALL,
           apply=lambda p: (tiers(p)[0].__setitem__("pool", "gone"), _without_timeout(p))[0]),
    Change(what="admission adds no toleration of spot, and nothing leads past it", rule=REACH, stacks=ALL,
           apply=lambda p: ([tier.pop("procurementTimeout", None) for each in every(p, ":FallbackPolicy") for tier in cast("list[Props]", cast("Props", each.props["spec"])["tiers"])], without(p, of(p, ":MutatingAdmissionPolicy", "main-admission-spot")))[1]),
    Change(what="on-demand falls back to another accelerator", rule="same-accelerator-on-demand",
           stacks=("local", "aws-prod", "azure-prod", "gcp-prod"), apply=_other_accelerator),
    Change(what="the spot pool has no taint", rule="spot-pools-tainted", stacks=(*KARPENTER, *GCP), apply=_untaint),
    Change(what="the on-demand pool has spot's taint", rule="spot-pools-tainted",
           stacks=("local", "aws-prod", "azure-prod", "gcp-prod"), apply=_spot_taint_on_demand),
    Change(what="the default pool is tainted", rule="default-pool-exists", stacks=(*KARPENTER, *AKS), apply=_without_default),
    Change(what="the pool consolidates", rule="no-voluntary-disruption", stacks=KARPENTER,
           apply=lambda p: put(pool(p, "cpu-spot"), "WhenEmptyOrUnderutilized", "spec", "disruption", "consolidationPolicy")),
    Change(what="the pool consolidates, by default", rule="no-voluntary-disruption", stacks=KARPENTER,
           apply=lambda p: put(pool(p, "cpu-spot"), None, "spec", "disruption", "consolidationPolicy")),
    Change(what="the pool's nodes expire", rule="no-voluntary-disruption", stacks=KARPENTER,
           apply=lambda p: template(p, "cpu-spot", "72h", "spec", "expireAfter")),
    Change(what="the pool's nodes expire, by default", rule="no-voluntary-disruption", stacks=KARPENTER,
           apply=lambda p: template(p, "cpu-spot", None, "spec", "expireAfter")),
    Change(what="drifted nodes are replaced", rule="no-voluntary-disruption", stacks=KARPENTER, apply=_without_budget),
    Change(what="a pod on spot refuses disruption", rule="no-voluntary-disruption", stacks=KARPENTER, apply=_pod_on_spot_that_refuses),
    Change(what="Karpenter has an empty queue", rule="interruption-queue-configured", stacks=AWS,
           apply=_set("helm.sh/v3:Release", "", "values", "settings", "interruptionQueue", name="main-karpenter-operator-controller")),
    Change(what="Karpenter has no queue", rule="interruption-queue-configured", stacks=AWS,
           apply=_set("helm.sh/v3:Release", {}, "values", "settings", name="main-karpenter-operator-controller")),
    Change(what="no event goes to the queue", rule="interruption-queue-configured", stacks=AWS, apply=_all_gone(":EventTarget")),
    Change(what="no rule is for the notice", rule="interruption-queue-configured", stacks=AWS,
           apply=_gone(":EventRule", "main-karpenter-interruption-spot")),
    Change(what="nothing creates the role of spot", rule="spot-service-linked-role-exists", stacks=AWS,
           apply=lambda p: without(p, *every(p, "ServiceLinkedRole"))),
    Change(what="the bucket may be made public", rule="checkpoint-storage-protected", stacks=AWS, apply=_gone(":BucketPublicAccessBlock")),
    Change(what="the bucket takes public policies", rule="checkpoint-storage-protected", stacks=AWS,
           apply=_set(":BucketPublicAccessBlock", False, "blockPublicPolicy")),
    Change(what="the bucket keeps no versions", rule="checkpoint-storage-protected", stacks=AWS, apply=_gone(":BucketVersioning")),
    Change(what="the bucket's versions are suspended", rule="checkpoint-storage-protected", stacks=AWS,
           apply=_set(":BucketVersioning", "Suspended", "versioningConfiguration", "status")),
    Change(what="current objects expire", rule="checkpoint-storage-protected", stacks=AWS,
           apply=_set(":BucketLifecycleConfiguration", {"days": 30.0}, "rules", 0, "expiration")),
    Change(what="the bucket is not protected", rule="checkpoint-storage-protected", stacks=("aws-prod",),
           apply=_unprotected("s3/bucket:Bucket", "main-checkpoints-vision-bucket")),
    Change(what="the bucket may be made public", rule="checkpoint-storage-protected", stacks=GCP,
           apply=_set("storage/bucket:Bucket", "inherited", "publicAccessPrevention")),
    Change(what="the bucket takes access lists", rule="checkpoint-storage-protected", stacks=GCP,
           apply=_set("storage/bucket:Bucket", False, "uniformBucketLevelAccess")),
    Change(what="the bucket keeps nothing", rule="checkpoint-storage-protected", stacks=GCP,
           apply=lambda p: (put(of(p, "storage/bucket:Bucket"), {"enabled": False}, "versioning"), put(of(p, "storage/bucket:Bucket"), {"retentionDurationSeconds": 0.0}, "softDeletePolicy"))[0]),
    Change(what="current objects are deleted by age", rule="checkpoint-storage-protected", stacks=GCP,
           apply=_set("storage/bucket:Bucket", [{"action": {"type": "Delete"}, "condition": {"age": 30.0}}], "lifecycleRules")),
    Change(what="the bucket is not protected", rule="checkpoint-storage-protected", stacks=("gcp-prod",),
           apply=_unprotected("storage/bucket:Bucket", "main-checkpoints-bucket")),
    Change(what="blobs may be public", rule="checkpoint-storage-protected", stacks=AZURE, apply=_set(":StorageAccount", True, "allowBlobPublicAccess")),
    Change(what="the account takes shared keys", rule="checkpoint-storage-protected", stacks=AZURE, apply=_set(":StorageAccount", None, "allowSharedKeyAccess")),
    Change(what="the account takes old TLS", rule="checkpoint-storage-protected", stacks=AZURE, apply=_set(":StorageAccount", "TLS1_0", "minimumTlsVersion")),
    Change(what="the account keeps no versions", rule="checkpoint-storage-protected", stacks=AZURE, apply=_set(":BlobServiceProperties", False, "isVersioningEnabled")),
    Change(what="current blobs are deleted by age", rule="checkpoint-storage-protected", stacks=AZURE,
           apply=_set(":ManagementPolicy", {"delete": {"daysAfterModificationGreaterThan": 30.0}}, "policy", "rules", 0, "definition", "actions", "baseBlob")),
    Change(what="the account is not protected", rule="checkpoint-storage-protected", stacks=("azure-prod",), apply=_unprotected(":StorageAccount", "maincheckpoints")),
    Change(what="a namespace's quota is gone", rule="training-namespaces-have-quotas", stacks=ALL, apply=_gone(":ResourceQuota", "main-namespace-tabular-quota")),
    Change(what="a quota is smaller than a gang", rule="training-namespaces-have-quotas", stacks=ALL,
           apply=_set(":ResourceQuota", "1", "spec", "hard", "pods", name="main-namespace-tabular-quota")),
    Change(what="the cluster makes NodePools of its own", rule="aks-single-autoscaling-mode", stacks=("azure-dev",),
           apply=_set(":ManagedCluster", "Auto", "nodeProvisioningProfile", "defaultNodePools")),
)  # fmt: skip
