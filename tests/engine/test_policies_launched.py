"""The pack comes up under every launcher, from whatever folder the previewed program lies in."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2
from pulumi.runtime.proto.analyzer_pb2_grpc import AnalyzerStub

from holdfast.policies.mending import remediations
from holdfast.policies.tables import RULES
from tests.support.policy_wire import stack_request
from tests.support.stack_resources import A100_SPOT, with_ladder

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.engine

PACK = str(Path(__file__).parents[2] / "policies")
NO_ENGINE = "127.0.0.1:1"

LAUNCHERS = {
    "the rehearsal's": [sys.executable, PACK, NO_ENGINE],
    "Pulumi's own": [sys.executable, "-u", "-m", "pulumi.policy", NO_ENGINE, PACK],
}


@contextmanager
def launched(command: list[str], folder: Path) -> Generator[str]:
    """The address at which the pack is served."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None, "the pack says its port there"
            port = process.stdout.readline().strip().decode()
            if not port:
                assert process.stderr is not None, "the pack says there what is wrong"
                pytest.fail(f"the pack did not come up: {process.stderr.read().decode()}")
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def asked(address: str) -> analyzer_pb2.AnalyzerInfo:
    """What the pack at an address says of itself."""
    with grpc.insecure_channel(address) as channel:
        # The stubs name the answer's type in a way that the type checker does not follow.
        ask = AnalyzerStub(channel).GetAnalyzerInfo  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped in the SDK
        return cast("analyzer_pb2.AnalyzerInfo", ask(empty_pb2.Empty(), timeout=30))


@pytest.mark.parametrize("command", LAUNCHERS.values(), ids=LAUNCHERS.keys())
def test_the_pack_tells_what_it_holds(command: list[str], tmp_path: Path) -> None:
    with launched(command, tmp_path) as address:
        info = asked(address)
    assert info.name == "holdfast", "the pack's name stands before every verdict"
    levels = {policy.name: policy.enforcementLevel for policy in info.policies}
    rules = {rule.name: getattr(analyzer_pb2, rule.level.name) for rule in RULES}
    fixes = dict.fromkeys((each.name for each in remediations()), analyzer_pb2.DISABLED)
    assert levels == {**rules, **fixes}, "every rule has its own level, and what fixes is off"


def test_the_engine_is_answered_by_the_packs_own_servicer(tmp_path: Path) -> None:
    (_, command), *_ = LAUNCHERS.items()
    with launched(command, tmp_path) as address, grpc.insecure_channel(address) as channel:
        request = stack_request(with_ladder(A100_SPOT))
        # The stubs name the answer's type in a way that the type checker does not follow.
        ask = AnalyzerStub(channel).AnalyzeStack  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped in the SDK
        answer = cast("analyzer_pb2.AnalyzeResponse", ask(request, timeout=60))
    told = [each.policyName for each in answer.diagnostics]
    assert "training-ladder-ends-on-demand" in told, "the SDK's own servicer would not know how to run a rule"
