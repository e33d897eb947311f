"""The access to the API server from a kubeconfig or a service account; unusable ones are rejected with the fix."""

import base64
import socket
from pathlib import Path
from typing import Final, TypedDict, Unpack

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from pulumi_holdfast.controller.kube.access import (
    ApiAccess,
    ClientCertificate,
    address_fault,
    from_kubeconfig,
    in_cluster,
)
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
    )


def test_relative_paths_start_at_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("chain.pem", "key.pem", "token"):
        (tmp_path / name).write_text(name)
    user: Json = {"client-certificate": "chain.pem", "client-key": "key.pem", "tokenFile": "token"}
    found = from_kubeconfig(kubeconfig(tmp_path, user=user))
    assert found.certificate == ClientCertificate(certificate=b"chain.pem", key=b"key.pem")
    assert found.token_file == tmp_path / "token"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("PEM")
    found = in_cluster({**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert found.server == "https://[fd00::1]:443"
    assert found.token_file == tmp_path / "token"


def test_no_secret_is_in_any_printed_form(tmp_path: Path) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path))
    secret = ApiAccess(
        server="s", certificate=ClientCertificate(certificate=b"public", key=b"private"), token="secret"
    )
    assert "secret-token" not in repr(access)
    assert "private" not in repr(secret)


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
    assert named in str(refused.value)


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


USABLE: Final = (
    "https://hooks.slack.com/services/T0/B0/x",
    "https://user:word@hooks.example.com:8443/x?y=z",
    "https://[fd00::1]:6443",
    "http://127.0.0.1:8001",
    "https://example.com./x",
    "https://bücher.example/x",
)
UNUSABLE: Final = (
    "https://hooks..slack.com/x",
    f"https://{'a' * 64}.com/x",
    "https://.com/",
    "https://\u2024.com",
    "https://",
    "https:///x",
    "https://hooks.slack.com:abc/x",
    "https://hooks.slack.com:99999/x",
    "https://hooks.slack.com:0/x",
    "https://[::1",
    "https://hooks.slack.com/a b",
    "https://hooks.slack.com/\x00",
    "https://hooks.slack\n.com/",
)


@pytest.mark.parametrize("address", USABLE)
def test_an_address_with_a_host_is_usable(address: str) -> None:
    assert address_fault(address) is None


@pytest.mark.parametrize("address", UNUSABLE)
def test_an_address_without_a_host_that_can_be_looked_up_is_named_without_repeating_it(address: str) -> None:
    fault = address_fault(address)
    assert fault is not None
    assert address.removeprefix("https://") not in fault or address == "https://"


@given(host=st.text("aZ0-._\u2024ü。", min_size=1, max_size=80))
def test_the_resolver_takes_the_host_of_every_usable_address(host: str) -> None:
    address = f"https://{host}/x"
    if address_fault(address) is not None:
        return
    error = None
    try:
        # No question to a name server: the host is encoded, and is then no number.
        socket.getaddrinfo(URL(address).raw_host, 443, flags=socket.AI_NUMERICHOST)
    except UnicodeError as raised:
        error = raised
    except (OSError, ValueError):
        pass
    assert error is None, f"{host!r} ends whatever sends a request to it"
