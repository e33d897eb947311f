"""The settings for Pulumi Deployments, sent by the real `pulumi` command."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.engine.process import engine_environment
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.background import Silent, served
from tests.support.clusters.control_plane import CHECKOUT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]

STACK = "aws-dev"


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
    assert pushed.returncode == 0
    settings = mapping(sent[f"PUT /api/stacks/acme/holdfast/{STACK}/deployments/settings"])
    written = leaves(mapping(mapping(yaml.safe_load(text))["settings"]))
    assert {path: value for path, value in leaves(settings).items() if path in written} == written


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
