"""IAM: roles, policies, service-linked roles, and the permissions of the caller.

To deny the caller a service-linked role, a test adds an `aws:iam/userPolicyAttachment:UserPolicyAttachment` of the user `rehearsal`
and the policy READ_ONLY to the cloud's state.
"""

import json
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.api_server import CALLER
from pulumi_holdfast.rehearsal.clouds.aws.cluster import IDENTITY, role_of
from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION, region
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Call,
    Compute,
    Deletion,
    Invoke,
    Refuse,
    RefuseDeletion,
    ResourceRequest,
    Rules,
)
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

ATTACHMENT: Final = "aws:iam/userPolicyAttachment:UserPolicyAttachment"
READ_ONLY: Final = f"arn:{PARTITION}:iam::aws:policy/ReadOnlyAccess"
_USER: Final = CALLER.rpartition("/")[2]


def _writing(action: str) -> Refuse:
    """Refuse an action (`iam:CreateServiceLinkedRole`) to a read-only caller."""
    return lambda request: _denied(action, role_arn(request)) if _only_reads(request.inventory) else None


def _removing(action: str) -> RefuseDeletion:
    """Refuse a delete action to a read-only caller."""
    return lambda deletion: _denied(action, deletion.target.id) if _only_reads(deletion.inventory) else None


def _only_reads(inventory: Inventory) -> bool:
    return any(
        one.inputs.get("user") == _USER and one.inputs.get("policyArn") == READ_ONLY
        for one in inventory.of_type(ATTACHMENT)
    )


def _denied(action: str, resource: str) -> str:
    return (
        f"AccessDenied: User: {CALLER} is not authorized to perform: {action} on resource: {resource} "
        f"because no identity-based policy allows the {action} action"
    )


TYPE: Final = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
_SPOT: Final = "spot.amazonaws.com"
# AWS chooses the names without a rule; only this one is known.
_ROLES: Final[Mapping[str, str]] = {_SPOT: "AWSServiceRoleForEC2Spot"}


def role_arn(request: ResourceRequest) -> str:
    """Return a service-linked role's ARN, which is also its id."""
    return f"arn:{PARTITION}:iam::{ACCOUNT}:role{_service_path(request)}{_name(request)}"


def _service(request: ResourceRequest) -> str:
    return str(request.inputs.get("awsServiceName"))


def _service_path(request: ResourceRequest) -> str:
    return f"/aws-service-role/{_service(request)}/"


def _name(request: ResourceRequest) -> str:
    return _ROLES.get(_service(request), "")


def _unknown_service(request: ResourceRequest) -> str | None:
    if _service(request) in _ROLES:
        return None
    return f"the service-linked role of {_service(request)} is not simulated; use one of: {', '.join(_ROLES)}"


RULES: Final = Rules(
    identify=role_arn,
    computed={"arn": role_arn, "name": _name, "path": _service_path},
    taken=(
        f"InvalidInput: Service role name {_ROLES[_SPOT]} has been taken in this account, "
        "please try a different suffix."
    ),
    refuse_create=(_unknown_service, _writing("iam:CreateServiceLinkedRole")),
    refuse_update=(_writing("iam:UpdateRole"),),
    refuse_delete=(_removing("iam:DeleteServiceLinkedRole"),),
)


_ATTACHMENT: Final = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_INLINE: Final = "aws:iam/rolePolicy:RolePolicy"
_POLICY: Final = "aws:iam/policy:Policy"
_PROFILE: Final = "aws:iam/instanceProfile:InstanceProfile"
_ROLE: Final = "aws:iam/role:Role"


def _arn(kind: str) -> Compute:
    """Return the function that computes the ARN of an object with a name and a path."""

    def compute(request: ResourceRequest) -> str:
        return f"arn:{PARTITION}:iam::{ACCOUNT}:{kind}{request.inputs.get('path') or '/'}{request.name}"

    return compute


def _path(request: ResourceRequest) -> JsonValue:
    return request.inputs.get("path") or "/"


def _identify_policy(request: ResourceRequest) -> str:
    return str(_arn("policy")(request))


def _roles(inventory: Inventory) -> list[CloudObject]:
    return [*inventory.of_type(_ROLE), *inventory.of_type(TYPE)]


def _role_named(inventory: Inventory, name: JsonValue) -> CloudObject | None:
    return next((one for one in _roles(inventory) if one.outputs.get("name") == name), None)


def _no_role(request: ResourceRequest) -> str | None:
    name = request.inputs.get("role")
    if name is None or _role_named(request.inventory, name):
        return None
    return f"NoSuchEntity: The role with name {name} cannot be found."


