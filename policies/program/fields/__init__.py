"""The fields of each type of resource that decides whether jobs can fall back, and which of them no rule judges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from holdfast.policies.program.fields import aws, azure, gcp, karpenter, kubernetes
from holdfast.policies.program.fields.table import Fields
from holdfast.policies.program.resources import StackResource, text_at

#: By the type, without the version of its API.
TABLES: Final[Mapping[str, Fields]] = {
    **kubernetes.TABLES,
    **karpenter.TABLES,
    **aws.TABLES,
    **gcp.TABLES,
    **azure.TABLES,
}
_VERSION: Final = re.compile(r"/v\d\w*(?=:)")
_NAMES: Final = ("name", "nodeGroupName", "agentPoolName", "resourceName")


def fields_of(type_token: str) -> Fields | None:
    """Return the table of a type; None if it has none."""
    return TABLES.get(unversioned(type_token))


def unversioned(type_token: str) -> str:
    """Return a type without the version of its API."""
    return _VERSION.sub("", type_token)


def unread(resource: StackResource) -> tuple[str, ...]:
    """Return what a resource sets that no rule judges."""
    table, kind = fields_of(resource.type), resource.type.rpartition(":")[2]
    named = (text_at(resource.props, "metadata", "name"), *(text_at(resource.props, each) for each in _NAMES))
    name = next((each for each in named if isinstance(each, str)), resource.logical_name)
    return () if table is None else table.unread(resource.declared, f"{kind} {name!r}")
