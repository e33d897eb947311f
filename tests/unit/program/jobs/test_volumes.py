"""The zones of a program's volumes bind the pods that mount them, and what the program does not show is not judged."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import VOLUME_CLAIMS, ZONE
from pulumi_holdfast.program.jobs.volumes import VolumeZones, volume_zones
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.reachability import find_unreachable
from rules.verdicts import Word, verdicts
from tests.support.builders.program_jobs import JOB_SET, declared, declared_jobset, job_program, requesting
from tests.support.builders.stack_resources import aks_pool, resource

MOUNTED: Json = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
SHARED: list[Value] = ["ReadWriteMany"]


def in_zones(*zones: str, key: str = ZONE, operator: str = "In") -> dict[str, Value]:
    """A term of a volume's node affinity."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*zones]}]}


def volume(*terms: Value, **spec: Value) -> StackResource:
    affinity: Value = {"required": {"nodeSelectorTerms": [*terms]}}
    return made("core/v1:PersistentVolume", {**({"nodeAffinity": affinity} if terms else {}), **spec}, "disk")


def claim(**spec: Value) -> StackResource:
    """A claim that many nodes may mount."""
    return made("core/v1:PersistentVolumeClaim", {"accessModes": SHARED, **spec}, "data", "vision")


def made(kind: str, spec: Value, name: str, namespace: str | None = None) -> StackResource:
    there: dict[str, Value] = {} if namespace is None else {"namespace": namespace}
    return resource(f"kubernetes:{kind}", name, {"metadata": {"name": name, **there}, "spec": spec})


def storage_class(*zones: str, waits: bool = True, **fields: Value) -> StackResource:
    expressions: Value = [{"key": "topology.ebs.csi.aws.com/zone", "values": [*zones]}]
    props: dict[str, Value] = {
        "metadata": {"name": "fast"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **({"allowedTopologies": [{"matchLabelExpressions": expressions}]} if zones else {}),
        **fields,
    }
    return resource("kubernetes:storage.k8s.io/v1:StorageClass", "fast", props)


def zones_of(resources: Sequence[StackResource], pod: Json = MOUNTED, *, is_gang: bool = True) -> VolumeZones:
    job = declared_jobset({})
    return volume_zones(cast("Value", pod), job, "vision", [*job_program(job), *resources], is_gang=is_gang)


NO_VOLUMES: Json = {}
ON_NODE: Json = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
NOTHING: list[StackResource] = []
BOUND, FAST = claim(volumeName="disk"), claim(storageClassName="fast")
OWN: Json = {
    "volumes": [
        {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}
    ]
}


@pytest.mark.parametrize(
    ("resources", "pod", "zones", "reason"),
    [
        (NOTHING, NO_VOLUMES, None, "pods without volumes run anywhere"),
        (NOTHING, ON_NODE, None, "so do pods with what is on each node"),
        ([BOUND, volume(in_zones("a"))], MOUNTED, {"a"}, "the volume's node affinity"),
        ([BOUND, volume(in_zones("a"), in_zones("b"))], MOUNTED, {"a", "b"}, "one term is enough"),
        ([BOUND, volume(in_zones("a", key="topology.gke.io/zone"))], MOUNTED, {"a"}, "a driver's own label is the zone"),
        ([BOUND, volume(nfs={"server": "files", "path": "/"})], MOUNTED, None, "a file server is bound to no zone"),
        ([FAST, storage_class("a")], MOUNTED, {"a"}, "the only zone that the class allows"),
        ([FAST, storage_class("a", waits=False)], MOUNTED, {"a"}, "whenever it is created"),
        ([FAST, storage_class(provisioner="efs.csi.aws.com")], MOUNTED, None, "EFS is in every zone"),
        ([storage_class("a", "b")], OWN, {"a", "b"}, "each pod gets a volume where it runs"),
        ([storage_class()], OWN, None, "in any zone"),
    ],
)  # fmt: skip
def test_pods_are_bound_to_the_zones_of_their_volumes(
    resources: list[StackResource], pod: Json, zones: set[str] | None, reason: str
) -> None:
    found = zones_of(resources, pod)
    assert found == VolumeZones(zones=None if zones is None else frozenset(zones)), reason


@pytest.mark.parametrize(
    ("resources", "pod", "part"),
    [
        ([], MOUNTED, "this program does not make it"),
        ([claim(volumeName=UNKNOWN)], MOUNTED, "is not known yet"),
        ([BOUND], MOUNTED, "PersistentVolume 'disk' is, is not known"),
        ([BOUND, volume(UNKNOWN)], MOUNTED, "is not known yet"),
        ([BOUND, volume(in_zones("a", operator="NotIn"))], MOUNTED, "is not judged"),
        ([BOUND, volume(in_zones("n", key="kubernetes.io/hostname"))], MOUNTED, "requires of kubernetes.io/hostname"),
        ([BOUND, volume(csi={"driver": "ebs.csi.aws.com"})], MOUNTED, "is not declared"),
        ([claim(accessModes=["ReadWriteOnce"], volumeName="disk"), volume(in_zones("a"))], MOUNTED, "one node at a time"),
        ([FAST], MOUNTED, "does not make its StorageClass"),
        ([claim()], MOUNTED, "does not make its StorageClass"),
        ([FAST, storage_class("a", "b")], MOUNTED, "is created in one zone"),
        ([FAST, storage_class()], MOUNTED, "is created in one zone"),
        ([FAST, storage_class("a", provisioner="rancher.io/local-path")], MOUNTED, "rancher.io/local-path, and some keep volumes on one node"),
        ([FAST, storage_class("a", provisioner=UNKNOWN)], MOUNTED, "whether other nodes mount"),
        ([FAST, storage_class(allowedTopologies=UNKNOWN)], MOUNTED, "not known yet"),
        ([storage_class("a", "b", waits=False)], OWN, "is created in one zone"),
        ([], {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]}, "the disk of its volume 'd'"),
        ([], {"volumes": UNKNOWN}, "which volumes"),
    ],
)  # fmt: skip
def test_volume_of_which_the_zone_is_not_known_is_not_judged(
    resources: list[StackResource], pod: Json, part: str
) -> None:
    (reason,) = zones_of(resources, pod).open
    assert part in reason, "the reason says what is missing"


