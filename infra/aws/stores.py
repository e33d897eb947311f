"""The stores of an AWS stack: where the jobs of each training namespace keep their checkpoints, here or at home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from holdfast.infra.home_checkpoints import bucket_in, home_checkpoints
from holdfast.infra.outputs import CHECKPOINT_KEYS
from holdfast.scheduling.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import Input

    from holdfast.components.checkpoints.s3 import CheckpointBucket
    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.home_checkpoints import HomeCheckpoints


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints; `key_arn` is the bucket's KMS key, None without one."""

    uri: Input[str]
    bucket_arn: Input[str]
    prefix: str
    key_arn: Input[str] | None


def stores_of(platform: AwsPlatform, checkpoints: CheckpointBucket) -> Mapping[str, Store]:
    """The store of each training namespace: the stack's bucket, or, of the same account, that in which accepted jobs keep theirs."""
    own = {
        each.name: Store(
            uri=checkpoints.uri(each.name),
            bucket_arn=checkpoints.bucket_arn,
            prefix=checkpoints.prefix(each.name),
            key_arn=checkpoints.key_arn,
        )
        for each in platform.namespaces
    }
    at_home = {
        name: _at_home(found, name, platform.partition)
        for name, found in home_checkpoints(platform.accepts_from, "AWS").items()
    }
    return own | at_home


def _at_home(found: HomeCheckpoints, namespace: str, partition: str) -> Store:
    keys = found.home.output(CHECKPOINT_KEYS)
    return Store(
        uri=found.uri,
        bucket_arn=pulumi.Output.concat("arn:", partition, ":s3:::", found.uri.apply(bucket_in)),
        prefix=namespace,
        key_arn=keys.apply(lambda known: cast("str", mapping(known).get(namespace))),
    )
