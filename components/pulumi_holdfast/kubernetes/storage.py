"""Volumes of data in training namespaces: a volume that is reserved for one claim, and that claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from pulumi import ComponentResource, Input, Resource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.labels import ZONE

if TYPE_CHECKING:
    from pulumi_holdfast.config.storage import VolumeSection
    from pulumi_holdfast.ladder.json import Json

    V = TypeVar("V", bound=VolumeSection)

#: Kubernetes requires a size; a bucket has none, and nothing enforces it.
NOMINAL_GIB: Final = 1024

#: What a claim requests: it is bound by name, and gets all of its volume. A quota counts what claims request, and the file systems of
#: the stack are not the disks of a namespace.
REQUEST: Final = "1Ki"

#: The drivers that mount whatever the network of a node reaches, without an identity of the pod. Claims alone keep a namespace out.
NETWORK_FILE_SYSTEMS: Final = (
    "azurelustre.csi.azure.com",
    "efs.csi.aws.com",
    "file.csi.azure.com",
    "filestore.csi.storage.gke.io",
    "fsx.csi.aws.com",
    "lustre.csi.storage.gke.io",
    "nfs.csi.k8s.io",
)


@dataclass(frozen=True, kw_only=True)
class MountedVolume:
    """A volume as a CSI driver mounts it in one namespace, where its claim has the name `name`.

    `handle` is the driver's id of it, `attributes` and `options` are what the driver mounts it with. Of one with a `zone`, as
    nodes' labels write it, pods run in that zone only.
    """

    name: str
    driver: str
    handle: Input[str]
    attributes: Mapping[str, Input[str]] = field(default_factory=dict[str, "Input[str]"])
    options: Sequence[str] = ()
    size_gib: int = NOMINAL_GIB
    read_only: bool = False
    zone: str | None = None

    @property
    def access_mode(self) -> str:
        """How many pods may mount it, and for what."""
        return "ReadOnlyMany" if self.read_only else "ReadWriteMany"


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The volumes of a stack: those of each namespace, and the buckets that its jobs read, by volume; and what must exist before pods."""

    volumes: Mapping[str, Sequence[MountedVolume]] = field(default_factory=dict[str, Sequence[MountedVolume]])
    buckets: Mapping[str, Mapping[str, Input[str]]] = field(
        default_factory=dict[str, Mapping[str, "Input[str]"]]
    )
    resources: Sequence[Resource] = ()


def storage_of(
    volumes: Sequence[V],
    mounted: Callable[[V, str], MountedVolume],
    buckets: Mapping[str, Input[str]],
    resources: Sequence[Resource],
) -> Storage:
    """Return the storage of a stack: `mounted` is a volume as a namespace mounts it, `buckets` are those behind volumes."""
    by_namespace = {
        namespace: [volume for volume in volumes if namespace in volume.namespaces]
        for namespace in sorted({namespace for volume in volumes for namespace in volume.namespaces})
    }
    return Storage(
        volumes={name: [mounted(volume, name) for volume in here] for name, here in by_namespace.items()},
        buckets={
            name: {volume.name: buckets[volume.name] for volume in here if volume.name in buckets}
            for name, here in by_namespace.items()
        },
        resources=resources,
    )


def volume_name(namespace: str, volume: str) -> str:
    """Return the name of a namespace's volume: neither part contains the dot, so no two namespaces have one of the same name."""
    return f"{namespace}.{volume}"


def volume_spec(namespace: str, volume: MountedVolume) -> Mapping[str, Input[object]]:
    """Return the specification of the PersistentVolume, which no claim of another name or namespace can bind."""
    zone = [{"key": ZONE, "operator": "In", "values": [volume.zone]}]
    return {
        "capacity": {"storage": f"{volume.size_gib}Gi"},
        "accessModes": [volume.access_mode],
        # The data outlives the claim, the namespace and, if it is retained, the stack.
        "persistentVolumeReclaimPolicy": "Retain",
        # Empty, not absent: an absent class means the default class, which provisions volumes.
        "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": volume.name},
        **({"mountOptions": list(volume.options)} if volume.options else {}),
        "csi": {
            "driver": volume.driver,
            "volumeHandle": volume.handle,
            **({"readOnly": True} if volume.read_only else {}),
            **({"volumeAttributes": volume.attributes} if volume.attributes else {}),
        },
        **(
            {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": zone}]}}}
            if volume.zone
            else {}
        ),
    }


def claim_spec(namespace: str, volume: MountedVolume) -> Json:
    """Return the specification of the PersistentVolumeClaim."""
    return {
        "accessModes": [volume.access_mode],
        "storageClassName": "",
        "volumeName": volume_name(namespace, volume.name),
        "resources": {"requests": {"storage": REQUEST}},
    }


@dataclass(frozen=True, kw_only=True)
class NamespaceVolumeArgs:
    """A volume of the training namespace `namespace`."""

    namespace: str
    volume: MountedVolume


class NamespaceVolume(ComponentResource):
    """The volume behind a claim of a training namespace (`holdfast:index:NamespaceVolume`).

    Creates the PersistentVolume. Create it before its namespace: it is deleted after the claim.
    """

    def __init__(self, name: str, args: NamespaceVolumeArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NamespaceVolume", name, None, opts)
        KubernetesObject(
            f"{name}-volume",
            "v1",
            "PersistentVolume",
            {
                "metadata": {"name": volume_name(args.namespace, args.volume.name)},
                "spec": volume_spec(args.namespace, args.volume),
            },
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


class NamespaceClaim(ComponentResource):
    """The claim that training pods mount (`holdfast:index:NamespaceClaim`).

    Creates the PersistentVolumeClaim in its namespace, bound to its NamespaceVolume.
    """

    def __init__(self, name: str, args: NamespaceVolumeArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NamespaceClaim", name, None, opts)
        KubernetesObject(
            f"{name}-claim",
            "v1",
            "PersistentVolumeClaim",
            {
                "metadata": {"name": args.volume.name, "namespace": args.namespace},
                "spec": claim_spec(args.namespace, args.volume),
            },
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
