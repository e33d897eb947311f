"""What a pod in a training namespace may ask for, and what admission does for a pod that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from holdfast.scheduling.taints import Taint


@dataclass(frozen=True, kw_only=True)
class NodeSelection:
    """A node label by which pods ask for tainted nodes, and the values of it that those nodes have.

    A pod asks by naming a value: in its `nodeSelector`, or with `In` in a required node affinity. One that merely
    prefers such nodes, or that excludes all others, names none.
    """

    key: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.key or "" in self.values:
            raise ValueError(
                f"selection of {self.key!r} in {self.values}: neither key nor value may be empty"
            )


@dataclass(frozen=True, kw_only=True)
class TolerationRule:
    """Pods that ask for tainted nodes tolerate the taint.

    `name` is the rule's name within the cluster, a DNS label: `spot`, `gpu`. A pod asks for the nodes behind `taint` by
    one of the `selections`, or by a container that requests more than zero of one of the extended
    `resources`, as `nvidia.com/gpu`. `removed_annotations` are those that a pod on such nodes must not carry.
    """

    name: str
    taint: Taint
    selections: tuple[NodeSelection, ...] = ()
    resources: tuple[str, ...] = ()
    removed_annotations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.selections and not self.resources:
            raise ValueError(
                f"toleration rule {self.name!r}: no pod can ask for it; give selections or resources"
            )


@dataclass(frozen=True, kw_only=True)
class AnnotationRule:
    """All pods carry an annotation; one that has it already keeps what its author wrote.

    `name` is the rule's name within the cluster, a DNS label.
    """

    name: str
    annotation: str
    value: str


@dataclass(frozen=True, kw_only=True)
class LabelRule:
    """The pods of one service account carry a label; one that has it already keeps what its author wrote.

    `name` is the rule's name within the cluster, a DNS label.
    """

    name: str
    service_account: str
    label: str
    value: str


AdmissionRule: TypeAlias = TolerationRule | AnnotationRule | LabelRule
