"""Mistakes that are the same in the documents of every cloud."""

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders.configurations import Document
from tests.support.invalid_configs.mistakes import Mistake, missing, wrong

FINETUNE: Document = {"name": "finetune", "pods": 4, "cpu": 48, "memory": "512Gi", "gpus": 8}


def shape(field: str, value: JsonValue, fix: str, **others: JsonValue) -> Mistake:
    """A mistake in the only shape of the namespace of the GPU ladder."""
    at = ".namespaces[0].shapes"
    return wrong(f"{at}[0].{field}", [{**FINETUNE, field: value, **others}], fix, at=at)


#: A ladder with a tier in another cluster, and the cluster.
AWAY: JsonValue = [
    {"pool": "a100-spot", "procurementTimeout": "15m"},
    {"cluster": "us-east-2", "pool": "a100-spot", "procurementTimeout": "15m"},
    {"pool": "a100"},
]
STACK: Document = {"name": "us-east-2", "stack": "acme/holdfast/aws-us-east-2"}


INVALID_EVERYWHERE: dict[str, Mistake] = {
    "charts over http": wrong(".mirror.charts", "http://mirror.example.com", 'Write "https://mirror.example.com"'),
    "no default pool": missing(".pools[0].default", "Add default: true to cpu.", field=".pools"),
    "a version without quotes": wrong(".cluster.version", float(versions.KUBERNETES), f'Put it in quotes: "{versions.KUBERNETES}".'),
    "a ladder naming a pool that does not exist": wrong(".namespaces[0].ladder[0].pool", "a100-sopt", 'Write "a100-spot".'),
    "a spot pool last in a ladder": wrong(".namespaces[0].ladder[0].maxFailures", [{"pool": "a100-spot", "maxFailures": 5}], "write maxFailures: -1", at=".namespaces[0].ladder"),
    "a price of nothing": wrong(".namespaces[0].ladder[0].price", 0, "for example, `price: 9.83`"),
    "a cap below the price": wrong(".namespaces[0].ladder[0].maxPrice", 2.5, "Raise maxPrice, or correct price.", price=3),
    "a cap on the last tier": wrong(".namespaces[0].ladder[0].maxPrice", [{"pool": "a100", "maxPrice": 40}], "Remove it, or add the tier that should follow.", at=".namespaces[0].ladder"),
    "a pool twice in a ladder": wrong(".namespaces[0].ladder[1].pool", "a100-spot", "Remove this tier", maxFailures=-1),
    "a duration without a unit": wrong(".namespaces[0].ladder[0].procurementTimeout", "15", "Write 15m, 15s or 15h."),
    "a duration as a number": wrong(".namespaces[0].ladder[0].procurementTimeout", 15, "Write 15m, 15s or 15h."),
    "a negative number of failures": wrong(".namespaces[0].ladder[0].maxFailures", -2, "for example, `maxFailures: 5`"),
    "an empty ladder": wrong(".namespaces[0].ladder", [], "such as `- {pool: "),
    "returnAfter with a single tier": wrong(".namespaces[0].fallback.returnAfter", {"returnAfter": "4h"}, "Remove it, or add the tier", at=".namespaces[0].fallback", ladder=[{"pool": "a100"}]),
    "holdTimeout beside returnAfter: never": wrong(".namespaces[0].fallback.holdTimeout", {"returnAfter": "never", "holdTimeout": "10m"}, "Set returnAfter to a time", at=".namespaces[0].fallback"),
    "giving up before a node can start": wrong(".namespaces[0].fallback.giveUpAfter", {"giveUpAfter": "30s"}, "Set giveUpAfter to 15m or more", at=".namespaces[0].fallback"),
    "failures with a typo": wrong(".namespaces[0].fallback.failures", "eviction", 'Write "evictions".'),
    "a tier's field outside the ladder": wrong(".namespaces[0].fallback.maxFailures", 5, "on each tier of the ladder"),
    "memory without a unit": shape("memory", 512, "Write 512Gi or 512Mi"),
    "memory in an unknown unit": shape("memory", "512GB", "a number and Mi, Gi or Ti"),
    "CPUs in a unit of memory": shape("cpu", "48Gi", "a number of CPUs"),
    "a boolean for CPUs": shape("cpu", True, "a number of CPUs"),
    "zero CPUs": shape("cpu", 0, "Write at least 1m."),
    "zero pods": shape("pods", 0, "for example, `pods: 4`"),
    "GPUs in quotes": shape("gpus", "8", "for example, `gpus: 8`"),
    "a shape without a name": wrong(".namespaces[0].shapes[0].name", [{"gpus": 8}], "Add `name: finetune`.", at=".namespaces[0].shapes"),
    "an invalid shape name": shape("name", "Fine_Tune", 'Write "fine-tune".'),
    "a duplicate shape name": wrong(".namespaces[0].shapes[2].name", [FINETUNE, {"name": "fit"}, FINETUNE], "Rename one of the two", at=".namespaces[0].shapes"),
    "an accelerator without GPUs": shape("accelerator", "a100", "Add gpus", gpus=0),
    "a device with a field of its own": shape("devices", {"nvidia.com/gpu": 8}, "Write gpus of the shape instead."),
    "pieces of a device in a unit of bytes": shape("devices", {"rdma/ib": "1Gi"}, "Write how many rdma/ib each pod requests"),
    "local disk without a unit": shape("devices", {"ephemeral-storage": 200}, "Write 200Gi or 200Mi"),
    "devices as a list": shape("devices", ["rdma/ib"], "Write, for example, `devices: {ephemeral-storage: 200Gi}`."),
    "a selector for the pool": shape("selector", {"holdfast.dev/pool": "a100"}, "Remove holdfast.dev/pool."),
    "a selector for a capacity type": shape("selector", {"karpenter.sh/capacity-type": "spot"}, "Remove karpenter.sh/capacity-type."),
    "a pod's nodeSelector in a shape": shape("nodeSelector", {"team": "vision"}, 'Write "selector".'),
    "a toleration without a key": wrong(".namespaces[0].shapes[0].tolerations[0]", [{**FINETUNE, "tolerations": [{"value": "vision"}]}], "Add key, or write operator: Exists.", at=".namespaces[0].shapes"),
    "a toleration of any value with a value": wrong(".namespaces[0].shapes[0].tolerations[0].value", [{**FINETUNE, "tolerations": [{"key": "team", "operator": "Exists", "value": "x"}]}], "Remove it, or write operator: Equal.", at=".namespaces[0].shapes"),
    "an architecture that no cloud sells": wrong(".namespaces[0].shapes[0].architectures[0]", [{**FINETUNE, "architectures": ["arm"]}], "architectures: [amd64]", at=".namespaces[0].shapes"),
    "an architecture twice": shape("architectures", ["arm64", "arm64"], "Remove one of the two."),
    "a placement that is none": shape("samePlacement", "zones", 'Write "zone".'),
    "a job's field in a shape": shape("parallelism", 4, "Write pods."),
    "a shape that is not in a list": wrong(".namespaces[0].shapes", FINETUNE, "for example, `shapes: [{name: finetune"),
    "too many shapes": wrong(".namespaces[0].shapes", [{"name": f"s{i}"} for i in range(17)], "for example, `shapes: [{name: finetune"),
    "jobs instead of shapes": wrong(".namespaces[0].jobs", [FINETUNE], "Write shapes"),
    "a GPU quota smaller than a gang": wrong(".namespaces[0].quota.gpus", {"gpus": 31}, "Write 32 or more", at=".namespaces[0].quota", shapes=[FINETUNE]),
    "a pod quota smaller than a gang": wrong(".namespaces[0].quota.pods", {"pods": 3}, "Write 4 or more", at=".namespaces[0].quota", shapes=[FINETUNE]),
    "a GPU quota of zero on a GPU ladder": wrong(".namespaces[0].quota.gpus", 0, "Remove it, to derive the number"),
    "a quota with enforced: false": wrong(".namespaces[0].quota.gpus", 64, "Remove one of them.", enforced=False),
    "a CPU quota smaller than a gang": wrong(".namespaces[0].quota.cpu", {"cpu": "100m"}, "or declare a smaller shape", at=".namespaces[0].quota", shapes=[FINETUNE]),
    "a quota that is not a mapping": wrong(".namespaces[0].quota", "none", "for example, `quota: {gpus: 64}`"),
    "a namespace that cannot be one": wrong(".namespaces[0].network.allowFrom[0]", ["Monitoring"], 'Write "monitoring".', at=".namespaces[0].network.allowFrom"),
    "a block of addresses with host bits": wrong(".namespaces[0].network.allowTo[0]", ["10.20.0.1/16"], 'Write "10.20.0.0/16".', at=".namespaces[0].network.allowTo"),
    "another name for what pods reach": wrong(".namespaces[0].network.egress", ["mlflow"], "Write allowTo."),
    "a quota of zero pods": wrong(".namespaces[0].quota.pods", 0, "for example, `pods: 500`"),
    "too many failures": wrong(".namespaces[0].ladder[0].maxFailures", 99999, "for example, `maxFailures: 5`"),
    "a controller's image without a tag": wrong(".fallback.image", "registry.example.com/fallback-controller", "Write the registry's host, the path and a tag"),
    "a namespace of the fallback controller": wrong(".namespaces[0].name", "holdfast-system", 'such as "training-holdfast-system"'),
    "a namespace of reservations": wrong(".namespaces[0].name", "holdfast-reservations", 'such as "training-holdfast-reservations"'),
    "a namespace of Kubernetes": wrong(".namespaces[0].name", "kube-system", 'such as "training-kube-system"'),
    "a namespace of an operator": wrong(".namespaces[0].name", "jobset-system", 'such as "training-jobset-system"'),
    "a duplicate namespace name": wrong(".namespaces[1].name", "vision", "Rename one of the two"),
    "a tier in no listed cluster": wrong(".namespaces[0].ladder[1].cluster", AWAY, "Add `{name: us-east-2, stack:", at=".namespaces[0].ladder"),
    "a cluster without an address": wrong(".clusters[0]", [{"name": "us-east-2"}], "Write stack for a stack of Holdfast"),
    "a cluster with two addresses": wrong(".clusters[0].server", [{**STACK, "server": "https://203.0.113.10"}], "Leave it out.", at=".clusters"),
    "a cluster whose server has an empty part": wrong(".clusters[0].server", [{"name": "x", "server": "https://api..example.com"}], "Write the server of the cluster's kubeconfig.", at=".clusters"),
    "a stack as a second cluster": wrong(".clusters[1].stack", [STACK, {**STACK, "name": "ohio"}], "remove this cluster", at=".clusters"),
    "a key for a certificate": wrong(".clusters[0].certificateAuthority", [{"name": "x", "server": "https://203.0.113.10", "certificateAuthority": "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo="}], "Write certificate-authority-data", at=".clusters"),
    "a token for a cluster": wrong(".clusters[0].token", [{**STACK, "token": "x"}], "no credential is stored", at=".clusters"),
}  # fmt: skip
