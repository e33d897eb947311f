"""A policy pack without rules: writes what the engine sends to a pack into the file that RECORDING names."""

# ruff: noqa: N802 - names of the methods are the protocol's

import json
import os
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import policy as sdk

_REGISTERED: list[dict[str, object]] = []


class Recorder(sdk._PolicyAnalyzerServicer):  # pyright: ignore[reportPrivateUsage] - what the SDK serves a pack by
    """Keeps each resource as it is registered, and writes them with the whole stack at the end of the run."""

    def Analyze(self, request: analyzer_pb2.AnalyzeRequest, context: object) -> analyzer_pb2.AnalyzeResponse:
        """Keep a resource."""
        _REGISTERED.append(MessageToDict(request))
        return analyzer_pb2.AnalyzeResponse()

    def AnalyzeStack(
        self, request: analyzer_pb2.AnalyzeStackRequest, context: object
    ) -> analyzer_pb2.AnalyzeResponse:
        """Write the recording."""
        recording = {"registered": _REGISTERED, "stack": MessageToDict(request)}
        Path(os.environ["RECORDING"]).write_text(json.dumps(recording), encoding="utf-8")
        return analyzer_pb2.AnalyzeResponse()


def _find_nothing(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report nothing: a pack needs a policy."""


if __name__ == "__main__":
    sdk._PolicyAnalyzerServicer = Recorder  # pyright: ignore[reportPrivateUsage] - the SDK has no other hook
    PolicyPack(
        name="recorder",
        policies=[
            StackValidationPolicy(name="recorder", description="Reports nothing.", validate=_find_nothing)
        ],
        enforcement_level=EnforcementLevel.ADVISORY,
    )