def test_one_pod_may_mount_a_volume_that_one_node_mounts_at_a_time() -> None:
    disk = [claim(accessModes=["ReadWriteOnce"], volumeName="disk"), volume(in_zones("a"))]
    assert zones_of(disk, is_gang=False).zones == {"a"}, "no other pod needs it"


def test_claim_that_the_namespace_lists_binds_to_no_zone() -> None:
    job = declared_jobset({})
    namespace = resource(
        "kubernetes:core/v1:Namespace",
        "vision",
        {"metadata": {"name": "vision", "annotations": {VOLUME_CLAIMS: "logs, data"}}},
    )
    program = [*(each for each in job_program(job) if not each.type.endswith(":Namespace")), namespace]
    found = volume_zones(cast("Value", MOUNTED), job, "vision", program, is_gang=True)
    assert found == VolumeZones(), "its owner says that every zone can mount it"


def test_claims_that_a_jobset_makes_bind_the_containers_that_mount_them() -> None:
    template: Value = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    job = declared(JOB_SET, {"spec": {"volumeClaimPolicies": [{"templates": [template]}]}})
    container = requesting(cpu="1")
    mounting: Json = {"containers": [{**container, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
    program = [job, storage_class("a")]
    zones = [
        volume_zones(cast("Value", pod), job, "vision", program, is_gang=True).zones
        for pod in (mounting, {"containers": [container]})
    ]
    assert zones == [{"a"}, None], "the claim lives as long as the JobSet, and is mounted by name"


@pytest.mark.parametrize(
    ("terms", "word"),
    [
        ([in_zones("local-a")], Word.PROVED),
        ([in_zones("mars")], Word.BROKEN),
        ([in_zones("local-a", operator="NotIn")], Word.NOT_JUDGED),
    ],
)
def test_job_is_judged_by_the_zone_of_its_volume(terms: list[Value], word: Word) -> None:
    program = [*job_program(job := declared_jobset(MOUNTED)), BOUND, volume(*terms)]
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert {part.word for part in found.parts if part.about == "JobSet 'train'"} == {word}, (
        "its pools have machines in the simulated zones"
    )
    stopped = [each.message for each in find_unreachable(program, PACK_DEFAULTS) if each.proven]
    assert bool(stopped) is (word is Word.BROKEN), f"only what is certain stops {job.type}"


def test_volumes_in_different_zones_run_nowhere() -> None:
    both: Json = {
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "more")]
    }
    more = made(
        "core/v1:PersistentVolumeClaim", {"accessModes": SHARED, "storageClassName": "fast"}, "more", "vision"
    )
    program = [
        *job_program(declared_jobset(both)),
        BOUND,
        volume(in_zones("local-a")),
        more,
        storage_class("local-b"),
    ]
    assert any("in different zones" in each.message for each in find_unreachable(program, PACK_DEFAULTS)), (
        "no node is in both"
    )


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize(
    ("subnets", "zones"),
    [(["a"], {"a"}), (["a", "b"], {"a", "b"}), (["a", UNKNOWN], None), ([], None)],
    ids=["one zone", "two zones", "an unknown zone", "targets of another program"],
)
def test_file_system_is_mounted_in_the_zones_of_its_mount_targets(
    subnets: list[Value], zones: set[str] | None, by_class: bool
) -> None:
    made_by = (
        [FAST, storage_class(provisioner="efs.csi.aws.com", parameters={"fileSystemId": "fs-1"})]
        if by_class
        else [BOUND, volume(csi={"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-2"})]
    )
    network: list[StackResource] = []
    for number, zone in enumerate(subnets):
        subnet = resource("aws:ec2/subnet:Subnet", f"subnet-{number}", {"availabilityZone": zone})
        target = resource("aws:efs/mountTarget:MountTarget", f"target-{number}", {"fileSystemId": "fs-1"})
        network += [subnet, replace(target, refers_to={"subnetId": (subnet.urn,)})]
    found = zones_of([*made_by, *network])
    assert found == VolumeZones(zones=None if zones is None else frozenset(zones)), (
        "pods elsewhere do not mount it"
    )


@pytest.mark.parametrize(
    ("sku", "pool", "named"),
    [
        ("UltraSSD_LRS", {}, True),
        ("UltraSSD_LRS", {"enableUltraSSD": True}, False),
        ("Premium_LRS", {}, False),
    ],
)
def test_ultra_disk_is_not_attached_to_machines_of_a_pool_without_them(
    sku: str, pool: dict[str, Value], named: bool
) -> None:
    fast = storage_class(provisioner="disk.csi.azure.com", parameters={"skuName": sku})
    found = zones_of([fast, aks_pool("on-demand", **pool)], OWN)
    assert any("attach no Ultra Disks" in each for each in found.open) is named, str(found)
