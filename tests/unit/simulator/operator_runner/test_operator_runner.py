"""The record of an operator runner identifies its process."""

import json
from dataclasses import replace
from pathlib import Path

import psutil

from holdfast.simulator.operator_runner.operator_runner import RunnerRecord, read_record


def test_record_identifies_its_process(tmp_path: Path) -> None:
    record = RunnerRecord.of(psutil.Process(), "https://127.0.0.1:1", ready=True)
    record.write(tmp_path / "host.json")
    assert read_record(tmp_path / "host.json") == record, "the record is read back"
    assert record.process() == psutil.Process(), "the process runs"
    recycled = replace(record, started=record.started - 3600)
    assert recycled.process() is None, "another process reuses the pid"
    path = tmp_path / "other.json"
    assert read_record(path) is None, "there is no file"
    for text in ("", "[]", "{}", json.dumps({"pid": "x", "started": 1, "server": "s", "ready": True})):
        path.write_text(text)
        assert read_record(path) is None, f"{text!r} is no record"
