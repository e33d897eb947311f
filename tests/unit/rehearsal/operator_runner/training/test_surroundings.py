"""What a container finds on this machine: addresses, programs, paths and variables."""

import subprocess
import sys
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError
from pulumi_holdfast.rehearsal.operator_runner.training import surroundings as module
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import (
    ACCOUNT,
    MARK,
    ImagePullError,
    ProgramMissingError,
    Surroundings,
    address_of,
    image_programs,
    own_address,
    shown_address,
    with_addresses,
)

POD: Json = {
    "metadata": {"name": "train-w-0-1-abcde", "namespace": "vision", "uid": "u", "labels": {"app": "head"}},
    "spec": {"hostname": "train-w-0-1", "subdomain": "train"},
}
MASTER = address_of("train-w-0-0.train.vision")


def test_an_address_is_a_loopback_address_that_the_api_server_shows_as_another() -> None:
    first, second, _, last = map(int, MASTER.split("."))
    assert first == 127
    assert 128 <= second <= 254
    assert 1 <= last <= 254
    assert shown_address(MASTER) == MASTER.replace("127.", "10.", 1)
    assert address_of("train-w-0-1.train.vision") != MASTER


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train-w-0-0.train", MASTER),
        ("--master=train-w-0-0.train.vision:29400", f"--master={MASTER}:29400"),
        ("tcp://train-w-0-0.train.vision.svc.cluster.local", f"tcp://{MASTER}"),
        ("train.vision.svc", address_of("train.vision")),
        ("train", "train"),
        ("train.py", "train.py"),
        ("/train/train.py", "/train/train.py"),
        ("other.place", "other.place"),
    ],
)
def test_names_of_peers_become_addresses(text: str, expected: str) -> None:
    assert with_addresses(text, "vision", {"train"}) == expected


def test_a_pod_has_the_address_of_its_name_or_of_its_service() -> None:
    assert own_address(POD, []) == address_of("train-w-0-1.train.vision")
    service: Json = {"metadata": {"name": "head-svc"}, "spec": {"selector": {"app": "head"}}}
    alone: Json = {**POD, "spec": {}}
    assert own_address(alone, [service]) == address_of("head-svc.vision")
    assert own_address(alone, []) == address_of("u")


def test_an_image_is_a_folder_of_programs(tmp_path: Path) -> None:
    programs = image_programs("python:3.13-slim", tmp_path)
    assert image_programs("python:3.12", tmp_path) == programs
    said = subprocess.run([programs / "python", "-c", "print(1)"], capture_output=True, text=True, check=True)
    assert said.stdout == "1\n"
    wanted = [programs / "pip", "install", "-q", "pytest"]
    assert subprocess.run(wanted, check=False).returncode == 0
    missing = subprocess.run(
        [*wanted, "no-such==1", "pytest==0.1"], capture_output=True, text=True, check=False
    )
    assert missing.returncode == 1
    assert "no-such==1, pytest==0.1 (here: " in missing.stderr


def test_an_image_without_its_modules_here_cannot_be_pulled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImagePullError, match="no environment here stands for the image private/x:1"):
        image_programs("private/x:1", tmp_path)
    monkeypatch.setattr(module, "IMAGES", {"odd:": ("no_such_module",)})
    with pytest.raises(ImagePullError, match="needs the module no_such_module, which is not installed"):
        image_programs("odd:1", tmp_path)


def nothing(kind: str, name: str) -> None:
    """No ConfigMap and no Secret exists."""
    del kind, name


def surroundings(folder: Path) -> Surroundings:
    return Surroundings(
        cluster=KubeconfigCluster(server="https://127.0.0.1:6443", authority=b""),
        images=folder / "images",
        mark="here",
        folder=folder,
        address=MASTER,
        services=frozenset({"train"}),
    )


def test_a_command_has_local_paths_addresses_and_its_own_environment(tmp_path: Path) -> None:
    container: Json = {
        "name": "train",
        "image": "python:3.13",
        "command": ["sh", "-c", "exec python /train/train.py --peer $(PEER)"],
        "workingDir": "/work",
        "env": [
            {"name": "PEER", "value": "train-w-0-0.train"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
    }
    mounts = {"/train": Path("/pods/u/train"), ACCOUNT: Path("/pods/u/account")}
    command = surroundings(tmp_path).command(POD, container, mounts, nothing, tmp_path / "log")
    assert command.args == ["-c", f"exec python /pods/u/train/train.py --peer {MASTER}"]
    assert command.folder == tmp_path / "root" / "work"
    assert (command.variables["PEER"], command.variables["IP"]) == (MASTER, MASTER)
    assert (command.variables["SERVICE_ACCOUNT_FOLDER"], command.variables[MARK]) == (
        "/pods/u/account",
        "here/u/train/",
    )
    assert (command.variables["KUBERNETES_SERVICE_PORT"], command.headed) == ("6443", False)
    assert command.variables["HOSTNAME"] == "train-w-0-1"


def test_a_command_that_cannot_run_says_why(tmp_path: Path) -> None:
    found = surroundings(tmp_path)
    with pytest.raises(CannotRunError, match="set `command`"):
        found.command(POD, {"image": "python:3"}, {}, nothing, tmp_path)
    absent: Json = {"image": "python:3", "command": ["no-such-program"]}
    with pytest.raises(ProgramMissingError, match='exec: "no-such-program"'):
        found.command(POD, absent, {}, nothing, tmp_path)
    assert sys.executable in (image_programs("python:3", tmp_path / "images") / "python").read_text()
