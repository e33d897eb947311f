"""The targets of the workflows with the real `pulumi` command: plan, deployment, a failure half way, and drift.

The program is a small one and its cloud is simulated; the command line, the engine, its plans and the policy pack are real.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import grpc
import pytest
import yaml
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2
from pulumi.runtime.proto.language_pb2_grpc import add_LanguageRuntimeServicer_to_server

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import serve
from pulumi_holdfast.rehearsal.engine.process import engine_environment, use_separate_connections
from pulumi_holdfast.rehearsal.engine.providers import install_pack_launcher
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.background import Silent, served
from tests.support.clusters.cloud_program import network
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.clusters.simulated_program import a_pack
from tests.support.fakes.github import FakeGitHub

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]

FIXTURES = CHECKOUT / "tests/fixtures/ci"
STACK = "aws-dev"
_SUBNET = "aws:ec2/subnet:Subnet"
_VPC = "aws:ec2/vpc:Vpc"


class Program(LanguageServer):
    """Runs a function where the engine expects the host of a language."""

    def Handshake(  # noqa: N802 - the protocol's name
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        return language_pb2.LanguageHandshakeResponse()


@dataclass
class Checkout:
    """A checkout of the repository with a cloud and a state of its own; `program` is what its stack registers."""

    root: Path
    program: Callable[[], None] = network
    faults: Faults = field(default_factory=Faults)

    @property
    def clouds(self) -> SimulatedClouds:
        checkpoint = self.root / "state/.pulumi/stacks/holdfast" / f"{STACK}.json"
        return SimulatedClouds(folder=self.root / "clouds", checkpoint=checkpoint, faults=self.faults)

    @property
    def cloud(self) -> CloudState:
        return self.clouds.state("aws")

    @property
    def github(self) -> FakeGitHub:
        return FakeGitHub.read(self.root / "bin")

    @property
    def vpc(self) -> CloudObject:
        (one,) = self.cloud.read().of_type(_VPC)
        return one

    @property
    def comment(self) -> str:
        return (self.root / f"dist/ci/{STACK}.md").read_text()

    def prepare(self) -> None:
        for name in ("Makefile", "policies", "infra", ".venv", "Pulumi.yaml"):
            (self.root / name).symlink_to(CHECKOUT / name)
        # The engine writes the salt of the stack's secrets to its file.
        shutil.copytree(CHECKOUT / "stacks", self.root / "stacks")
        for name in ("bin", "state", "home", "clouds"):
            (self.root / name).mkdir()
        (self.root / "bin/pulumi").symlink_to(find_tool("pulumi", Workspace(project_root=CHECKOUT)))
        FakeGitHub().install(self.root / "bin")
        install_pack_launcher(self.root / "home", os.environ)
        self.run("pulumi", "stack", "init", STACK)

    def make(self, target: str) -> subprocess.CompletedProcess[str]:
        """Run a target as a workflow does."""
        return self.run("make", "--old-file=.venv/.installed", target)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        use_separate_connections()
        with ExitStack() as served:
            provider = served.enter_context(serve(self.clouds.provider("aws")))
            language = served.enter_context(futures.ThreadPoolExecutor(8))
            server = grpc.server(language)
            add_LanguageRuntimeServicer_to_server(Program(self.program), server)
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            served.callback(lambda: server.stop(grace=None).wait())
            return subprocess.run(
                command,
                cwd=self.root,
                env={
                    **engine_environment(os.environ),
                    "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
                    "PYTHONPATH": str(CHECKOUT),
                    "STACK": STACK,
                    "REPOSITORY": "o/r",
                    "PULUMI_HOME": str(self.root / "home"),
                    "PULUMI_BACKEND_URL": f"file://{self.root / 'state'}",
                    "PULUMI_CONFIG_PASSPHRASE": "test",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                    "PULUMI_DEBUG_PROVIDERS": f"aws:{provider.port}",
                    "PULUMI_DEBUG_LANGUAGES": f"python:{port}",
                    "REHEARSAL_PYTHON": sys.executable,
                },
                capture_output=True,
                text=True,
                check=False,
            )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    made.prepare()
    return made


def _without_ids(text: str) -> str:
    return re.sub(r"::default_\S+", "::default", text)


def test_a_stack_is_deployed_as_its_plan_says_and_its_drift_is_one_issue(checkout: Checkout) -> None:
    planned = checkout.make("ci-preview")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert checkout.cloud.read().all() == [], "a preview makes nothing"
    # The list prices are in the text: `cp` the found text over the golden one when they change.
    assert _without_ids(checkout.comment) == (FIXTURES / "preview.md").read_text(), "what a reviewer reads"

    # Another change is merged before the deployment of this plan is approved.
    checkout.program = lambda: network(cidr="10.9.0.0/16")
    stale = checkout.make("ci-deploy")
    assert stale.returncode != 0, "it is not what the reviewers approved"
    assert "violates plan" in stale.stdout + stale.stderr, "the engine says why"
    assert checkout.cloud.read().all() == [], "and nothing of it is made"

    checkout.program = network
    done = checkout.make("ci-deploy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.vpc.inputs["cidrBlock"] == "10.0.0.0/16", "what the plan says"
    assert "none is open" in checkout.make("ci-drift").stdout, (
        "a stack that was just deployed does not differ"
    )

    with checkout.cloud.changing() as console:
        (subnet,) = console.of_type(_SUBNET)
        console.remove(_SUBNET, subnet.id)
    for _ in range(2):
        drifted = checkout.make("ci-drift")
        assert drifted.returncode == 0, drifted.stdout + drifted.stderr
    (issue,) = checkout.github.issues
    assert _without_ids(str(issue["body"])) == (FIXTURES / "drift.md").read_text(), (
        "what differs, and what to do"
    )
    assert checkout.github.calls == ["POST repos/o/r/issues", "PATCH repos/o/r/issues/1"], "one, updated"
    assert f"pulumi up -s {STACK} --refresh" in str(issue["body"]), "the command is in the issue"
    checkout.run("pulumi", "up", "-s", STACK, "--refresh", "--yes")
    assert "closed" in checkout.make("ci-drift").stdout, "the next run after the repair closes it"


def test_an_update_that_fails_half_way_continues_with_the_next_plan(checkout: Checkout) -> None:
    checkout.make("ci-preview")
    checkout.faults.fail_create(2, "InsufficientFreeAddressesInSubnet")
    failed = checkout.make("ci-deploy")
    assert failed.returncode != 0, "the job of the workflow is red"
    assert "InsufficientFreeAddressesInSubnet" in failed.stdout, "with the error of the cloud"
    vpc = checkout.vpc
    assert checkout.cloud.read().of_type(_SUBNET) == [], "the rest is not there"

    checkout.make("ci-preview")
    assert "+ 1 to create" in checkout.comment, "the state has what was made: only the rest is planned"
    again = checkout.make("ci-deploy")
    assert again.returncode == 0, again.stdout + again.stderr
    assert checkout.vpc == vpc, "nothing is made twice"
    assert len(checkout.cloud.read().of_type(_SUBNET)) == 1, "and the rest is made"


def test_a_violation_fails_the_preview_is_in_the_comment_and_saves_no_plan(checkout: Checkout) -> None:
    (checkout.root / "policies").unlink()
    pack = a_pack(checkout.root / "policies", "MANDATORY")
    (pack / "profiles").mkdir()
    (pack / "profiles/strict.json").write_text("{}")
    refused = checkout.make("ci-preview")
    assert refused.returncode != 0, "the check of the pull request is red"
    policies = checkout.comment.partition("### Policies")[2].partition("### Plan")[0]
    assert "[mandatory]  no-vpc" in policies, "the reviewer sees which policy"
    assert "a VPC is one too many" in policies, "and why"
    assert f"## `{STACK}`: the preview failed" in checkout.comment, "at the top"
    assert checkout.make("ci-deploy").returncode != 0, "what failed cannot be deployed"
    assert checkout.cloud.read().all() == [], "nor is anything made"


def test_each_field_of_the_settings_for_pulumi_deployments_is_sent(tmp_path: Path) -> None:
    """The command reads the file into its own types, and sends nothing that these do not have."""
    text = (CHECKOUT / "examples/delivery/Pulumi.deployments.yaml").read_text("utf-8")
    (tmp_path / "stacks").mkdir()
    (tmp_path / f"stacks/Pulumi.{STACK}.deploy.yaml").write_text(text, "utf-8")
    (tmp_path / "Pulumi.yaml").write_text("name: holdfast\nruntime: python\nstackConfigDir: stacks\n")
    pulumi = find_tool("pulumi", Workspace(project_root=CHECKOUT))
    with pulumi_cloud() as (address, sent):
        pushed = subprocess.run(
            [pulumi, "deployment", "settings", "push", "--stack", f"acme/{STACK}", "--yes"],
            cwd=tmp_path,
            env={
                **engine_environment(os.environ),
                "PULUMI_HOME": str(tmp_path / "home"),
                "PULUMI_BACKEND_URL": address,
                "PULUMI_ACCESS_TOKEN": "token",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    settings = mapping(sent[f"PUT /api/stacks/acme/holdfast/{STACK}/deployments/settings"])
    written = leaves(mapping(mapping(yaml.safe_load(text))["settings"]))
    assert {path: value for path, value in leaves(settings).items() if path in written} == written, (
        "a field that the command does not know is lost, and nothing says so"
    )


def leaves(value: JsonValue, *path: str) -> Mapping[tuple[str, ...], JsonValue]:
    if not isinstance(value, Mapping):
        return {path: value}
    return {at: leaf for key, inner in value.items() for at, leaf in leaves(inner, *path, key).items()}


@contextmanager
def pulumi_cloud() -> Generator[tuple[str, dict[str, Json]]]:
    """A Pulumi Cloud that has the stack and an owner of the token; what it was sent, by method and path."""
    stack = {"orgName": "acme", "projectName": "holdfast", "stackName": STACK, "id": "1", "version": 1}
    answers: Mapping[str, object] = {
        "/api/user": {"githubLogin": "acme", "organizations": [{"githubLogin": "acme"}]},
        f"/api/stacks/acme/holdfast/{STACK}": stack,
    }
    sent: dict[str, Json] = {}

    class Handler(Silent, BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent[f"{self.command} {self.path}"] = json.loads(body or "{}")
            answer = json.dumps(answers.get(self.path, {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = handle_one  # noqa: N815 - the names of the handler's methods

    with served(Handler) as address:
        yield address, sent
