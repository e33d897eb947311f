"""The resource types of a Terraform provider, and a resource of Pulumi in its words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi_holdfast.rehearsal.engine.values import Unknown

#: The types that the provider names otherwise than the SDK does.
_RENAMED: Final = {
    "aws:ec2/capacityReservation:CapacityReservation": "aws_ec2_capacity_reservation",
    "gcp:projects/iAMMember:IAMMember": "google_project_iam_member",
    "gcp:serviceaccount/account:Account": "google_service_account",
    "gcp:serviceaccount/iAMMember:IAMMember": "google_service_account_iam_member",
}
_PREFIX: Final = {"aws": "aws", "gcp": "google"}
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: The number of a resource in what `terraform` says of it.
ADDRESS: Final = re.compile(r'(?:\.|")r(\d+)\b')
_UNKNOWN: Final = "${terraform_data.pending.id}"
_LISTS: Final = ("list", "set")


def terraform_type(token: str) -> str:
    """Return the type of the Terraform provider for a token of Pulumi."""
    if token in _RENAMED:
        return _RENAMED[token]
    cloud, module, name = token.split(":")
    group = module.partition("/")[0]
    snake = _WORD.sub("_", name).lower()
    # Most of EC2 has no prefix, and IAM's resources of other services begin with a service's name.
    parts = [_PREFIX[cloud], *([] if group == "ec2" else [group]), snake]
    return "_".join(parts).replace("i_a_m", "iam")


@dataclass(frozen=True, kw_only=True)
class Block:
    """The attributes of a block with their types, and its blocks; `single` is a block that is no list."""

    attributes: Mapping[str, object]
    blocks: Mapping[str, Block]
    single: bool = False


class ProviderSchema:
    """The types of a provider, as `terraform providers schema -json` prints them."""

    def __init__(self, resources: Mapping[str, Mapping[str, object]]) -> None:
        self._resources = resources
        self._blocks: dict[str, Block] = {}

    def version(self, token: str) -> int:
        """Return the version of a type's state."""
        return cast("int", self._resources[terraform_type(token)]["version"])

    def block(self, token: str) -> Block:
        """Return the schema of a type. Raises LookupError where the provider has no such type."""
        name = terraform_type(token)
        if name not in self._resources:
            raise LookupError(f"the provider has no type {name}")
        if name not in self._blocks:
            self._blocks[name] = _block(self._resources[name]["block"], single=False)
        return self._blocks[name]

    def body(self, token: str, inputs: Mapping[str, object]) -> dict[str, object]:
        """Return the inputs in the words of the provider. Raises LookupError for a field that it has not."""
        return _body(inputs, self.block(token), "")


def _block(given: object, *, single: bool) -> Block:
    one = cast("Mapping[str, Mapping[str, Mapping[str, object]]]", given)
    return Block(
        attributes={name: _type(each) for name, each in one.get("attributes", {}).items()},
        blocks={
            name: _block(each["block"], single=each["nesting_mode"] in ("single", "group"))
            for name, each in one.get("block_types", {}).items()
        },
        single=single,
    )


def _type(attribute: Mapping[str, object]) -> object:
    """Return the type of an attribute; a nested attribute is an object."""
    if "type" in attribute:
        return attribute["type"]
    nested = cast("Mapping[str, object]", attribute["nested_type"])
    members = cast("Mapping[str, Mapping[str, object]]", nested["attributes"])
    inner = ["object", {name: _type(one) for name, one in members.items()}]
    return inner if nested["nesting_mode"] == "single" else [nested["nesting_mode"], inner]


def _body(values: Mapping[str, object], block: Block, path: str) -> dict[str, object]:
    made: dict[str, object] = {}
    for name, value in values.items():
        if value is None:
            continue
        own = _named(name, (*block.attributes, *block.blocks))
        if own is None:
            raise LookupError(f"the provider has no field {path}{name}")
        if own in block.attributes:
            made[own] = _value(value, block.attributes[own], f"{path}{name}.")
        elif not isinstance(value, Unknown):
            items = cast("Sequence[object]", value if isinstance(value, list) else [value])
            inner = block.blocks[own]
            made[own] = [_body(cast("Mapping[str, object]", one), inner, f"{path}{name}.") for one in items]
    return made


def _value(value: object, kind: object, path: str) -> object:
    if isinstance(kind, str):
        return _scalar(value)
    outer, inner = cast("tuple[str, object]", kind)
    if isinstance(value, Unknown):
        return f"${{[{_UNKNOWN[2:-1]}]}}" if outer in _LISTS and isinstance(inner, str) else None
    if outer in _LISTS:
        items = cast("Sequence[object]", value if isinstance(value, list) else [value])
        return [_value(one, inner, path) for one in items]
    given = cast("Mapping[str, object]", value)
    if outer == "map":
        return {key: _value(one, inner, path) for key, one in given.items()}
    members = cast("Mapping[str, object]", inner)
    made = cast("dict[str, object]", dict.fromkeys(members))
    for name, one in given.items():
        own = _named(name, members)
        if own is None:
            raise LookupError(f"the provider has no field {path}{name}")
        made[own] = None if one is None else _value(one, members[own], f"{path}{name}.")
    return made


def _scalar(value: object) -> object:
    if isinstance(value, Unknown):
        return _UNKNOWN
    if isinstance(value, dict | list):
        value = json.dumps(value)
    return value.replace("${", "$${").replace("%{", "%%{") if isinstance(value, str) else value


def _named(name: str, known: Iterable[str]) -> str | None:
    """Return the name of a field in the provider; the SDK has the plural of lists."""
    names = list(known)
    snake = _WORD.sub("_", name).lower()
    if snake in names:
        return snake
    return next((one for one in names if _folded(one) == _folded(name)), None)


def _folded(name: str) -> str:
    text = name.replace("_", "").lower()
    return f"{text[:-3]}y" if text.endswith("ies") else text.removesuffix("s")
