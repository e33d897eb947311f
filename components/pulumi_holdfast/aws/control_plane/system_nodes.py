"""The system nodes of an EKS cluster: on-demand nodes for the operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.ec2 import LaunchTemplate
from pulumi_aws.eks import NodeGroup

from pulumi_holdfast.aws.control_plane.access import RoleWithPolicies, RoleWithPoliciesArgs
from pulumi_holdfast.aws.policy_documents import NODE_POLICIES, service_trust
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.aws.policy_documents import Place
    from pulumi_holdfast.ladder.machines import Architecture

_AMI_TYPES: Final[Mapping[Architecture, str]] = {
    "amd64": "AL2023_x86_64_STANDARD",
    "arm64": "AL2023_ARM_64_STANDARD",
}


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """The machines of the system nodes.

    `instance_types` are tried in order and have one architecture; `count` is two or more, in different zones.
    `release_version` is the release of EKS's node image (`KUBELET-DATE`); None: the newest on creation,
    which then stays. `tags` are put on the machines and their volumes, which the node group's tags do not
    reach. With `repair` EKS replaces machines that its monitoring agent reports as unhealthy.
    """

    instance_types: Sequence[str]
    count: int = 2
    architecture: Architecture = "amd64"
    volume_gib: int = 50
    release_version: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    repair: bool = True


@dataclass(frozen=True, kw_only=True)
class SystemNodeGroupArgs:
    """The nodes and their cluster: its name as a string and as an output, and its version."""

    nodes: SystemNodesArgs
    cluster_name: str
    cluster: Input[str]
    version: str
    subnet_ids: Input[Sequence[Input[str]]]
    place: Place


class SystemNodeGroup(ComponentResource):
    """Nodes for operators only, never interrupted (`holdfast:index:SystemNodeGroup`).

    Creates their role, which no other nodes use, their launch template, and the managed node group across the
    zones of the subnets. EKS creates the role's access entry. Nothing here has a tag that Karpenter selects:
    it does not manage these nodes.
    """

    def __init__(self, name: str, args: SystemNodeGroupArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:SystemNodeGroup", name, None, opts)
        role = RoleWithPolicies(
            f"{name}-iam",
            RoleWithPoliciesArgs(
                place=args.place,
                trust=service_trust(args.place.ec2_service()),
                policies=NODE_POLICIES,
                description=f"Operators' nodes of the EKS cluster {args.cluster_name}",
            ),
            opts=ResourceOptions(parent=self),
        )
        template = LaunchTemplate(
            f"{name}-template",
            # With a hop limit of 1, pods outside the host network cannot reach the node's credentials.
            metadata_options={
                "http_endpoint": "enabled",
                "http_tokens": "required",
                "http_put_response_hop_limit": 1,
            },
            block_device_mappings=[
                {
                    # The root volume of Amazon Linux 2023.
                    "device_name": "/dev/xvda",
                    "ebs": {
                        "encrypted": "true",
                        "volume_type": "gp3",
                        "volume_size": args.nodes.volume_gib,
                        "delete_on_termination": "true",
                    },
                }
            ],
            # The tags of a node group do not reach its machines; these do.
            tag_specifications=[
                {"resource_type": kind, "tags": {"Name": f"{args.cluster_name}-system", **args.nodes.tags}}
                for kind in ("instance", "volume")
            ],
            opts=ResourceOptions(parent=self),
        )
        NodeGroup(
            f"{name}-nodes",
            cluster_name=args.cluster,
            version=args.version,
            release_version=args.nodes.release_version,
            node_role_arn=role.arn,
            subnet_ids=args.subnet_ids,
            ami_type=_AMI_TYPES[args.nodes.architecture],
            capacity_type="ON_DEMAND",
            instance_types=list(args.nodes.instance_types),
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            # The size is fixed, so nothing else changes it and previews show no difference.
            scaling_config={
                "desired_size": args.nodes.count,
                "min_size": args.nodes.count,
                "max_size": args.nodes.count,
            },
            update_config={"max_unavailable": 1},
            node_repair_config={"enabled": args.nodes.repair},
            labels={SYSTEM: SYSTEM_VALUE},
            taints=[{"key": SYSTEM_TAINT.key, "value": SYSTEM_TAINT.value, "effect": "NO_SCHEDULE"}],
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
