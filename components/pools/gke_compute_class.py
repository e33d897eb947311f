"""A ComputeClass of GKE: another way by which pods reach a tier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.scheduling.json import Json
    from holdfast.scheduling.pools import Pool

#: GKE's own classes are called so.
_RESERVED: Final = ("gke", "autopilot")


@dataclass(frozen=True, kw_only=True)
class GkeComputeClassArgs:
    """The pools of the class, one or more, in the order in which GKE tries them; each must name the class itself.

    Raises ValueError for pools of different capacity types, and for a name that GKE keeps for itself.
    """

    name: str
    pools: Sequence[Pool]

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"ComputeClass {self.name}: {problem}")


class GkeComputeClass(ComponentResource):
    """Pools of one capacity type that pods select as one, by `cloud.google.com/compute-class`.

    Creates the ComputeClass. GKE refuses pods that select by it and by one of GKE's labels for spot at once.
    """

    def __init__(self, name: str, args: GkeComputeClassArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkeComputeClass", name, None, opts)
        CustomResource(
            f"{name}-compute-class",
            api_version="cloud.google.com/v1",
            kind="ComputeClass",
            metadata={"name": args.name},
            spec=compute_class_spec(args),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def compute_class_spec(args: GkeComputeClassArgs) -> Json:
    """What the class says: these pools and nothing else, ever."""
    return {
        "priorities": [{"nodepools": [pool.name]} for pool in args.pools],
        # Otherwise GKE would buy any machine at all when none of these is to be had.
        "whenUnsatisfiable": "DoNotScaleUp",
        # A better pool that has room again is no reason to stop a job that trains.
        "activeMigration": {"optimizeRulePriority": False},
        "nodePoolAutoCreation": {"enabled": False},
    }


def _problems(args: GkeComputeClassArgs) -> Iterator[str]:
    if not args.pools:
        yield "it needs a pool"
    if len({pool.capacity for pool in args.pools}) > 1:
        yield (
            "its pools are of more than one capacity type. GKE goes on to the next pool at once and for each node "
            "by itself: a job's pods would be on both, and its ladder would know nothing of it"
        )
    if args.name.startswith(_RESERVED):
        yield f"GKE keeps names that begin with {' or '.join(_RESERVED)} for itself"
