"""Pods of operators run as local processes."""

import base64
import json
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.operator_runner.operator_pod import ProcessState, pod_status
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerRecord, read_record
from pulumi_holdfast.rehearsal.operator_runner.pod_files import (
    PodFiles,
    object_data,
    shown_files,
    write_volume,
)
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import Volume
from tests.support.builders.operator_pods import pod

NOW = "2026-01-01T00:00:00Z"


def status_of(state: ProcessState, *, of: "Json | None" = None) -> Json:
    return pod_status(of or pod(), state, "10.1.2.3")


def conditions(status: Json) -> dict[str, str]:
    found = [mapping(each) for each in sequence(status["conditions"])]
    return {str(each["type"]): str(each["status"]) for each in found}


def test_ready_condition_is_that_of_the_process() -> None:
    assert conditions(status_of(ProcessState(at=NOW, ready=True)))["Ready"] == "True"
    assert conditions(status_of(ProcessState(at=NOW)))["Ready"] == "False"
    scheduled: Json = {"type": "PodScheduled", "status": "True"}
    status = status_of(
        ProcessState(at=NOW), of=pod(status={"conditions": [scheduled, {"type": "Ready", "status": "?"}]})
    )
    assert sequence(status["conditions"])[0] == scheduled
    assert conditions(status)["Ready"] == "False"


@pytest.mark.parametrize(
    ("restarts", "phase", "reason"), [(0, "Pending", "ContainerCreating"), (3, "Running", "CrashLoopBackOff")]
)
def test_waiting_pod_reports_the_reason(restarts: int, phase: str, reason: str) -> None:
    status = status_of(ProcessState(at=NOW, restarts=restarts, waiting_for="no such Secret"))
    container_status = mapping(sequence(status["containerStatuses"])[0])
    assert status["phase"] == phase
    assert container_status["state"] == {"waiting": {"reason": reason, "message": "no such Secret"}}
    assert container_status["restartCount"] == restarts


def test_a_record_is_read_back_if_it_is_whole(tmp_path: Path) -> None:
    record = RunnerRecord(server="https://127.0.0.1:1", ready=True)
    record.write(tmp_path / "host.json")
    assert read_record(tmp_path / "host.json") == record
    path = tmp_path / "other.json"
    assert read_record(path) is None
    for text in ("", "[]", "{}", json.dumps({"server": "s"})):
        path.write_text(text)
        assert read_record(path) is None, f"{text!r} is no record"


def test_volume_has_exactly_the_data_and_changes_atomically(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    assert write_volume(folder, {"a": b"1", "b": b"2"})
    assert write_volume(folder, {"b": b"3", "c": b"4"})
    shown = {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.startswith("..")}
    assert shown == {"b": b"3", "c": b"4"}
    assert len([each for each in folder.iterdir() if each.name.startswith("..content")]) == 1
    write_volume(tmp_path / "volume", {"a": b"1"})
    before = (tmp_path / "volume" / "..data").readlink()
    assert not write_volume(tmp_path / "volume", {"a": b"1"}), "a watching controller must not be notified"
    assert (tmp_path / "volume" / "..data").readlink() == before
    folder = tmp_path / "volume"
    write_volume(folder, {"tls.crt": b"1", "tls.key": b"1"})
    assert {(folder / name).readlink().parts[0] for name in ("tls.crt", "tls.key")} == {"..data"}
    write_volume(tmp_path / "volume", {"key": b"1"})
    assert (tmp_path / "volume" / "key").stat().st_mode & 0o077 == 0


def test_keys_of_an_object_are_selected_renamed_and_decoded() -> None:
    assert shown_files(Volume(name="v", kind="Secret", source="s", optional=True), None) == {}
    source: Json = {"kind": "ConfigMap", "data": {"a": "1", "b": "2"}}
    volume = Volume(name="v", kind="ConfigMap", source="s", items={"a": "x", "none": "y"})
    assert shown_files(volume, source) == {"x": b"1"}
    encoded = base64.b64encode(b"\x00\x01").decode()
    assert object_data({"kind": "Secret", "data": {"k": encoded}}) == {"k": b"\x00\x01"}
    config: Json = {"kind": "ConfigMap", "data": {"t": "x"}, "binaryData": {"k": encoded}}
    assert object_data(config) == {"t": b"x", "k": b"\x00\x01"}


def test_files_of_a_pod_are_read_and_removed(tmp_path: Path) -> None:
    files = PodFiles(tmp_path / "pod")
    files.show(Volume(name="v", kind="ConfigMap", source="s"), {"kind": "ConfigMap", "data": {"a": "1"}})
    files.write_token("t")
    assert files.texts() == {tmp_path / "pod" / "volumes" / "v" / "a": "1"}
    files.remove()
    assert not (tmp_path / "pod").exists()
