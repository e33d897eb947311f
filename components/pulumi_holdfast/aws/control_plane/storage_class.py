"""The default StorageClass of an EKS cluster: EKS creates none since Kubernetes 1.30."""

from __future__ import annotations

from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject

#: The annotation that makes a class the default.
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"

NAME: Final = "gp3"


class DefaultStorageClass(ComponentResource):
    """The class of volume claims that name none (`holdfast:index:DefaultStorageClass`).

    Creates the StorageClass `gp3` of the EBS driver: encrypted volumes, created in the zone of the first pod that mounts
    them. Without a default such a claim stays pending, and so do its pods. Create it after the driver.
    """

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:DefaultStorageClass", name, None, opts)
        KubernetesObject(
            f"{name}-gp3",
            "storage.k8s.io/v1",
            "StorageClass",
            {
                "metadata": {"name": NAME, "annotations": {IS_DEFAULT: "true"}},
                "provisioner": "ebs.csi.aws.com",
                "parameters": {"type": "gp3", "encrypted": "true"},
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowVolumeExpansion": True,
                "reclaimPolicy": "Delete",
            },
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
