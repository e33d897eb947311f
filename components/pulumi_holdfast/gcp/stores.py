"""The stores of a GCP stack: where the jobs of each training namespace keep their checkpoints, here or at home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi_holdfast.kubernetes.other_clusters.home_checkpoints import bucket_in, home_checkpoints

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi
    from pulumi import Input

    from pulumi_holdfast.gcp.checkpoints import CheckpointBucket
    from pulumi_holdfast.gcp.config.sections import GcpPlatform


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints. `is_home`: in a folder that another stack has made."""

    uri: Input[str]
    bucket: Input[str]
    folder: str
    is_home: bool = False


def stores_of(
    platform: GcpPlatform, checkpoints: CheckpointBucket, *, parent: pulumi.Resource
) -> Mapping[str, Store]:
    """The store of each training namespace: the stack's bucket, or that in which accepted jobs keep theirs."""
    own = {
        each.name: Store(
            uri=checkpoints.uri(each.name),
            bucket=checkpoints.bucket_name,
            folder=checkpoints.prefix(each.name),
        )
        for each in platform.namespaces
    }
    at_home = {
        name: Store(uri=found.uri, bucket=found.uri.apply(bucket_in), folder=name, is_home=True)
        for name, found in home_checkpoints(platform.accepts_from, "Google Cloud", parent=parent).items()
    }
    return own | at_home
