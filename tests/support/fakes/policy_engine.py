"""The pack as the engine calls it: requests with resources and settings, and the violations in its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import grpc
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from pack import policies
from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.program.resources import StackResource
from server import PackServicer

#: The pack does not use the context of a call.
NO_CONTEXT = cast("grpc.ServicerContext", None)


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One reported violation."""

    rule: str
    level: analyzer_pb2.EnforcementLevel.ValueType
    urn: str
    message: str


@dataclass(frozen=True)
class Pack:
    """A newly started pack."""

    servicer: PackServicer = field(
        default_factory=lambda: PackServicer("holdfast", "0.1.0", policies(), EnforcementLevel.MANDATORY)
    )

    def configure(
        self,
        levels: Mapping[str, analyzer_pb2.EnforcementLevel.ValueType],
        settings: Json | None = None,
        *,
        of: str = "",
        also: Sequence[str] = (),
    ) -> None:
        """Configure it as the engine does: a level for every policy, settings for one, and other names of the file."""
        request = analyzer_pb2.ConfigureAnalyzerRequest()
        for each in policies():
            default = (each.enforcement_level or EnforcementLevel.MANDATORY).name
            given = request.policyConfig[each.name]
            given.enforcementLevel = levels.get(each.name, analyzer_pb2.EnforcementLevel.Value(default))
            if each.name == of:
                json_format.ParseDict(dict(settings or {}), given.properties)
        for name in also:
            request.policyConfig[name].enforcementLevel = analyzer_pb2.MANDATORY
        self.servicer.Configure(request, NO_CONTEXT)

    def asked(self, resources: Sequence[StackResource]) -> None:
        """Send each resource as the program registers it."""
        for each in resources:
            request = analyzer_pb2.AnalyzeRequest(type=each.type, urn=each.urn, name=each.logical_name)
            json_format.ParseDict(on_the_wire(each.props), request.properties)
            self.servicer.Analyze(request, NO_CONTEXT)

    def violations(self, resources: Sequence[StackResource]) -> list[Violation]:
        """Send all resources at the end of a run, and return the reported violations."""
        answer = self.servicer.AnalyzeStack(stack_request(resources), NO_CONTEXT)
        return [
            Violation(
                rule=each.policyName,
                level=each.enforcementLevel,
                urn=each.urn,
                message=each.message.partition("\n")[2],
            )
            for each in answer.diagnostics
        ]


def stack_request(resources: Sequence[StackResource]) -> analyzer_pb2.AnalyzeStackRequest:
    """The engine's request at the end of a run."""
    request = analyzer_pb2.AnalyzeStackRequest()
    for each in resources:
        sent = request.resources.add(type=each.type, urn=each.urn, name=each.logical_name)
        sent.parent = each.parent
        sent.options.protect = each.is_protected
        json_format.ParseDict(on_the_wire(each.props), sent.properties)
        for key, urns in each.refers_to.items():
            sent.propertyDependencies[key].urns.extend(urns)
    return request


def on_the_wire(value: object) -> dict[str, object]:
    """Properties as the engine sends them, with Pulumi's marker for unknown values."""
    return cast("dict[str, object]", _sent(value))


def _sent(value: object) -> object:
    if value is UNKNOWN:
        return UNKNOWN_STRING_VALUE
    if isinstance(value, dict):
        return {key: _sent(each) for key, each in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_sent(each) for each in cast("Sequence[object]", value)]
    return value
