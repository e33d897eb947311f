"""Google Cloud IAM: workload identity pools with their providers, and custom roles."""

import re
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.rehearsal.clouds.catalogue import Refuse, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.gcp.names import PROJECT_NUMBER, project
from pulumi_holdfast.rehearsal.clouds.relations import needs_at

_POOL: Final = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
_PROVIDER: Final = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"

#: A custom role of a project.
CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"

_ID: Final = re.compile(r"(?!gcp-)[a-z0-9-]{4,32}")
_ROLE_ID: Final = re.compile(r"[a-zA-Z0-9_.]{3,64}")


def _pools_of(owner: str) -> str:
    return f"projects/{owner}/locations/global/workloadIdentityPools"


def _pool_path(request: ResourceRequest, owner: str) -> str:
    return f"{_pools_of(owner)}/{request.inputs.get('workloadIdentityPoolId')}"


def _provider_path(request: ResourceRequest, owner: str) -> str:
    return f"{_pool_path(request, owner)}/providers/{request.inputs.get('workloadIdentityPoolProviderId')}"


def has_pool(request: ResourceRequest, pool: str) -> bool:
    """Whether the project has a pool of this name that a stack has made."""
    return request.inventory.find(_POOL, f"{_pools_of(project(request))}/{pool}") is not None


def _checked_id(field: str) -> Refuse:
    """Return the check of an id, which Terraform's provider makes before it sends anything."""
    rule = "must be 4 to 32 lowercase letters (a-z), numbers (0-9) or dashes (-), and can not start with"
    return lambda request: None if _ID.fullmatch(request.name) else f'"{field}" {rule} "gcp-"'


def _role_name(request: ResourceRequest) -> str:
    return f"projects/{project(request)}/roles/{request.name}"


def _wrong_role(request: ResourceRequest) -> str | None:
    if not _ROLE_ID.fullmatch(request.name):
        return f'"role_id" ("{request.name}") doesn\'t match regexp "^[a-zA-Z0-9_\\\\.]{{3,64}}$"'
    return None if request.inputs.get("permissions") else "At least one permission must be specified"


RESOURCES: Mapping[str, Rules] = {
    _POOL: Rules(
        name_property="workloadIdentityPoolId",
        unique_within=("project",),
        identify=lambda request: _pool_path(request, project(request)),
        immutable=frozenset({"project"}),
        computed={"name": lambda request: _pool_path(request, PROJECT_NUMBER), "state": lambda _: "ACTIVE"},
        taken="Error creating WorkloadIdentityPool: googleapi: Error 409: Requested entity already exists, alreadyExists",
        refuse_create=(_checked_id("workload_identity_pool_id"),),
    ),
    _PROVIDER: Rules(
        name_property="workloadIdentityPoolProviderId",
        unique_within=("project", "workloadIdentityPoolId"),
        identify=lambda request: _provider_path(request, project(request)),
        immutable=frozenset({"project", "workloadIdentityPoolId"}),
        computed={
            "name": lambda request: _provider_path(request, PROJECT_NUMBER),
            "state": lambda _: "ACTIVE",
        },
        taken="Error creating WorkloadIdentityPoolProvider: googleapi: Error 409: Requested entity already exists, alreadyExists",
        refuse_create=(
            _checked_id("workload_identity_pool_provider_id"),
            needs_at(
                _POOL,
                lambda request: _pool_path(request, project(request)),
                "Error creating WorkloadIdentityPoolProvider: googleapi: Error 404: Requested entity was not found., notFound",
            ),
        ),
    ),
    CUSTOM_ROLE: Rules(
        name_property="roleId",
        unique_within=("project",),
        identify=_role_name,
        immutable=frozenset({"project"}),
        computed={"name": _role_name, "deleted": lambda _: False},
        taken="Custom project role {name} already exists and must be imported",
        refuse_create=(_wrong_role,),
        refuse_update=(_wrong_role,),
    ),
}
