"""IAM: roles, policies and service-linked roles; and the SQS queues and EventBridge rules of spot interruptions.

Permissions are not evaluated.
"""

import re
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION, place, region
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Compute, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import find, kept_by, needs
from pulumi_holdfast.rehearsal.errors import RehearsalError

LINKED: Final = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
_ROLE: Final = "aws:iam/role:Role"
_ATTACHMENT: Final = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_INLINE: Final = "aws:iam/rolePolicy:RolePolicy"
_POLICY: Final = "aws:iam/policy:Policy"
_QUEUE: Final = "aws:sqs/queue:Queue"
_RULE: Final = "aws:cloudwatch/eventRule:EventRule"
_TARGET: Final = "aws:cloudwatch/eventTarget:EventTarget"

_SPOT: Final = "spot.amazonaws.com"
# AWS chooses the names without a rule; only this one is known.
_NAMES: Final[Mapping[str, str]] = {_SPOT: "AWSServiceRoleForEC2Spot"}


def _service(request: ResourceRequest) -> str:
    return str(request.inputs.get("awsServiceName"))


def _service_path(request: ResourceRequest) -> str:
    return f"/aws-service-role/{_service(request)}/"


def _linked_name(request: ResourceRequest) -> str:
    return _NAMES.get(_service(request), "")


def _linked_arn(request: ResourceRequest) -> str:
    """The ARN of a service-linked role, which is also its id."""
    return f"arn:{PARTITION}:iam::{ACCOUNT}:role{_service_path(request)}{_linked_name(request)}"


def _unknown_service(request: ResourceRequest) -> str | None:
    if _service(request) in _NAMES:
        return None
    return f"the service-linked role of {_service(request)} is not simulated; use one of: {', '.join(_NAMES)}"


def _arn(kind: str) -> Compute:
    """Return the function that computes the ARN of an object with a name and a path."""
    return lambda request: f"arn:{PARTITION}:iam::{ACCOUNT}:{kind}{_path(request)}{request.name}"


def _path(request: ResourceRequest) -> JsonValue:
    return request.inputs.get("path") or "/"


def _queue_url(request: ResourceRequest) -> str:
    return f"https://sqs.{place(request)}.amazonaws.com/{ACCOUNT}/{request.name}"


def _target_id(request: ResourceRequest) -> str:
    return str(request.inputs.get("targetId") or f"terraform-{request.digest[:26]}")


_needs_role: Final = needs(
    "role", (_ROLE, LINKED), "NoSuchEntity: The role with name {value} cannot be found.", by="name"
)
_needs_policy: Final = needs(
    "policyArn",
    _POLICY,
    "NoSuchEntity: Policy {value} does not exist or is not attachable.",
    # AWS's own policies (`arn:aws:iam::aws:policy/…`) always exist.
    only=lambda _, arn: f":{ACCOUNT}:" in arn,
)
_needs_queue: Final = needs(
    "queueUrl",
    _QUEUE,
    "AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist for this wsdl version.",
)
_needs_rule: Final = needs(
    "rule", _RULE, "ResourceNotFoundException: Rule {value} does not exist on EventBus default.", by="name"
)

RESOURCES: Mapping[str, Rules] = {
    _ATTACHMENT: Rules(refuse_create=(_needs_role, _needs_policy)),
    _INLINE: Rules(longest_name=128, overwrites=True, refuse_create=(_needs_role,)),
    _POLICY: Rules(
        longest_name=128,
        identify=lambda request: str(_arn("policy")(request)),
        computed={"arn": _arn("policy"), "path": _path},
        taken="EntityAlreadyExists: A policy called {name} already exists. Duplicate names are not allowed.",
        refuse_delete=(
            kept_by(
                "DeleteConflict: Cannot delete a policy attached to entities.", (_ATTACHMENT, "policyArn")
            ),
        ),
    ),
    "aws:iam/instanceProfile:InstanceProfile": Rules(
        longest_name=128,
        computed={"arn": _arn("instance-profile"), "path": _path},
        taken="EntityAlreadyExists: Instance Profile {name} already exists.",
        refuse_create=(_needs_role,),
    ),
    _ROLE: Rules(
        longest_name=64,
        computed={"arn": _arn("role"), "path": _path},
        taken="EntityAlreadyExists: Role with name {name} already exists.",
        refuse_delete=tuple(
            kept_by(
                f"DeleteConflict: Cannot delete entity, must {verb} policies first.",
                (token, "role"),
                by="name",
                unless="forceDetachPolicies",
            )
            for token, verb in ((_ATTACHMENT, "detach all"), (_INLINE, "delete"))
        ),
    ),
    LINKED: Rules(
        identify=_linked_arn,
        computed={"arn": _linked_arn, "name": _linked_name, "path": _service_path},
        taken=f"InvalidInput: Service role name {_NAMES[_SPOT]} has been taken in this account, please try a different suffix.",
        refuse_create=(_unknown_service,),
    ),
    _QUEUE: Rules(longest_name=80, identify=_queue_url, computed={"url": _queue_url}),
    "aws:sqs/queuePolicy:QueuePolicy": Rules(
        identify=lambda request: str(request.inputs.get("queueUrl")),
        overwrites=True,
        refuse_create=(_needs_queue,),
    ),
    _RULE: Rules(
        longest_name=64,
        computed={
            "arn": lambda request: f"arn:{PARTITION}:events:{place(request)}:{ACCOUNT}:rule/{request.name}"
        },
        overwrites=True,
        refuse_delete=(
            kept_by(
                "ValidationException: Rule can't be deleted since it has targets.",
                (_TARGET, "rule"),
                by="name",
            ),
        ),
    ),
    _TARGET: Rules(
        identify=lambda request: f"{request.inputs.get('rule')}-{_target_id(request)}",
        # The ARN of a target is that of its destination.
        computed={"arn": lambda request: request.inputs.get("arn"), "targetId": _target_id},
        overwrites=True,
        refuse_create=(_needs_rule,),
    ),
}


def _get_roles(call: Call) -> Json:
    prefix = str(call.arguments.get("pathPrefix") or "/")
    pattern = str(call.arguments.get("nameRegex") or "")
    found = [
        one.outputs
        for one in (*call.inventory.of_type(_ROLE), *call.inventory.of_type(LINKED))
        if str(one.outputs.get("path") or "/").startswith(prefix)
        and re.search(pattern, str(one.outputs.get("name")))
    ]
    return {
        **call.arguments,
        "id": region(call.arguments, call.configuration),
        "arns": [one.get("arn") for one in found],
        "names": [one.get("name") for one in found],
    }


def _get_role(call: Call) -> Json:
    name = str(call.arguments.get("name"))
    found = find(call.inventory, (_ROLE, LINKED), name, by="name")
    if found is None:
        raise RehearsalError(f"reading IAM Role ({name}): couldn't find resource")
    defaults: Json = {"description": "", "permissionsBoundary": "", "roleLastUseds": [], "tags": {}}
    return {**defaults, **found.outputs, "id": name}


INVOKES: Mapping[str, Invoke] = {
    "aws:iam/getRole:getRole": _get_role,
    "aws:iam/getRoles:getRoles": _get_roles,
}
