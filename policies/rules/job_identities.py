"""The rule that the identity of jobs reaches one prefix of checkpoints, and not the store of all namespaces.

A job that can write everywhere can overwrite what another team has trained for a month.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from holdfast.policies.findings import Finding
from holdfast.policies.known_values import at, is_list, is_object, text_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.policies.rule import Settings

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
    """Return the grants by which pods reach a whole bucket or account."""
    return tuple(
        Finding(urn=each.urn, message=f"{each.logical_name!r} {problem}")
        for each in resources
        for ends, problems in _KINDS.items()
        if each.type.startswith(ends[0]) and each.type.endswith(ends[1])
        for problem in problems(each)
    )


def aws_problems(policy: StackResource) -> Iterator[str]:
    """Yield what an IAM policy allows on all objects of a bucket. One that is not known yet is read when it is."""
    written = text_at(policy.props, "policy")
    for statement in _statements(written) if isinstance(written, str) else ():
        objects = [each for each in _texts(at(statement, "Resource")) if _is_everything(each)]
        if (
            at(statement, "Effect") == "Allow"
            and objects
            and any(action in _S3_OBJECTS for action in _texts(at(statement, "Action")))
        ):
            yield (
                f"lets whoever has it read or write {objects[0]}, the checkpoints of every namespace. Name the prefix: "
                "`arn:aws:s3:::bucket/namespace/*`."
            )


def gcp_problems(member: StackResource) -> Iterator[str]:
    """Yield what a member may do in a whole bucket, if it is pods of a cluster and no condition says less."""
    who, role = text_at(member.props, "member"), text_at(member.props, "role")
    if not isinstance(who, str) or not isinstance(role, str) or at(member.props, "condition") is not None:
        return
    if (
        ".svc.id.goog/" in who
        and role.startswith("roles/storage.")
        and not role.endswith(("Viewer", "bucketViewer"))
    ):
        yield (
            f"gives {who} the role {role} on a whole bucket. Give it on the namespace's managed folder "
            "(ManagedFolderIamMember)."
        )


def azure_problems(assignment: StackResource) -> Iterator[str]:
    """Yield what an identity may do in a whole storage account."""
    scope, role = text_at(assignment.props, "scope"), text_at(assignment.props, "roleDefinitionId")
    if not isinstance(scope, str) or not isinstance(role, str) or not role.endswith(_BLOB_ROLES):
        return
    if scope.startswith("/subscriptions/") and "/containers/" not in scope:
        yield (
            f"gives an identity the blobs of all of {scope.rpartition('/')[2]}. Give it the namespace's container "
            "(`…/blobServices/default/containers/<namespace>`)."
        )


_KINDS: Final[Mapping[tuple[str, str], Callable[[StackResource], Iterator[str]]]] = {
    ("aws:iam/rolePolicy:", "RolePolicy"): aws_problems,
    ("aws:iam/policy:", "Policy"): aws_problems,
    (_GCS_BUCKET, ""): gcp_problems,
    ("azure-native:authorization", ":RoleAssignment"): azure_problems,
}


def _statements(written: str) -> Iterator[Value]:
    try:
        document = cast("Value", json.loads(written))
    except ValueError:
        return
    statements = at(document, "Statement")
    yield from statements if is_list(statements) else [statements] if is_object(statements) else ()


def _texts(value: Value) -> tuple[str, ...]:
    listed = value if is_list(value) else [value]
    return tuple(each for each in listed if isinstance(each, str))


def _is_everything(resource: str) -> bool:
    """Whether it is all objects of a bucket, or of all buckets: no prefix stands before the star."""
    if resource == "*":
        return True
    _, found, path = resource.partition(":::")
    bucket, slash, key = path.partition("/")
    return bool(found) and (bucket == "*" or (bool(slash) and key == "*"))