def _no_policy(request: ResourceRequest) -> str | None:
    """AWS managed policies (`arn:aws:iam::aws:policy/…`) always exist."""
    arn = str(request.inputs.get("policyArn"))
    if f":{ACCOUNT}:" not in arn or request.inventory.find(_POLICY, arn):
        return None
    return f"NoSuchEntity: Policy {arn} does not exist or is not attachable."


def _in_use(deletion: Deletion) -> str | None:
    role, inventory = deletion.target, deletion.inventory
    if role.inputs.get("forceDetachPolicies") is True:
        return None
    name = role.outputs.get("name")
    if any(one.inputs.get("role") == name for one in inventory.of_type(_ATTACHMENT)):
        return "DeleteConflict: Cannot delete entity, must detach all policies first."
    if any(one.inputs.get("role") == name for one in inventory.of_type(_INLINE)):
        return "DeleteConflict: Cannot delete entity, must delete policies first."
    return None


def _attached(deletion: Deletion) -> str | None:
    attachments = deletion.inventory.of_type(_ATTACHMENT)
    if any(one.inputs.get("policyArn") == deletion.target.id for one in attachments):
        return "DeleteConflict: Cannot delete a policy attached to entities."
    return None


def _get_roles(call: Call) -> Json:
    prefix = str(call.arguments.get("pathPrefix") or "/")
    pattern = str(call.arguments.get("nameRegex") or "")
    found = [
        one
        for one in _roles(call.inventory)
        if str(one.outputs.get("path") or "/").startswith(prefix)
        and re.search(pattern, str(one.outputs.get("name")))
    ]
    return {
        **call.arguments,
        "id": region(call.arguments, call.configuration),
        "arns": [one.outputs.get("arn") for one in found],
        "names": [one.outputs.get("name") for one in found],
    }


def _get_role(call: Call) -> Json:
    name = str(call.arguments.get("name"))
    found = _role_named(call.inventory, name)
    if found is None:
        raise RehearsalError(f"reading IAM Role ({name}): couldn't find resource")
    defaults: Json = {"description": "", "permissionsBoundary": "", "roleLastUseds": [], "tags": {}}
    return {**defaults, **found.outputs, "id": name}


RESOURCES: Mapping[str, Rules] = {
    _ATTACHMENT: Rules(refuse_create=(_no_role, _no_policy)),
    _INLINE: Rules(longest_name=128, overwrites=True, refuse_create=(_no_role,)),
    _POLICY: Rules(
        longest_name=128,
        identify=_identify_policy,
        computed={"arn": _arn("policy"), "path": _path},
        taken="EntityAlreadyExists: A policy called {name} already exists. Duplicate names are not allowed.",
        refuse_delete=(_attached,),
    ),
    _PROFILE: Rules(
        longest_name=128,
        computed={"arn": _arn("instance-profile"), "path": _path},
        taken="EntityAlreadyExists: Instance Profile {name} already exists.",
        refuse_create=(_no_role,),
    ),
    _ROLE: Rules(
        longest_name=64,
        computed={"arn": _arn("role"), "path": _path},
        taken="EntityAlreadyExists: Role with name {name} already exists.",
        refuse_delete=(_in_use,),
    ),
    TYPE: RULES,
}

INVOKES: Mapping[str, Invoke] = {
    "aws:iam/getRole:getRole": _get_role,
    "aws:iam/getRoles:getRoles": _get_roles,
}


def refused_actions(
    inventory: Inventory, namespace: str, service_account: str, resource: str, actions: Iterable[str]
) -> list[str]:
    """Return which actions on a resource the inline policies of a service account's role do not allow, by its ARN.

    Conditions are not evaluated.
    """
    wanted = (namespace, service_account)
    roles = {
        str(role.outputs.get("name"))
        for one in inventory.of_type(IDENTITY)
        if (one.inputs.get("namespace"), one.inputs.get("serviceAccount")) == wanted
        and (role := role_of(one.inputs.get("roleArn"), inventory)) is not None
    }
    statements = [
        mapping(statement)
        for one in inventory.of_type(_INLINE)
        if str(one.inputs.get("role")) in roles
        for statement in sequence(mapping(json.loads(str(one.inputs["policy"]))).get("Statement"))
    ]
    return [action for action in actions if not any(_allows(each, action, resource) for each in statements)]


def _allows(statement: Json, action: str, resource: str) -> bool:
    return statement.get("Effect") == "Allow" and all(
        any(fnmatchcase(wanted, pattern) for pattern in _texts(statement.get(field)))
        for field, wanted in (("Action", action), ("Resource", resource))
    )


def _texts(value: JsonValue) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in sequence(value)]
