"""Queries AWS for what earlier runs of a stack left: the key of the cluster's secrets, the stack's keys, the log group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pulumi_aws.cloudcontrol import get_resource
from pulumi_aws.cloudwatch import get_log_groups
from pulumi_aws.eks import get_clusters
from pulumi_aws.kms import get_key
from pulumi_aws.resourcegroupstaggingapi import get_resources

from pulumi_holdfast.aws.control_plane.control_plane import log_group_name
from pulumi_holdfast.aws.preflight.checks import Existing
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.ladder.json import mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.config.preflight import CloudQueries
    from pulumi_holdfast.ladder.json import Json

#: The states of a key that can decrypt, now or after it is enabled.
_USABLE: Final = frozenset({"Enabled", "Disabled"})


def existing_of(platform: AwsPlatform, stack: str, queries: CloudQueries) -> Existing:
    """Return what earlier runs of the stack left.

    The stack's keys are a required query where their result decides whether a key is deleted: without it, every earlier
    checkpoint could become unreadable.
    """
    ask_keys = "tag:GetResources and kms:DescribeKey"
    if platform.checkpoints.kms or platform.checkpoints.drop_key:
        keys = queries.optional(ask_keys, lambda: _keys(stack, queries.options))
    else:
        keys = queries.required(ask_keys, lambda: _keys(stack, queries.options))
    cluster = naming.cluster(stack)
    clusters = queries.optional("eks:ListClusters", lambda: get_clusters(opts=queries.options).names)
    return Existing(
        cluster=None if clusters is None else cluster in clusters,
        # Without the list of the stack's keys, nothing shows whether the cluster's key is one of them.
        secrets_key=None
        if keys is None or cluster not in (clusters or ())
        else queries.optional("cloudformation:GetResource", lambda: _secrets_key(cluster, queries.options)),
        own_keys=keys or {},
        log_group=bool(
            queries.optional("logs:DescribeLogGroups", lambda: _has_log_group(cluster, queries.options))
        ),
    )


def _keys(stack: str, options: pulumi.InvokeOptions) -> Mapping[str, str]:
    """The usable keys with the stack's tag, by their descriptions."""
    found = get_resources(
        resource_type_filters=["kms:key"],
        tag_filters=[{"key": labels.STACK, "values": [labels.stack_labels(stack)[labels.STACK]]}],
        opts=options,
    )
    keys = [get_key(key_id=each.resource_arn, opts=options) for each in found.resource_tag_mapping_lists]
    return {key.description: key.arn for key in keys if key.key_state in _USABLE}


def _secrets_key(cluster: str, options: pulumi.InvokeOptions) -> str | None:
    # The provider's function for clusters does not return the key.
    found: Json = json.loads(
        get_resource(type_name="AWS::EKS::Cluster", identifier=cluster, opts=options).properties
    )
    for each in map(mapping, sequence(found.get("EncryptionConfig"))):
        arn = mapping(each.get("Provider")).get("KeyArn")
        if isinstance(arn, str):
            return arn
    return None


def _has_log_group(cluster: str, options: pulumi.InvokeOptions) -> bool:
    name = log_group_name(cluster)
    return name in get_log_groups(log_group_name_prefix=name, opts=options).log_group_names
