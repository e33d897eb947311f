"""The pack as the engine calls it: each run's resources are read once, for all rules.

Pulumi's policy SDK reads all resources again for each policy of a stack: with 5,000 resources and nineteen rules that was
most of what the pack cost. The way out that it offers, a single policy for everything, would have one name, one level and
one set of settings. So its servicer is taken as it is, but for the calls that show resources. ADR 0025.
"""

# ruff: noqa: N802, ARG002, SLF001 - names and parameters of the methods are the protocol's; what serves a pack is private

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, Policy, PolicyPack
from pulumi_policy import policy as sdk

from holdfast.policies.findings import StackResource
from holdfast.policies.judging import judge
from holdfast.policies.mending import Remediation
from holdfast.policies.pack import RulePolicy, misspelt, settings
from holdfast.policies.run import Run
from holdfast.policies.wire import known_props

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import grpc
    from google.protobuf import empty_pb2

    from holdfast.policies.findings import Finding

_NAME = "holdfast"


class PackServicer(sdk._PolicyAnalyzerServicer):  # pyright: ignore[reportPrivateUsage] - what the SDK serves a pack by
    """Answers the engine for a pack of rules; everything but the reading of resources is the SDK's."""

    def __init__(self, name: str, version: str, policies: list[Policy], *others: object) -> None:
        super().__init__(name, version, policies, *others)  # pyright: ignore[reportArgumentType] - passed on as they come
        self._policies = [each for each in policies if isinstance(each, RulePolicy)]
        self._mends = [each for each in policies if isinstance(each, Remediation)]
        self._run = Run()
        self._misspelt: tuple[Finding, ...] = ()
        self._version = version

    def Configure(
        self, request: analyzer_pb2.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Take the levels and settings of a run."""
        given = {name: {*each.properties.fields} for name, each in request.policyConfig.items()}
        self._misspelt = tuple(misspelt(given))
        return super().Configure(request, context)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK

    def Analyze(
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Keep what a resource is asked to be."""
        self._run.remember(request.urn, request.properties)
        return analyzer_pb2.AnalyzeResponse()

    def Remediate(
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.RemediateResponse:
        """Mend a resource, where a team has asked for it; only then is it read."""
        response = analyzer_pb2.RemediateResponse()
        wanted = [
            each for each in self._mends if self._get_enforcement_level(each) is EnforcementLevel.REMEDIATE
        ]
        for fix in wanted:
            resource = StackResource(
                type=request.type, urn=request.urn, props=known_props(request.properties)
            )
            if fix.apply(resource, request.properties):
                response.remediations.append(
                    analyzer_pb2.Remediation(
                        policyName=fix.name,
                        policyPackName=_NAME,
                        policyPackVersion=self._version,
                        description=fix.description,
                        properties=request.properties,
                    )
                )
        return response

    def AnalyzeStack(
        self, request: analyzer_pb2.AnalyzeStackRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judge the whole stack by every rule that is not turned off."""
        response = analyzer_pb2.AnalyzeResponse()
        levels = {each: self._get_enforcement_level(each) for each in self._policies}
        rules = [each for each, level in levels.items() if level is not EnforcementLevel.DISABLED]
        asked = [(each.rule, settings(each.rule, self._get_policy_config(each.name))) for each in rules]
        found = judge(self._run.stack(request.resources), asked, told_before=self._misspelt)
        for policy in rules:
            report = self._report(response, policy, levels[policy])
            for finding in found.get(policy.name, ()):
                report(finding.message, finding.urn)
        return response

    def _report(
        self, response: analyzer_pb2.AnalyzeResponse, policy: RulePolicy, level: EnforcementLevel
    ) -> Callable[[str, str], None]:
        # Rules of a whole stack fix nothing: asked to, they stop the run.
        shown = EnforcementLevel.MANDATORY if level is EnforcementLevel.REMEDIATE else level
        return self._create_report_violation(
            response, policy.name, policy.description, shown, policy.severity
        )


def serve(policies: Sequence[Policy]) -> None:
    """Serve the pack to the engine. Does not return: the SDK's constructor is the server."""
    sdk._PolicyAnalyzerServicer = PackServicer  # pyright: ignore[reportPrivateUsage] - there is no other way in
    PolicyPack(
        name=_NAME,
        policies=list(policies),
        # A rule that is added without a word on its level stops the run rather than be overlooked.
        enforcement_level=EnforcementLevel.MANDATORY,
    )
