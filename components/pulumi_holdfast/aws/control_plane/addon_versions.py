"""The add-on versions for each Kubernetes version.

EKS publishes builds for each Kubernetes version. They are pinned together: "the most recent" would change the
plan of an unchanged stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, kw_only=True)
class AddonVersions:
    """The versions of the ten add-ons in EKS's form (`vVERSION-eksbuild.NUMBER`)."""

    vpc_cni: str
    kube_proxy: str
    pod_identity_agent: str
    coredns: str
    ebs_csi: str
    metrics_server: str
    node_monitoring: str
    s3_csi: str
    efs_csi: str
    fsx_csi: str


_BY_KUBERNETES: Final[Mapping[str, AddonVersions]] = {
    "1.36": AddonVersions(
        vpc_cni="v1.22.4-eksbuild.3",
        kube_proxy="v1.36.0-eksbuild.25",
        pod_identity_agent="v1.3.10-eksbuild.3",
        coredns="v1.14.3-eksbuild.23",
        ebs_csi="v1.66.0-eksbuild.1",
        metrics_server="v0.8.1-eksbuild.10",
        node_monitoring="v1.6.4-eksbuild.1",
        s3_csi="v2.5.0-eksbuild.1",
        efs_csi="v3.1.0-eksbuild.1",
        fsx_csi="v1.9.0-eksbuild.1",
    )
}

#: The add-ons by the name that EKS gives them, with their field here.
ADDONS: Final[Mapping[str, str]] = {
    "vpc-cni": "vpc_cni",
    "kube-proxy": "kube_proxy",
    "eks-pod-identity-agent": "pod_identity_agent",
    "coredns": "coredns",
    "aws-ebs-csi-driver": "ebs_csi",
    "metrics-server": "metrics_server",
    "eks-node-monitoring-agent": "node_monitoring",
    "aws-mountpoint-s3-csi-driver": "s3_csi",
    "aws-efs-csi-driver": "efs_csi",
    "aws-fsx-csi-driver": "fsx_csi",
}

#: The Kubernetes versions with add-on versions, oldest first.
KUBERNETES_VERSIONS: Final = tuple(_BY_KUBERNETES)


def addon_versions(kubernetes_version: str, pins: Mapping[str, str] | None = None) -> AddonVersions | None:
    """Return the add-on versions for a Kubernetes version (a minor version), None for a version without any.

    `pins` are other versions, by the names of add-ons.
    """
    found = _BY_KUBERNETES.get(kubernetes_version)
    other = {ADDONS[name]: version for name, version in (pins or {}).items()}
    return None if found is None else replace(found, **other)
