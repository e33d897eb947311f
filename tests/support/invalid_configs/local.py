"""Invalid documents of local stacks, each with one mistake and the problem that it causes."""

from pulumi_holdfast.config import versions
from tests.support.builders.configurations import entry, kubernetes_minor, list_of
from tests.support.invalid_configs.everywhere import INVALID_EVERYWHERE
from tests.support.invalid_configs.mistakes import ENDED, Mistake, missing, reserved, wrong

INVALID_CONFIGS: dict[str, Mistake] = {
    **INVALID_EVERYWHERE,
    "a reserved pool without a reservation": reserved(".pools[2]", "", "Add `reservation: {}`.", {}),
    "a reservation that has ended": reserved(".pools[2]", "reservation.ends", "the reservation that follows it", {"reservation": ENDED}),
    "a field with a typo": wrong(".pools[2].instanceTypse", ["p4d.24xlarge"], 'Write "instanceTypes".'),
    "a field of another tool": wrong(".pools[2].spotMaxPrice", 3.5, "Karpenter has no field that holds a price cap"),
    "a managed Prometheus on this machine": wrong(".fallback.monitoring.jobs", "cloud", "Write operator", at=".fallback.monitoring.jobs"),
    "an unknown field": wrong(".dashboard", True, "Remove it."),
    "a missing field": missing(".pools[1].maxNodes", "Add `maxNodes: 8`."),
    "no pools": (lambda d: (d.pop("pools"), d.pop("namespaces")), ".pools", "Add `pools: "),
    "pools that are not a list": wrong(".pools", "cpu", "for example, `pools: [{"),
    "a pool that is not a mapping": wrong(".pools[0]", ["cpu"], "for example, `pools: [{"),
    "an empty section": wrong(".checkpoints", None, "`checkpoints: {directory: "),
    "a mistyped capacity": wrong(".pools[1].capacity", "on_demand", 'Write "on-demand".'),
    "a capacity that is a number": wrong(".pools[1].capacity", 1, "for example, `capacity: spot`."),
    "a number in quotes": wrong(".pools[1].maxNodes", "8", "for example, `maxNodes: 8`."),
    "a boolean for a number": wrong(".pools[1].maxNodes", True, "for example, `maxNodes: 8`."),
    "a pool without nodes": wrong(".pools[1].maxNodes", 0, "for example, `maxNodes: 8`."),
    "no instance type": wrong(".pools[1].instanceTypes", [], "for example, `instanceTypes: ["),
    "an instance type with a typo": wrong(".pools[1].instanceTypes[0]", ["c7i.4xlrage"], 'Write "c7i.4xlarge".'),
    "an instance type of another cloud": wrong(".pools[1].instanceTypes[0]", ["Standard_ND96asr_v4"], "describe it in components/pulumi_holdfast/ladder/machines/local.json"),
    "an instance type twice": wrong(".pools[1].instanceTypes[1]", ["c7i.4xlarge", "c7i.4xlarge"], "Remove one"),
    "machines with and without GPUs": wrong(".pools[1].instanceTypes", ["c7i.4xlarge", "g6.12xlarge"], "two pools"),
    "an invalid name": wrong(".pools[2].name", "A100_Spot", 'Write "a100-spot".'),
    "a name without a valid character": wrong(".pools[2].name", "__", "such as a100-spot"),
    "a duplicate pool name": wrong(".pools[3].name", "cpu-spot", "Rename one of the two", without=[".namespaces"]),
    "no pool that could be the default": (lambda d: d.update(pools=[entry(d, "pools", 3)], namespaces=[]), ".pools", "Add `{name: cpu, capacity: on-demand"),
    "two default pools": (lambda d: d.update(pools=[*list_of(d, "pools"), {**entry(d, "pools", 0), "name": "cpu-two"}]), ".pools[4].default", "from one of the two"),
    "a default pool on spot": wrong(".pools[1].default", True, "Write it on cpu instead."),
    "a default pool of GPU machines": wrong(".pools[3].default", True, "Write it on cpu instead."),
    "a version without MutatingAdmissionPolicy": wrong(".cluster.version", "1.35", "{key: karpenter.sh/capacity-type, operator: Equal,"),
    "a version without tools": wrong(".cluster.version", kubernetes_minor(1), f'Write "{versions.KUBERNETES}".'),
    "retainDays for a directory": wrong(".checkpoints.retainDays", 30, "Leave it out"),
    "an unknown cloud": wrong(".cloud", "openstack", "Write `cloud: local`."),
    "another cloud with a typo": wrong(".cloud", "awss", "Write `cloud: aws`."),
    "a cloud with a typo": wrong(".cloud", "locla", "Write `cloud: local`."),
    "no cloud": missing(".cloud", "Write `cloud: local`."),
}  # fmt: skip
