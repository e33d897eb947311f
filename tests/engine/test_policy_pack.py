"""The policy pack on the real engine, as plugin and through the launcher."""

import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import grpc
import pulumi
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, provider_pb2
from pulumi.runtime.proto.analyzer_pb2_grpc import AnalyzerStub
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Namespace

from pack import RULES
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineFailure, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.plugin import Plugin
from pulumi_holdfast.rehearsal.engine.values import from_struct, reveal
from rule import Level
from tests.support.builders.policy_programs import violations
from tests.support.builders.stack_resources import A100_SPOT, capacity_requirement, with_ladder
from tests.support.clusters.control_plane import scratch_workspace
from tests.support.doc_pages import ROOT, DocPage
from tests.support.fakes.policy_engine import stack_request

Program = Callable[[], None]

pytestmark = pytest.mark.engine


PACK = ROOT / "policies"
EXAMPLE = ROOT / "examples/policies"
MANDATORY = "training-ladder-ends-on-demand"
ADVISORY = "training-ladder-end-unknown"
STOPPING = {rule.name for rule in RULES if rule.level is Level.MANDATORY}

A100_SPOT_TIER = {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"}
A100 = {"pool": "a100"}


class EchoProvider(Plugin):
    """Accepts everything; `created` holds the objects that a run, not a preview, created, by URN."""

    def __init__(self, created: dict[str, Json]) -> None:
        super().__init__("4.34.2")
        self.created = created

    def Check(  # noqa: N802 - the protocol's name
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Create(  # noqa: N802 - the protocol's name
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        if request.preview:
            return provider_pb2.CreateResponse(properties=request.properties)
        made = from_struct(request.properties)
        self.created[request.urn] = {key: reveal(value) for key, value in made.items()}
        return provider_pb2.CreateResponse(id=request.urn, properties=request.properties)


class EchoProviders:
    """An echo provider for every package; `created` holds what they create."""

    def __init__(self) -> None:
        self.created: dict[str, Json] = {}

    def provider(self, package: str) -> ResourceProviderServicer:
        return EchoProvider(self.created)

    def made(self, operation: PendingOperation) -> str | None:
        return None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all stacks of these tests are kept; the engine's command that makes one is run once."""
    return tmp_path_factory.mktemp("policies")


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> EchoProviders:
    # The user's own engine may have the real provider, which would look for a cluster.
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home-of-nobody"))
    return EchoProviders()


def training_namespace(name: str, *tiers: object) -> Namespace:
    """A training namespace with its ladder, made without this project's components."""
    namespace = Namespace(name, metadata={"name": name, "labels": {"holdfast.dev/training": "true"}})
    CustomResource(
        f"{name}-ladder",
        api_version="holdfast.dev/v1alpha1",
        kind="FallbackPolicy",
        metadata={"name": "ladder", "namespace": name},
        spec={"tiers": list(tiers)},
    )
    return namespace


def node_pool(name: str, capacity_type: str, labels: Mapping[str, str] | None = None) -> None:
    """A NodePool whose nodes carry its name, unless other labels are given."""
    template = {
        "metadata": {"labels": {"holdfast.dev/pool": name} if labels is None else labels},
        "spec": {"requirements": [capacity_requirement(capacity_type)], "expireAfter": "Never"},
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}
    CustomResource(
        name,
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": name},
        spec={"template": template, "disruption": disruption},
    )


def of_violations() -> None:
    """Register the program that breaks every rule."""
    for each in violations():
        pulumi.CustomResource(each.type, each.logical_name, dict(each.props))


def example() -> None:
    """The example's own program."""
    runpy.run_path(str(EXAMPLE / "__main__.py"))["program"]()


def run(
    place: Path,
    providers: EchoProviders,
    program: Program,
    command: Callable[[Rehearsal], CommandOutcome] = Rehearsal.preview,
    settings: Json | Path | None = None,
) -> CommandOutcome:
    """Run one command on the stack, with the pack and its settings."""
    if settings is not None and not isinstance(settings, Path):
        file = place / "settings.json"
        file.write_text(json.dumps(settings), encoding="utf-8")
        settings = file
    subject = Subject(
        program=program,
        project={"name": "holdfast", "runtime": "python"},
        settings={},
        packages=("kubernetes", "aws", "azure-native"),
        policy_packs=(PACK,),
        policy_settings=() if settings is None else (settings,),
    )
    with Rehearsal.open("dev", scratch_workspace(place), subject=subject, providers=providers) as rehearsal:
        return command(rehearsal)


def stopped(
    place: Path, providers: EchoProviders, program: Program, settings: Json | Path | None = None
) -> CommandOutcome:
    """What a preview came to that the pack stops."""
    with pytest.raises(EngineFailure) as failure:
        run(place, providers, program, settings=settings)
    return failure.value.outcome


def test_every_mandatory_rule_stops_an_update_before_any_change(
    place: Path, providers: EchoProviders
) -> None:
    with pytest.raises(EngineFailure) as failure:
        run(place, providers, of_violations, Rehearsal.up)
    verdicts = {verdict.policy: verdict for verdict in failure.value.outcome.verdicts if verdict.stops}
    assert verdicts.keys() == STOPPING
    for rule in RULES:
        if rule.name in STOPPING:
            message = verdicts[rule.name].message
            assert message.startswith(rule.description), f"{rule.name} says what holds where it is kept"
            assert message.endswith("."), f"{rule.name} says what is wrong: {message}"
    assert providers.created == {}, "a stack that may not be made must not be half made"


def test_an_unknown_is_advice_and_the_violation_beside_it_still_stops(
    place: Path, providers: EchoProviders
) -> None:
    def program() -> None:
        node_pool("a100-spot", "spot")
        node_pool("a100", "on-demand")
        training_namespace("tabular", A100_SPOT_TIER)
        other = Namespace("other", metadata={"name": "other"})
        # An id is unknown before the update.
        training_namespace("vision", A100_SPOT_TIER, {"pool": other.id.apply(lambda found: found.lower())})

    verdicts = {verdict.policy: verdict for verdict in stopped(place, providers, program).verdicts}
    assert "namespace 'tabular'" in verdicts[MANDATORY].message
    assert verdicts[MANDATORY].urn.endswith("::tabular-ladder")
    assert verdicts[ADVISORY].level == "advisory"
    assert "namespace 'vision'" in verdicts[ADVISORY].message


def test_the_example_violates_the_policies_that_its_page_names(place: Path, providers: EchoProviders) -> None:
    outcome = stopped(place, providers, example, EXAMPLE / "policies.json")
    found = {verdict.policy: verdict for verdict in outcome.verdicts}
    assert {name for name, verdict in found.items() if verdict.stops} == {
        "training-reaches-on-demand",
        "spot-pools-tainted",
    }
    assert "room for at most 8 of the 16 pods" in found["training-reaches-on-demand"].message
    shown = " ".join(DocPage.read("docs/policies.md").text.split())
    for verdict in found.values():
        said = verdict.message.partition("\n")[2]
        assert " ".join(said.split()) in shown, f"docs/policies.md shows another report than this: {said}"


def test_a_team_can_set_levels_and_settings(place: Path, providers: EchoProviders) -> None:
    settings = {
        "all": "disabled",
        "training-reaches-on-demand": "advisory",
        "training-verdicts": {"enforcementLevel": "advisory", "madeElsewhere": ["pools"]},
    }
    outcome = run(place, providers, example, settings=cast("Json", settings))
    assert outcome.packs == {"holdfast": "0.1.0"}
    levels = {verdict.policy: verdict.level for verdict in outcome.verdicts}
    assert levels == {"training-reaches-on-demand": "advisory", "training-verdicts": "advisory"}


PACK_FOLDER = str(Path(__file__).parents[2] / "policies")
NO_ENGINE = "127.0.0.1:1"

LAUNCHERS = {
    "the rehearsal's": [sys.executable, PACK_FOLDER, NO_ENGINE],
    "Pulumi's own": [sys.executable, "-u", "-m", "pulumi.policy", NO_ENGINE, PACK_FOLDER],
}


@contextmanager
def launched(command: list[str], folder: Path) -> Generator[str]:
    """The address at which the pack is served."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip().decode()
            if not port:
                assert process.stderr is not None
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
def test_the_pack_lists_its_policies(command: list[str], tmp_path: Path) -> None:
    with launched(command, tmp_path) as address:
        info = asked(address)
    assert info.name == "holdfast"
    levels = {policy.name: policy.enforcementLevel for policy in info.policies}
    rules = {rule.name: getattr(analyzer_pb2, rule.level.name) for rule in RULES}
    assert levels == rules


def test_the_launcher_serves_the_engine(tmp_path: Path) -> None:
    (_, command), *_ = LAUNCHERS.items()
    with launched(command, tmp_path) as address, grpc.insecure_channel(address) as channel:
        request = stack_request(with_ladder(A100_SPOT))
        # The stubs name the answer's type in a way that the type checker does not follow.
        ask = AnalyzerStub(channel).AnalyzeStack  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped in the SDK
        answer = cast("analyzer_pb2.AnalyzeResponse", ask(request, timeout=60))
    told = [each.policyName for each in answer.diagnostics]
    assert "training-ladder-ends-on-demand" in told, "the SDK's own servicer would not know how to run a rule"
