"""The identity of a job has access to one prefix of checkpoints, not to those of all namespaces.

A job that can write everywhere can overwrite what another team has trained for a month.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

from pulumi_holdfast.program.resources import StackResource, Value, at, is_list, is_object, text_at
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity

_S3_OBJECTS: Final = (
    "s3:*",
    "s3:GetObject",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:Get*",
    "s3:Put*",
    "s3:Delete*",
)
_GCS_BUCKET: Final = "gcp:storage/bucketIAMMember:BucketIAMMember"
_BLOB_ROLES: Final = (
    "ba92f5b4-2d11-453d-a403-e96b0029c9fe",  # Storage Blob Data Contributor
    "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",  # Storage Blob Data Owner
)


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the grants that give pods access to a whole bucket or storage account."""
    return tuple(
        Finding(urn=each.urn, message=f"{each.logical_name!r} {problem}")
        for each in resources
        for (prefix, suffix), problems in _KINDS.items()
        if each.type.startswith(prefix) and each.type.endswith(suffix)
        for problem in problems(each)
    )


def _aws_problems(policy: StackResource) -> Iterator[str]:
    """Yield what an IAM policy allows on all objects of a bucket; nothing while the policy is not known yet."""
    document = text_at(policy.props, "policy")
    for statement in _statements(document) if isinstance(document, str) else ():
        objects = [each for each in _texts(at(statement, "Resource")) if _is_everything(each)]
        if (
            at(statement, "Effect") == "Allow"
            and objects
            and any(action in _S3_OBJECTS for action in _texts(at(statement, "Action")))
        ):
            yield (
                f"allows reading or writing {objects[0]}, the checkpoints of every namespace. Name the prefix: "
                "`arn:aws:s3:::bucket/namespace/*`."
            )


def _gcp_problems(member: StackResource) -> Iterator[str]:
    """Yield what pods of a cluster may do in a whole bucket, unless a condition restricts it."""
    who, role = text_at(member.props, "member"), text_at(member.props, "role")
    if not isinstance(who, str) or not isinstance(role, str) or at(member.props, "condition") is not None:
        return
    if (
        ".svc.id.goog/" in who
        and role.startswith("roles/storage.")
        and not role.endswith(("Viewer", "bucketViewer"))
    ):
        yield (
            f"grants {who} the role {role} on a whole bucket. Grant it on the namespace's managed folder "
            "(ManagedFolderIamMember)."
        )


def _azure_problems(assignment: StackResource) -> Iterator[str]:
    """Yield what an identity may do in a whole storage account."""
    scope, role = text_at(assignment.props, "scope"), text_at(assignment.props, "roleDefinitionId")
    if not isinstance(scope, str) or not isinstance(role, str) or not role.endswith(_BLOB_ROLES):
        return
    if scope.startswith("/subscriptions/") and "/containers/" not in scope:
        yield (
            f"grants an identity access to all blobs of {scope.rpartition('/')[2]}. Grant it on the namespace's container "
            "(`…/blobServices/default/containers/<namespace>`)."
        )


_KINDS: Final[Mapping[tuple[str, str], Callable[[StackResource], Iterator[str]]]] = {
    ("aws:iam/rolePolicy:", "RolePolicy"): _aws_problems,
    ("aws:iam/policy:", "Policy"): _aws_problems,
    (_GCS_BUCKET, ""): _gcp_problems,
    ("azure-native:authorization", ":RoleAssignment"): _azure_problems,
}


def _statements(policy: str) -> Iterator[Value]:
    try:
        document = cast("Value", json.loads(policy))
    except ValueError:
        return
    statements = at(document, "Statement")
    yield from statements if is_list(statements) else [statements] if is_object(statements) else ()


def _texts(value: Value) -> tuple[str, ...]:
    listed = value if is_list(value) else [value]
    return tuple(each for each in listed if isinstance(each, str))


def _is_everything(resource: str) -> bool:
    """Return whether it means all objects of a bucket, or of all buckets: no prefix before the star."""
    if resource == "*":
        return True
    _, found, path = resource.partition(":::")
    bucket, slash, key = path.partition("/")
    return bool(found) and (bucket == "*" or (bool(slash) and key == "*"))


RULE: Final = Rule(
    name="job-identities-scoped-to-prefix",
    title="Job identities have access to one prefix",
    description="No identity may read or write the checkpoints of every namespace.",
    fix="Grant access to the namespace's own prefix, folder or container.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
