"""Serves the pack to Pulumi's engine: reads each run's resources once, and applies every rule to them.

Pulumi's policy SDK reads all resources again for each stack policy: with 5,000 resources and nineteen rules that was most
of the pack's time. The alternative that it offers, a single policy, would have one name, one level and one set of
settings. So its servicer is used as it is, except for the calls that receive resources. ADR 0025.
"""

# ruff: noqa: N802, ARG002, SLF001 - names and parameters of the methods are the protocol's; what serves a pack is private

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, Policy, PolicyPack, proxy
from pulumi_policy import policy as sdk
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY

from pack import RulePolicy, misspelled, settings
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.fields import fields_of
from pulumi_holdfast.program.resources import Stack, StackResource, Value
from rule import STOP_ON_FAULT, Asked, Finding
from rules import verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import grpc
    from google.protobuf import empty_pb2
    from google.protobuf.struct_pb2 import Struct
    from google.protobuf.struct_pb2 import Value as WireValue
    from pulumi.runtime.proto.analyzer_pb2 import AnalyzerResource

_NAME: Final = "holdfast"
_UNKNOWNS: Final = frozenset(
    {
        proxy.UNKNOWN_BOOLEAN_VALUE,
        proxy.UNKNOWN_NUMBER_VALUE,
        proxy.UNKNOWN_STRING_VALUE,
        proxy.UNKNOWN_ARRAY_VALUE,
        proxy.UNKNOWN_ASSET_VALUE,
        proxy.UNKNOWN_ARCHIVE_VALUE,
        proxy.UNKNOWN_OBJECT_VALUE,
    }
)
# No resource nests this deep; the limit protects the rules, which recurse into values.
_MAX_DEPTH: Final = 64


