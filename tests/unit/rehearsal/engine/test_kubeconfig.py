"""A kubeconfig leads to an API server, and says who is asking."""

import json
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext, read_connection

_TOKEN_COMMAND = {"command": "/usr/local/bin/aws", "args": ["eks", "get-token", "--cluster-name", "prod"]}
KUBECONFIG: Json = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {"name": "one", "cluster": {"server": "https://one.example", "certificate-authority-data": "QQ=="}},
        {"name": "two", "cluster": {"server": "https://two.example"}},
    ],
    "contexts": [
        {"name": "first", "context": {"cluster": "one", "user": "me"}},
        {"name": "second", "context": {"cluster": "two", "user": "anonymous"}},
    ],
    "current-context": "first",
    "users": [{"name": "me", "user": {"exec": _TOKEN_COMMAND}}, {"name": "anonymous", "user": {}}],
}


def _read(kubeconfig: JsonValue, **settings: str) -> KubeconfigContext:
    found = read_connection({"kubeconfig": kubeconfig, **settings})
    assert found is not None
    return found


@pytest.mark.parametrize("kubeconfig", [KUBECONFIG, json.dumps(KUBECONFIG), yaml.safe_dump(KUBECONFIG)])
def test_a_kubeconfig_is_read_as_mapping_json_and_yaml(kubeconfig: JsonValue) -> None:
    found = _read(kubeconfig)
    assert found.server == "https://one.example", "another cluster would be taken for it"
    assert (found.command, found.option("--cluster-name")) == ("aws", "prod")


def test_a_kubeconfig_is_read_from_a_file_and_its_options_in_both_notations(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(KUBECONFIG))
    assert _read(str(file)).server == "https://one.example"
    assert _read(KUBECONFIG, context="second").server == "https://two.example"
    assert _read(KUBECONFIG, cluster="two").server == "https://two.example"
    assert _read(KUBECONFIG, context="second").command == ""
    assert KubeconfigContext(arguments=("--role-arn=r",)).option("--role-arn") == "r"
    assert KubeconfigContext(arguments=("--role-arn", "r")).option("--role-arn") == "r"
    assert KubeconfigContext(arguments=("--role-arn",)).option("--role-arn") is None


@pytest.mark.parametrize(
    "kubeconfig", [None, "", "no: [kubeconfig", "/no/such/file", {"clusters": []}, "x" * 5000]
)
def test_an_invalid_kubeconfig_has_no_connection(kubeconfig: JsonValue) -> None:
    assert read_connection({"kubeconfig": kubeconfig}) is None, "it would be taken for a cluster"
