"""What a container finds on this machine: addresses, programs, paths and variables."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.operator_runner.training import surroundings as module
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import (
    ImagePullError,
    Surroundings,
    address_of,
    image_programs,
    shown_address,
    with_addresses,
)

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


def test_an_image_without_its_modules_here_cannot_be_pulled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImagePullError, match="no environment here stands for the image private/x:1"):
        image_programs("private/x:1", tmp_path)
    monkeypatch.setattr(module, "IMAGES", {"odd:": ("no_such_module",)})
    with pytest.raises(ImagePullError, match="needs the module no_such_module, which is not installed"):
        image_programs("odd:1", tmp_path)


def surroundings(folder: Path) -> Surroundings:
    return Surroundings(
        cluster=KubeconfigCluster(server="https://127.0.0.1:6443", authority=b""),
        images=folder / "images",
        mark="here",
        folder=folder,
        address=MASTER,
        services=frozenset({"train"}),
    )
