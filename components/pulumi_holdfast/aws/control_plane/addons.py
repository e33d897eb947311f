"""The EKS add-ons of a cluster, and its default StorageClass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.eks import Addon, AddonArgs, AddonPodIdentityAssociationArgs

from pulumi_holdfast.aws.control_plane.access import RoleWithPolicies, RoleWithPoliciesArgs
from pulumi_holdfast.aws.policy_documents import Workload, pod_identity_trust
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.kubernetes.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input

    from pulumi_holdfast.aws.control_plane.addon_versions import AddonVersions
    from pulumi_holdfast.aws.policy_documents import Place
    from pulumi_holdfast.ladder.json import Json

#: Where Deployments of add-ons run: on a pool's nodes they would prevent scale-down to zero.
ON_SYSTEM_NODES: Final[Json] = {"nodeSelector": SYSTEM_NODE_SELECTOR, "tolerations": list(SYSTEM_TOLERATIONS)}
#: The plugin ignores NetworkPolicies by default.
_ENFORCES_NETWORK_POLICIES: Final[Json] = {"enableNetworkPolicy": "true"}
#: Both DaemonSets on every node. The one that reads GPUs tolerates no taint by default: a GPU node with a taint would then
#: be reported as unhealthy indefinitely, and be replaced every 10 minutes.
NODE_MONITORING: Final[Json] = {
    "nodeAgent": {"tolerations": [{"operator": "Exists"}]},
    "dcgmAgent": {"tolerations": [{"operator": "Exists"}]},
}
_EBS_NAMESPACE: Final = "kube-system"
_EBS_SERVICE_ACCOUNT: Final = "ebs-csi-controller-sa"


@dataclass(frozen=True, kw_only=True)
class NodeAddonsArgs:
    """The cluster's name and the versions of its add-ons."""

    cluster_name: Input[str]
    versions: AddonVersions


class NodeAddons(ComponentResource):
    """The add-ons that nodes need to become ready (`holdfast:index:NodeAddons`).

    Creates `vpc-cni`, `kube-proxy` and `eks-pod-identity-agent`. They are DaemonSets, so they are complete
    without a node, and they tolerate every taint.
    """

    pod_identity: Addon

    def __init__(self, name: str, args: NodeAddonsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NodeAddons", name, None, opts)
        for addon, version, configuration in (
            ("vpc-cni", args.versions.vpc_cni, _ENFORCES_NETWORK_POLICIES),
            ("kube-proxy", args.versions.kube_proxy, None),
        ):
            Addon(
                f"{name}-{addon}",
                addon_args(args.cluster_name, addon, version, configuration),
                opts=ResourceOptions(parent=self),
            )
        self.pod_identity = Addon(
            f"{name}-pod-identity",
            addon_args(
                args.cluster_name,
                "eks-pod-identity-agent",
                args.versions.pod_identity_agent,
                {"tolerations": [{"operator": "Exists"}]},
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class ServiceAddonsArgs:
    """The cluster's name as a string and as an output, the versions of its add-ons, and the tags of volumes."""

    cluster_name: str
    cluster: Input[str]
    versions: AddonVersions
    place: Place
    tags: Mapping[str, str]


class ServiceAddons(ComponentResource):
    """The add-ons that need a node (`holdfast:index:ServiceAddons`).

    Creates `coredns`, `metrics-server` for `kubectl top` and autoscaling, `eks-node-monitoring-agent`, which reports
    unhealthy hardware as node conditions, and `aws-ebs-csi-driver` with a role for its controller by Pod Identity, limited
    to the volumes and machines of this cluster. Without a node EKS waits 20 minutes for them and fails.
    """

    def __init__(self, name: str, args: ServiceAddonsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ServiceAddons", name, None, opts)
        Addon(
            f"{name}-coredns",
            addon_args(args.cluster, "coredns", args.versions.coredns, ON_SYSTEM_NODES),
            opts=ResourceOptions(parent=self),
        )
        Addon(
            f"{name}-metrics-server",
            addon_args(
                args.cluster,
                "metrics-server",
                args.versions.metrics_server,
                # One replica: between two of them a failure would cost seconds of metrics.
                {"replicas": 1, **ON_SYSTEM_NODES},
            ),
            opts=ResourceOptions(parent=self),
        )
        Addon(
            f"{name}-node-monitoring",
            addon_args(
                args.cluster, "eks-node-monitoring-agent", args.versions.node_monitoring, NODE_MONITORING
            ),
            opts=ResourceOptions(parent=self),
        )
        workload = Workload(
            cluster_name=args.cluster_name, namespace=_EBS_NAMESPACE, service_account=_EBS_SERVICE_ACCOUNT
        )
        role = RoleWithPolicies(
            f"{name}-ebs-iam",
            RoleWithPoliciesArgs(
                place=args.place,
                trust=pod_identity_trust(workload),
                # Limited to resources with the tag `ebs.csi.aws.com/cluster-name` or `eks:cluster-name` of
                # this cluster. AWS's other policies for the driver cover all volumes of the account, or all
                # that a driver created.
                policies=["AmazonEBSCSIDriverEKSClusterScopedPolicy"],
                description=f"EBS volumes of the EKS cluster {args.cluster_name}",
            ),
            opts=ResourceOptions(parent=self),
        )
        Addon(
            f"{name}-ebs",
            addon_args(
                args.cluster,
                "aws-ebs-csi-driver",
                args.versions.ebs_csi,
                {
                    "controller": {
                        **ON_SYSTEM_NODES,
                        **({"extraVolumeTags": args.tags} if args.tags else {}),
                    },
                    "node": {"tolerateAllTaints": True},
                },
                # EKS associates before it installs: an association of its own would be known to EKS only eventually, and
                # identities are injected when a pod is created.
                identities=[
                    AddonPodIdentityAssociationArgs(
                        service_account=workload.service_account, role_arn=role.arn
                    )
                ],
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def addon_args(
    cluster: Input[str],
    addon: str,
    version: str,
    configuration: Json | None = None,
    *,
    identities: Sequence[AddonPodIdentityAssociationArgs] | None = None,
) -> AddonArgs:
    """Return an add-on that overwrites manual changes of its configuration."""
    return AddonArgs(
        cluster_name=cluster,
        addon_name=addon,
        addon_version=version,
        configuration_values=None if configuration is None else json.dumps(configuration),
        pod_identity_associations=identities,
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
    )


#: The annotation that makes a class the default.
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"

NAME: Final = "gp3"


def default_storage_class(name: str, opts: ResourceOptions | None = None) -> KubernetesObject:
    """Create the class of volume claims that name none: the StorageClass `gp3` of the EBS driver.

    Its volumes are encrypted, and in the zone of the first pod that mounts them. Without a default such a claim stays pending,
    and so do its pods. Create it after the driver.
    """
    return KubernetesObject(
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
        opts=opts,
    )
