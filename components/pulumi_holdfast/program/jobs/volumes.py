"""Reads the zones that the volumes of a program's pods bind them to: by PersistentVolumes, claims and StorageClasses.

What the program does not show is a reason not to judge the pods. So is a volume that is created in the zone of the first
pod and outlives it: a lower tier may have no nodes there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import POOL, VOLUME_CLAIMS, ZONE
from pulumi_holdfast.ladder.machines import attaches_only_hyperdisk, machine_catalogue
from pulumi_holdfast.ladder.reachability.node_labels import ALIASES
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.pod_templates import terms_of
from pulumi_holdfast.program.namespaces.ladders import NAMESPACE_TYPE
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    by_urn,
    items_at,
    known_items,
    named,
    of_type,
    of_types,
    text_at,
    texts_at,
)

_CLAIM: Final = "kubernetes:core/v1:PersistentVolumeClaim"
_VOLUME: Final = "kubernetes:core/v1:PersistentVolume"
_CLASS: Final = "kubernetes:storage.k8s.io/v1:StorageClass"
_NODE_POOL: Final = "gcp:container/nodePool:NodePool"
_AGENT_POOL: Final = re.compile(r"azure-native:containerservice(/v\w+)?:AgentPool")
_ULTRA: Final = "UltraSSD"
_MOUNT_TARGET: Final = "aws:efs/mountTarget:MountTarget"

#: The labels by which drivers say in which zone a volume is. Karpenter's providers treat them as the zone of a node.
_ZONE_KEYS: Final = (
    ZONE,
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
    "topology.disk.csi.azure.com/zone",
)
#: Volumes of a pod, and of a PersistentVolume, that are disks in one zone.
_DISKS: Final = ("awsElasticBlockStore", "gcePersistentDisk", "azureDisk")
_DISK_DRIVERS: Final = (
    "ebs.csi.aws.com",
    "ebs.csi.eks.amazonaws.com",
    "pd.csi.storage.gke.io",
    "disk.csi.azure.com",
)
#: Drivers whose volumes every zone can mount.
_ZONELESS: Final = (
    "efs.csi.aws.com",
    "s3.csi.aws.com",
    "file.csi.azure.com",
    "blob.csi.azure.com",
    "gcsfuse.csi.storage.gke.io",
    "nfs.csi.k8s.io",
)
#: Provisioners of volumes that every node of their zone can mount: those above, file systems of one zone, and Kubernetes' own.
_OF_ZONE: Final = frozenset(
    {
        *_DISK_DRIVERS,
        *_ZONELESS,
        "fsx.csi.aws.com",
        "fsx.openzfs.csi.aws.com",
        "filestore.csi.storage.gke.io",
        "lustre.csi.storage.gke.io",
        "azurelustre.csi.azure.com",
        "kubernetes.io/aws-ebs",
        "kubernetes.io/gce-pd",
        "kubernetes.io/azure-disk",
        "kubernetes.io/azure-file",
    }
)
_ONE_NODE: Final = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})

#: The zones that one volume can be mounted in, None for any; or the reason why that is not judged.
_Found: TypeAlias = frozenset[str] | str | None


@dataclass(frozen=True, kw_only=True)
class VolumeZones:
    """The zones in which all volumes of a pod can be mounted, None for any; `open` is why some are not judged."""

    zones: frozenset[str] | None = None
    open: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Iterable[_Found]) -> VolumeZones:
        """The zones that all of these volumes share."""
        zones: frozenset[str] | None = None
        reasons: list[str] = []
        for each in found:
            if isinstance(each, str):
                reasons.append(each)
            elif each is not None:
                zones = each if zones is None else zones & each
        return cls(zones=zones, open=tuple(dict.fromkeys(reasons)))


def volume_zones(
    spec: Value, job: StackResource, namespace: str, resources: Sequence[StackResource], *, is_gang: bool
) -> VolumeZones:
    """Return the zones of the volumes of a job's pods. `is_gang`: several of these pods run at once."""
    volumes = items_at(spec, "volumes")
    if volumes is UNKNOWN:
        return VolumeZones(open=("which volumes its pods mount is not known yet",))
    program = _Program(job=job, namespace=namespace, resources=resources, is_gang=is_gang)
    return VolumeZones.of(
        (
            *(program.of_pod_volume(each) for each in volumes),
            *(program.of_class(each, at(each, "spec")) for each in _claims_of_job_set(job, spec)),
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Program:
    """The volumes, claims and classes in the cluster of a job."""

    job: StackResource
    namespace: str
    resources: Sequence[StackResource]
    is_gang: bool

    def of_pod_volume(self, volume: Value) -> _Found:
        """Return what one volume of a pod binds it to."""
        claim = text_at(volume, "persistentVolumeClaim", "claimName")
        if volume is UNKNOWN or claim is UNKNOWN:
            return "which volume claim its pods mount is not known yet"
        if claim is not None:
            return None if claim in self._mountable_anywhere() else self._of_claim(claim)
        made = at(volume, "ephemeral", "volumeClaimTemplate")
        if made is not None:
            return self.of_class(volume, at(made, "spec"), is_of_pod=True)
        if any(at(volume, kind) is not None for kind in _DISKS):
            return f"in which zone the disk of its volume {_name(volume)} is, is not known"
        return None

    def _of_claim(self, name: str) -> _Found:
        claim = self._find(_CLAIM, name, self.namespace)
        if claim is None:
            return (
                f"whether the volume claim {name!r} is bound to a zone is not known: this program does not make it. If every zone "
                f"can mount it, list it in the namespace's annotation {VOLUME_CLAIMS}"
            )
        spec = at(claim.props, "spec")
        modes = texts_at(spec, "accessModes")
        if modes is UNKNOWN or (self.is_gang and modes and modes <= _ONE_NODE):
            return f"one node at a time mounts the volume claim {name!r}, and whether its pods share a node is not judged"
        volume = text_at(spec, "volumeName")
        if volume is UNKNOWN:
            return f"which volume its claim {name!r} is bound to is not known yet"
        return self._of_volume(volume) if volume else self.of_class(claim.props, spec)

    def _of_volume(self, name: str) -> _Found:
        volume = self._find(_VOLUME, name)
        if volume is None:
            return (
                f"in which zone its PersistentVolume {name!r} is, is not known: this program does not make it"
            )
        spec = at(volume.props, "spec")
        terms = terms_of(at(spec, "nodeAffinity", "required"))
        if terms is UNKNOWN:
            return f"in which zone its PersistentVolume {name!r} is, is not known yet"
        if at(spec, "nodeAffinity", "required") is None:
            is_disk = any(at(spec, kind) is not None for kind in _DISKS)
            if is_disk or text_at(spec, "csi", "driver") in {*_DISK_DRIVERS, UNKNOWN}:
                return f"in which zone the disk of its PersistentVolume {name!r} is, is not declared"
            return self._zones_of_file_system(volume, "spec", text_at(spec, "csi", "volumeHandle"))
        found: set[str] = set()
        for term in (each for each in terms if each):
            if any(each.operator != "In" or not _is_zone(each.key) for each in term):
                keys = ", ".join(sorted({each.key for each in term}))
                return (
                    f"whether nodes match what its PersistentVolume {name!r} requires of {keys} is not judged"
                )
            found |= _in_all(frozenset(each.values) for each in term)
        return frozenset(found)

    def of_class(self, claim: Value, spec: Value, *, is_of_pod: bool = False) -> _Found:
        """Return what a claim without a volume binds its pods to, by its StorageClass.

        `is_of_pod`: each pod has a claim of its own, which is deleted with it.
        """
        title, name = _name(claim), text_at(spec, "storageClassName")
        found = self._find(_CLASS, name) if isinstance(name, str) and name else None
        if found is None:
            return f"in which zone the volume of its claim {title} is created is not known: this program does not make its StorageClass"
        allowed = next(self._not_attached(found), _allowed_zones(found))
        if isinstance(allowed, str):
            return allowed
        provisioner = text_at(found.props, "provisioner")
        if allowed is None and provisioner in _ZONELESS:
            return self._zones_of_file_system(
                found, "parameters", text_at(found.props, "parameters", "fileSystemId")
            )
        waits = text_at(found.props, "volumeBindingMode") == "WaitForFirstConsumer"
        if waits and is_of_pod:
            return allowed
        if provisioner not in _OF_ZONE:
            return (
                f"whether other nodes mount the volume of its claim {title} is not judged: StorageClass {name!r} has the provisioner "
                f"{provisioner if isinstance(provisioner, str) else '?'}, and some keep volumes on one node. Keep checkpoints in the bucket"
            )
        if allowed is not None and len(allowed) == 1:
            return allowed
        return (
            f"the volume of its claim {title} is created in one zone, and whether each tier has nodes there is not known: allow one "
            f"zone in `allowedTopologies` of StorageClass {name!r}, or keep checkpoints in the bucket"
        )

    def _not_attached(self, storage_class: StackResource) -> Iterator[str]:
        """Yield that machines of a pool do not attach the volumes of a class: Persistent Disks on GKE, Ultra Disks on AKS."""
        disk = text_at(storage_class.props, "parameters", "type")
        sku = text_at(storage_class.props, "parameters", "skuName") or text_at(
            storage_class.props, "parameters", "skuname"
        )
        for each in of_types(self.resources, _AGENT_POOL) if str(sku).startswith(_ULTRA) else ():
            is_pool = at(each.props, "nodeLabels", POOL) is not None
            is_short = is_pool and at(each.props, "enableUltraSSD") in (None, False)
            if is_short and is_same_cluster(each, self.job, self.resources) is not False:
                yield f"machines of agent pool {each.logical_name!r} attach no Ultra Disks (`enableUltraSSD`), and the volumes of its pods are {sku}"
        for each in of_type(self.resources, _NODE_POOL) if str(disk).startswith("pd-") else ():
            name = str(text_at(each.props, "nodeConfig", "machineType"))
            machine = machine_catalogue("gcp").get(name)
            is_pool = at(each.props, "nodeConfig", "labels", POOL) is not None
            is_short = is_pool and machine is not None and attaches_only_hyperdisk(machine)
            if is_short and is_same_cluster(each, self.job, self.resources) is not False:
                yield f"machines of type {name} attach Hyperdisk only, and the volumes of its pods are {disk}"

    def _zones_of_file_system(
        self, volume: StackResource, field: str, handle: str | Unknown | None
    ) -> frozenset[str] | None:
        """Return the zones of the mount targets of a file system of EFS, None if the program does not show them.

        `field` of the volume, or of its class, names the file system by its `handle`, or by a reference to it.
        """
        refers, zones = {*volume.refers_to.get(field, ())}, set[str]()
        for each in of_type(self.resources, _MOUNT_TARGET):
            is_named = isinstance(handle, str) and handle.partition(":")[0] == text_at(
                each.props, "fileSystemId"
            )
            if is_named or refers & {*each.refers_to.get("fileSystemId", ())}:
                subnets = {*each.refers_to.get("subnetId", ())} & by_urn(self.resources).keys()
                found = [text_at(by_urn(self.resources)[urn].props, "availabilityZone") for urn in subnets]
                if len(found) != 1 or not isinstance(found[0], str):
                    return None
                zones.add(found[0])
        return frozenset(zones) or None

    def _mountable_anywhere(self) -> frozenset[str]:
        """Return the claims that the namespace lists as mountable in every zone."""
        namespace = self._find(NAMESPACE_TYPE, self.namespace)
        listed = (
            None if namespace is None else text_at(namespace.props, "metadata", "annotations", VOLUME_CLAIMS)
        )
        return (
            frozenset(each.strip() for each in listed.split(",")) if isinstance(listed, str) else frozenset()
        )

    def _find(self, type_token: str, name: str, namespace: str | None = None) -> StackResource | None:
        """Return the resource of this name in the cluster of the job."""
        for each in named(self.resources, type_token, name):
            there = text_at(each.props, "metadata", "namespace") or "default"
            if namespace in {None, there} and is_same_cluster(each, self.job, self.resources) is True:
                return each
        return None


def _allowed_zones(storage_class: StackResource) -> _Found:
    """Return the zones of a StorageClass's `allowedTopologies`, None if it has none."""
    terms = items_at(storage_class.props, "allowedTopologies")
    if terms is UNKNOWN:
        return "the allowedTopologies of its StorageClass are not known yet"
    zones: frozenset[str] = frozenset()
    for term in terms:
        expressions = items_at(term, "matchLabelExpressions")
        keys = [UNKNOWN] if expressions is UNKNOWN else [text_at(each, "key") for each in expressions]
        values = () if expressions is UNKNOWN else [texts_at(each, "values") for each in expressions]
        known = [each for each in values if isinstance(each, frozenset)]
        if len(known) < len(keys) or not all(isinstance(key, str) and _is_zone(key) for key in keys):
            return "the allowedTopologies of its StorageClass are not judged: they name more than zones"
        zones |= _in_all(known)
    return zones if terms else None


def _claims_of_job_set(job: StackResource, spec: Value) -> Iterator[Value]:
    """Yield the claims that a JobSet makes for its pods: a container mounts a template by its name."""
    mounted = {
        text_at(mount, "name")
        for kind in ("initContainers", "containers")
        for container in known_items(spec, kind)
        for mount in known_items(container, "volumeMounts")
    }
    for policy in known_items(at(job.props, "spec"), "volumeClaimPolicies"):
        for template in known_items(policy, "templates"):
            if text_at(template, "metadata", "name") in mounted:
                yield template


def _in_all(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return what all sets have; nothing if there is none."""
    first, *others = [*sets] or [frozenset[str]()]
    return first.intersection(*others)


def _is_zone(key: str) -> bool:
    return ALIASES.get(key, key) in _ZONE_KEYS


def _name(value: Value) -> str:
    name = text_at(value, "metadata", "name") or text_at(value, "name")
    return repr(name) if isinstance(name, str) else "?"
