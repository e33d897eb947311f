"""A container's files are where its paths on this machine say, whole and up to date."""

import base64
from pathlib import Path

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.operator_runner.pod_files import PodFiles, object_data, shown_files, write_volume
from holdfast.simulator.operator_runner.pod_spec import (
    CannotRunError,
    Volume,
    mounts_of,
    on_this_machine,
    volumes_of,
)
from tests.support.hosted_pods import container, pod


def mounting(*mounts: Json, volumes: list[Json]) -> Json:
    return pod(of=container(volumeMounts=mounts), spec={"volumes": volumes})


CONFIG: Json = {"name": "config", "configMap": {"name": "settings"}}


def test_the_volumes_a_container_mounts_are_made() -> None:
    mounted = mounting(
        {"name": "config", "mountPath": "/etc/config"},
        {"name": "cert", "mountPath": "/certs"},
        {"name": "tmp", "mountPath": "/tmp"},
        volumes=[
            CONFIG,
            {
                "name": "cert",
                "secret": {"secretName": "tls", "optional": True, "items": [{"key": "a", "path": "b"}]},
            },
            {"name": "tmp", "emptyDir": {}},
            {"name": "unused", "hostPath": {"path": "/"}},
        ],
    )
    assert volumes_of(mounted) == [
        Volume(name="config", kind="ConfigMap", source="settings"),
        Volume(name="cert", kind="Secret", source="tls", optional=True, items={"a": "b"}),
        Volume(name="tmp", kind="Empty"),
    ], "each with its source, and none that nobody mounts"


def test_the_token_volume_that_every_pod_gets_is_left_out() -> None:
    mounted = mounting(
        {"name": "kube-api-access", "mountPath": "/var/run"},
        volumes=[{"name": "kube-api-access", "projected": {}}],
    )
    assert volumes_of(mounted) == [], "the kubeconfig stands for it"
    assert mounts_of(mounted, Path("/pods")) == {}, "nor is its path translated"


def test_a_volume_that_cannot_be_made_is_named() -> None:
    mounted = mounting(
        {"name": "data", "mountPath": "/data"}, volumes=[{"name": "data", "hostPath": {"path": "/"}}]
    )
    with pytest.raises(CannotRunError, match="volume data is a hostPath"):
        volumes_of(mounted)


def test_a_sub_path_is_one_file_of_the_volume() -> None:
    mounted = mounting({"name": "config", "mountPath": "/app.yaml", "subPath": "app.yaml"}, volumes=[CONFIG])
    assert mounts_of(mounted, Path("/pods")) == {"/app.yaml": Path("/pods/config/app.yaml")}, (
        "and not its folder"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/etc/config", "/here/config"),
        ("--config=/etc/config/app.yaml", "--config=/here/config/app.yaml"),
        ("/etc/config/a,/etc/config/b", "/here/config/a,/here/config/b"),
        ("/etc/config/certs/tls.crt", "/here/certs/tls.crt"),
        ("/etc/configuration", "/etc/configuration"),
        ("/data/etc/config", "/data/etc/config"),
        ("plain", "plain"),
    ],
)
def test_a_path_below_a_mount_is_translated_and_no_other(text: str, expected: str) -> None:
    mounts = {"/etc/config": Path("/here/config"), "/etc/config/certs": Path("/here/certs")}
    assert on_this_machine(text, mounts) == expected, "the longest mount that holds the path counts"


def test_a_volume_shows_exactly_what_its_object_holds(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    assert write_volume(folder, {"a": b"1", "b": b"2"}), "there was nothing before"
    assert write_volume(folder, {"b": b"3", "c": b"4"}), "it changed"
    shown = {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.startswith("..")}
    assert shown == {"b": b"3", "c": b"4"}, "what went is gone, what changed is new"
    assert len([each for each in folder.iterdir() if each.name.startswith("..content")]) == 1, (
        "no old content stays"
    )


def test_a_volume_that_did_not_change_is_not_written(tmp_path: Path) -> None:
    write_volume(tmp_path / "volume", {"a": b"1"})
    before = (tmp_path / "volume" / "..data").readlink()
    assert not write_volume(tmp_path / "volume", {"a": b"1"}), "a controller that watches must not be woken"
    assert (tmp_path / "volume" / "..data").readlink() == before, "not even by a link"


def test_all_files_of_a_volume_change_in_one_step(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    write_volume(folder, {"tls.crt": b"1", "tls.key": b"1"})
    assert {(folder / name).readlink().parts[0] for name in ("tls.crt", "tls.key")} == {"..data"}, (
        "a certificate and its key go through one link, which is exchanged at once"
    )


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    write_volume(tmp_path / "volume", {"key": b"1"})
    assert (tmp_path / "volume" / "key").stat().st_mode & 0o077 == 0, "they are keys"


def test_an_object_that_is_not_there_shows_nothing() -> None:
    assert shown_files(Volume(name="v", kind="Secret", source="s", optional=True), None) == {}, (
        "it is optional"
    )


def test_a_volume_may_show_some_keys_under_other_names() -> None:
    source: Json = {"kind": "ConfigMap", "data": {"a": "1", "b": "2"}}
    volume = Volume(name="v", kind="ConfigMap", source="s", items={"a": "x", "none": "y"})
    assert shown_files(volume, source) == {"x": b"1"}, "only those, and none that is missing"


def test_secrets_and_binary_data_are_decoded() -> None:
    encoded = base64.b64encode(b"\x00\x01").decode()
    assert object_data({"kind": "Secret", "data": {"k": encoded}}) == {"k": b"\x00\x01"}, (
        "base64 is transport"
    )
    config: Json = {"kind": "ConfigMap", "data": {"t": "x"}, "binaryData": {"k": encoded}}
    assert object_data(config) == {"t": b"x", "k": b"\x00\x01"}, "both kinds of data are shown"


def test_a_pods_files_are_read_and_removed(tmp_path: Path) -> None:
    files = PodFiles(tmp_path / "pod")
    files.show(Volume(name="v", kind="ConfigMap", source="s"), {"kind": "ConfigMap", "data": {"a": "1"}})
    files.write_token("t")
    assert files.texts() == {tmp_path / "pod" / "volumes" / "v" / "a": "1"}, "adaptations read mounted files"
    files.remove()
    assert not (tmp_path / "pod").exists(), "nothing of a pod outlives it, least of all its token"
