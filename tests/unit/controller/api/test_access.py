"""The access to the API server from a kubeconfig or a service account; unusable ones are rejected with the fix."""

import base64
from pathlib import Path
from typing import TypedDict, Unpack

import pytest
import yaml

from pulumi_holdfast.controller.api.access import ApiAccess, ClientCertificate, from_kubeconfig, in_cluster
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


class Changed(TypedDict, total=False):
    """What of a kubeconfig is not as usual."""

    cluster: Json
    user: Json
    context: str


def kubeconfig(folder: Path, **changed: Unpack[Changed]) -> Path:
    """A kubeconfig with a token, with what is given put over it."""
    document: Json = {
        "current-context": changed.get("context", "here"),
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "c", "cluster": changed.get("cluster", {"server": "https://api.example:6443/"})}
        ],
        "users": [{"name": "u", "user": changed.get("user", {"token": "secret-token"})}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_kubeconfigs_current_context_is_used(tmp_path: Path) -> None:
    ca = base64.b64encode(b"PEM").decode()
    path = kubeconfig(
        tmp_path, cluster={"server": "https://api.example:6443/", "certificate-authority-data": ca}
    )
    assert from_kubeconfig(path) == ApiAccess(
        server="https://api.example:6443", authority=b"PEM", token="secret-token"
    ), "all of it"


def test_relative_paths_start_at_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("chain.pem", "key.pem", "token"):
        (tmp_path / name).write_text(name)
    user: Json = {"client-certificate": "chain.pem", "client-key": "key.pem", "tokenFile": "token"}
    found = from_kubeconfig(kubeconfig(tmp_path, user=user))
    assert found.certificate == ClientCertificate(certificate=b"chain.pem", key=b"key.pem"), "both are read"
    assert found.token_file == tmp_path / "token", "the file is read again every minute"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("PEM")
    found = in_cluster({**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert found.server == "https://[fd00::1]:443", "addresses of either family"
    assert found.token_file == tmp_path / "token", "which the kubelet exchanges"


def test_no_secret_is_in_any_printed_form(tmp_path: Path) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path))
    secret = ApiAccess(
        server="s", certificate=ClientCertificate(certificate=b"public", key=b"private"), token="secret"
    )
    assert "secret-token" not in repr(access), "not the token"
    assert "private" not in repr(secret), "not the key"


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"user": {"exec": {"command": "aws"}}}, "exec"),
        ({"cluster": {"server": "http://api.example"}}, "http://api.example"),
        ({"cluster": {"server": "https://api..example"}}, "an empty part"),
        ({"cluster": {"insecure": True}}, "https://"),
        ({"user": {"client-certificate-data": "%%%"}}, "client-certificate"),
        ({"user": {"client-certificate": "missing.pem"}}, "missing.pem"),
        ({"context": "elsewhere"}, "elsewhere"),
    ],
)
def test_an_unusable_kubeconfig_is_rejected_with_its_problem(
    tmp_path: Path, mistake: Changed, named: str
) -> None:
    path = kubeconfig(tmp_path, **mistake)
    with pytest.raises(ConfigError, match="allowed") as refused:
        from_kubeconfig(path)
    assert named in str(refused.value), "the text says what was found"


def test_an_unusable_access_is_rejected_with_its_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        from_kubeconfig(tmp_path / "nowhere")
    (tmp_path / "text").write_text("{[")
    with pytest.raises(ConfigError, match="readable kubeconfig"):
        from_kubeconfig(tmp_path / "text")
    with pytest.raises(ConfigError, match="--kubeconfig"):
        in_cluster({}, tmp_path)
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster(POD, tmp_path)
    with pytest.raises(ConfigError, match="PEM"):
        ApiAccess(server="https://x", authority=b"not a certificate").ssl_context()
    with pytest.raises(ConfigError, match="PEM"):
        ApiAccess(server="https://x", certificate=ClientCertificate(certificate=b"x", key=b"y")).ssl_context()
