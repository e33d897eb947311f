"""Restricts the IAM roles of a cluster: sets a permissions boundary and a path on every role of any component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulumi import ResourceTransformation

from pulumi_holdfast.kubernetes.labels import transformation

_ROLE: Final = "aws:iam/role:Role"
_PROFILE: Final = "aws:iam/instanceProfile:InstanceProfile"

#: IAM's default path.
_ROOT: Final = "/"


def role_limits(boundary: str | None, path: str) -> ResourceTransformation:
    """Give every role the permissions boundary and the path, and instance profiles the path.

    `boundary` is the ARN of a policy, None for no boundary. A change of the path replaces the roles.
    """

    def restricted(kind: str, _: Mapping[str, object]) -> Mapping[str, object] | None:
        of_path = {} if path == _ROOT else {"path": path}
        if kind == _ROLE:
            return {**of_path, **({} if boundary is None else {"permissions_boundary": boundary})} or None
        return (of_path or None) if kind == _PROFILE else None

    return transformation(restricted)
