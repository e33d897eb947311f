"""The stores of an AWS stack: where the jobs of each training namespace keep their checkpoints, here or at home.

A stack gives the roles of its jobs access to home's bucket. Home's bucket and key admit no role of another account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.kubernetes.other_clusters.home_checkpoints import (
    USE_OTHER_STORE,
    bucket_in,
    home_checkpoints,
)
from pulumi_holdfast.kubernetes.outputs import CHECKPOINT_KEYS
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import Input, Output

    from pulumi_holdfast.aws.checkpoints import CheckpointBucket
    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.kubernetes.other_clusters.home_checkpoints import Home, HomeCheckpoints
    from pulumi_holdfast.ladder.json import JsonValue


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints; `key_arn` is the bucket's KMS key, None without one."""

    uri: Input[str]
    bucket_arn: Input[str]
    prefix: str
    key_arn: Input[str] | None


def stores_of(
    platform: AwsPlatform, account: str, checkpoints: CheckpointBucket, *, parent: pulumi.Resource
) -> Mapping[str, Store]:
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
        name: _at_home(found, name, partition=platform.partition, account=account)
        for name, found in home_checkpoints(platform.accepts_from, "AWS", parent=parent).items()
    }
    return own | at_home


def _at_home(found: HomeCheckpoints, namespace: str, *, partition: str, account: str) -> Store:
    keys = found.home.output(CHECKPOINT_KEYS)
    uri = _judged(found, namespace, account)
    return Store(
        uri=uri,
        bucket_arn=pulumi.Output.concat("arn:", partition, ":s3:::", uri.apply(bucket_in)),
        prefix=namespace,
        key_arn=keys.apply(lambda known: cast("str", mapping(known).get(namespace))),
    )


def _judged(found: HomeCheckpoints, namespace: str, account: str) -> Output[str]:
    def address(known: list[object]) -> str:
        uri, identities = known
        require_account(found.home, mapping(cast("JsonValue", identities)).get(namespace), account)
        return str(uri)

    return pulumi.Output.all(found.uri, found.home.output("identities")).apply(address)


def require_account(home: Home, role: JsonValue, account: str) -> None:
    """Raise pulumi.RunError if the role of a namespace's jobs at home is not of this account, and so neither is their bucket."""
    its = role.split(":")[4] if isinstance(role, str) and role.count(":") > 4 else None
    if its != account:
        raise home.refusal(
            f"with a bucket in the account {its}"
            if its
            else f"whose jobs have the identity {format_value(role)}",
            allowed=f"a stack in the account {account}: its bucket and its key admit no role of another account",
            fix=USE_OTHER_STORE,
        )
