"""A pool that Karpenter keeps: a NodePool and its node class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, CustomTimeouts, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource

from holdfast.components.pools.node_pool import node_pool_spec

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.components.pools.node_class import NodeClass
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool

#: The deletion of a NodePool is that of its last node: its pods have 10 min to leave, and a machine with eight GPUs
#: takes several more to shut down.
_DELETE_TIMEOUT: Final = "30m"


@dataclass(frozen=True, kw_only=True)
class KarpenterPoolArgs:
    """A pool's facts, the machine types it may buy (one or more), and the node class of its cloud.

    `weight`, 1 to 100, is its rank among the pools that a pod fits in; the highest is tried first. `zones` are those
    it keeps to, none for all of its network's. `efa`: its nodes have fabric adapters. `roll_out`: its machines may
    now be replaced where they are not as the configuration says.
    """

    pool: Pool
    machines: Sequence[Machine]
    node_class: NodeClass
    weight: int
    zones: Collection[str] = ()
    efa: bool = False
    roll_out: bool = False


class KarpenterPool(ComponentResource):
    """Nodes of one capacity type that come and go with the pods which select them.

    Creates the node class and the NodePool, both under the pool's name. Deleting it waits until its nodes are gone.
    """

    def __init__(self, name: str, args: KarpenterPoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KarpenterPool", name, None, opts)
        node_class = CustomResource(
            f"{name}-node-class",
            api_version=args.node_class.api_version,
            kind=args.node_class.kind,
            metadata={"name": args.pool.name},
            spec=args.node_class.spec,
            opts=ResourceOptions(parent=self),
        )
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={
                "name": args.pool.name,
                # NodeClaims are owned by their NodePool and block its deletion in the foreground: so the next thing
                # in line, Karpenter itself, is still there to empty and end their nodes.
                "annotations": {"pulumi.com/deletionPropagationPolicy": "foreground"},
            },
            spec=node_pool_spec(
                args.pool,
                args.machines,
                args.node_class,
                args.pool.name,
                args.weight,
                zones=args.zones,
                efa=args.efa,
                roll_out=args.roll_out,
            ),
            opts=ResourceOptions(
                parent=self,
                depends_on=[node_class],
                custom_timeouts=CustomTimeouts(delete=_DELETE_TIMEOUT),
            ),
        )
        self.register_outputs({})