class PackServicer(sdk._PolicyAnalyzerServicer):  # pyright: ignore[reportPrivateUsage] - what the SDK serves a pack by
    """Answers the engine for a pack of rules; only the calls that receive resources differ from the SDK's.

    While there is no cluster yet, the engine does not ask the provider what an object will be, and at the end of the run
    it sends the object without properties. The inputs of each resource are therefore kept as it is registered, and
    replace the properties that are missing.
    """

    def __init__(self, name: str, version: str, policies: list[Policy], *others: object) -> None:
        super().__init__(name, version, policies, *others)  # pyright: ignore[reportArgumentType] - passed on unchanged
        self._policies = [each for each in policies if isinstance(each, RulePolicy)]
        self._inputs: dict[str, Struct] = {}
        self._misspelled: tuple[Finding, ...] = ()
        self._version = version

    def Configure(
        self, request: analyzer_pb2.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Receive the levels and settings of a run."""
        given = {name: {*each.properties.fields} for name, each in request.policyConfig.items()}
        self._misspelled = tuple(misspelled(given))
        return super().Configure(request, context)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK

    def Analyze(
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Keep the inputs of a resource, unparsed: they are read only if properties are missing."""
        self._inputs[request.urn] = request.properties
        return analyzer_pb2.AnalyzeResponse()

    def AnalyzeStack(
        self, request: analyzer_pb2.AnalyzeStackRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Apply every rule that is not disabled to the whole stack."""
        response = analyzer_pb2.AnalyzeResponse()
        levels = {each: self._get_enforcement_level(each) for each in self._policies}
        enabled = [each for each, level in levels.items() if level is not EnforcementLevel.DISABLED]
        of_pack = self._get_policy_config(verdicts.RULE.name)
        asked = [
            Asked(
                rule=each.rule,
                settings=settings(each.rule, self._get_policy_config(each.name), of_pack),
                # A rule about a whole stack cannot remediate: at this level it stops the run.
                stops=levels[each] is not EnforcementLevel.ADVISORY,
            )
            for each in enabled
        ]
        stack = Stack(stack_resources(request.resources, self._inputs))
        found = evaluate(stack, asked, misspelled=self._misspelled)
        for policy, each in zip(enabled, asked, strict=True):
            for finding in found.get(policy.name, ()):
                self._report(response, policy, stops=each.stops and finding.proven)(
                    finding.message, finding.urn
                )
        return response

    def _report(
        self, response: analyzer_pb2.AnalyzeResponse, policy: RulePolicy, *, stops: bool
    ) -> Callable[[str, str], None]:
        shown = EnforcementLevel.MANDATORY if stops else EnforcementLevel.ADVISORY
        return self._create_report_violation(
            response, policy.name, policy.description, shown, policy.severity
        )


def evaluate(
    stack: Stack, asked: Sequence[Asked], misspelled: Sequence[Finding] = ()
) -> Mapping[str, Sequence[Finding]]:
    """Return the findings of each rule, by its name, without those that another rule reports at the same level.

    The rule on verdicts also reports `misspelled` configuration.
    """
    found: dict[str, list[Finding]] = {verdicts.RULE.name: list(misspelled)}
    for each in asked:
        found.setdefault(each.rule.name, []).extend(_apply(each, stack))
    stopping = {each.rule.name: each.stops for each in asked}
    reported = {(name, finding.urn) for name, listed in found.items() for finding in listed}
    return {
        name: [
            finding
            # A resource that makes several pools has each finding of them once.
            for finding in dict.fromkeys(listed)
            if (finding.repeats, finding.urn) not in reported
            or (stopping[name] and finding.proven and not stopping[finding.repeats])
        ]
        for name, listed in found.items()
    }


def _apply(asked: Asked, stack: Stack) -> Sequence[Finding]:
    """Return the findings of a rule; of one that raises, that it proves nothing. The other rules are applied."""
    try:
        return asked.rule.find(stack, asked.settings)
    except Exception as error:  # noqa: BLE001 - whatever a program registers
        at = traceback.extract_tb(error.__traceback__)[-1]
        name = asked.rule.name
        message = (
            f"rule {name!r} failed, so it proves nothing: {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno}). "
            "This is a bug in the policy pack: please report it. To let the run pass, set "
            f"`{STOP_ON_FAULT}: false` of {verdicts.RULE.name!r}."
        )
        return [Finding(urn="", message=message, proven=asked.settings.get(STOP_ON_FAULT) is not False)]


def stack_resources(
    shown: Iterable[AnalyzerResource], inputs: Mapping[str, Struct]
) -> Iterable[StackResource]:
    """Yield the engine's resources; `inputs`, by URN, replace properties that are missing.

    The SDK raises when code touches a property that a preview does not know, which turns the whole policy into advice,
    real violations beside it included. Here unknown values become UNKNOWN, and each rule decides what depends on them.
    """
    for resource in shown:
        props = known_props(resource.properties)
        before, declared = inputs.get(resource.urn), None
        if before is not None:
            declared = known_props(before) if fields_of(resource.type) else None
            missing = {key: value(given) for key, given in before.fields.items() if key not in props}
            props = {**missing, **props}
        yield StackResource(
            type=resource.type,
            urn=resource.urn,
            props=props,
            is_protected=resource.options.protect,
            parent=resource.parent,
            provider=resource.provider.urn,
            refers_to={name: tuple(made_of.urns) for name, made_of in resource.propertyDependencies.items()},
            inputs=declared,
        )


def known_props(properties: Struct) -> dict[str, Value]:
    """Return a resource's properties with unknown values explicit."""
    return {key: value(given) for key, given in properties.fields.items()}


def value(given: WireValue, depth: int = 0) -> Value:
    """Return a property value with unknown values explicit at every depth."""
    match given.WhichOneof("kind"):
        case "string_value":
            return UNKNOWN if given.string_value in _UNKNOWNS else given.string_value
        case "struct_value":
            return _of_object(given.struct_value, depth + 1)
        case "list_value":
            return [value(each, depth + 1) for each in given.list_value.values] if depth < _MAX_DEPTH else []
        case "number_value":
            return given.number_value
        case "bool_value":
            return given.bool_value
        case _:
            return None


def _of_object(given: Struct, depth: int) -> Value:
    fields = given.fields
    if SPECIAL_SIG_KEY not in fields:
        return {key: value(each, depth) for key, each in fields.items()} if depth < _MAX_DEPTH else {}
    if fields[SPECIAL_SIG_KEY].string_value == SPECIAL_SECRET_SIG:
        return value(fields["value"], depth)
    # Assets and archives: no rule reads their content.
    return "an asset"


def serve(policies: Sequence[Policy]) -> None:
    """Serve the pack to the engine. Does not return: the SDK's constructor is the server."""
    sdk._PolicyAnalyzerServicer = PackServicer  # pyright: ignore[reportPrivateUsage] - the SDK has no other hook
    PolicyPack(
        name=_NAME,
        policies=list(policies),
        # A rule without a level stops the run rather than be overlooked.
        enforcement_level=EnforcementLevel.MANDATORY,
    )
