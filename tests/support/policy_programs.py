"""Programs that satisfy every policy: the repository's own stacks as the engine would show them, and ways to break one."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from holdfast.infra.local.stack import compose
from holdfast.infra.program import load_platform
from holdfast.policies.pack import RULES
from holdfast.policies.resources import StackResource
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.doc_pages import ROOT
from tests.support.fakes.pulumi_engine import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.infra.local.config.stack import LocalPlatform
    from holdfast.policies.resources import Value
    from tests.support.fakes.pulumi_engine import Recording


@cache
def local_stack(name: str) -> Recording:
    """The stack of that name."""
    platform = cast("LocalPlatform", load_platform(ROOT / f"stacks/Pulumi.{name}.yaml"))
    return record(lambda: compose(platform, name))


Props = dict[str, "Value"]
Program = list[StackResource]

_STACKS: Final[Mapping[str, Callable[[str], Recording]]] = {
    "local": local_stack,
    "aws-dev": aws_stacks.stack,
    "aws-prod": aws_stacks.stack,
    "azure-dev": azure_stacks.stack,
    "azure-prod": azure_stacks.stack,
    "gcp-dev": gcp_stacks.stack,
    "gcp-prod": gcp_stacks.stack,
}
STACKS: Final = tuple(_STACKS)


@cache
def recorded(name: str) -> tuple[StackResource, ...]:
    """One of the repository's stacks, as a fixed tuple."""
    return as_resources(_STACKS[name](name), name)


def as_resources(recording: Recording, name: str) -> tuple[StackResource, ...]:
    """What a program registered, as the engine would show it of the stack of that name."""
    # A stack of the mocks is called `local`, whatever it is called in its file.
    return tuple(
        StackResource(
            type=each.type,
            urn=each.urn.replace("urn:pulumi:local::", f"urn:pulumi:{name}::", 1),
            props=cast("Props", each.inputs),
            is_protected=each.protect,
            refers_to={
                key: tuple(urn.replace("urn:pulumi:local::", f"urn:pulumi:{name}::", 1) for urn in urns)
                for key, urns in each.made_of.items()
            },
        )
        for each in recording
    )


def program(name: str) -> Program:
    """One of the repository's stacks, to be changed at will."""
    return [deepcopy(each) for each in recorded(name)]


def reported(resources: Sequence[StackResource], **settings: object) -> dict[str, list[str]]:
    """What each rule of the pack says, those that say nothing left out. `settings` are those of every rule that has them."""
    found: dict[str, list[str]] = {}
    for rule in RULES:
        own = {name: settings.get(name, setting.default) for name, setting in rule.settings.items()}
        messages = [each.message for each in rule.find(resources, cast("Mapping[str, str]", own))]
        if messages:
            found[rule.name] = messages
    return found


def of(resources: Sequence[StackResource], ending: str, name: str = "") -> StackResource:
    """The first resource whose type ends so, of that logical name if one is given."""
    return next(each for each in resources if each.type.endswith(ending) and name in {"", each.logical_name})


def every(resources: Sequence[StackResource], ending: str) -> list[StackResource]:
    """All resources whose type ends so."""
    return [each for each in resources if each.type.endswith(ending)]


def put(resource: StackResource, value: Value, *path: str | int) -> None:
    """Set what lies at `path`, through mappings and lists."""
    at = cast("Props", resource.props)
    *steps, last = path
    for step in steps:
        at = cast("Props", at[cast("str", step)])
    at[cast("str", last)] = value


def without(resources: Program, *gone: StackResource) -> None:
    """Take resources out of a program."""
    urns = {each.urn for each in gone}
    resources[:] = [each for each in resources if each.urn not in urns]
