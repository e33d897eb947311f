"""The state of a simulated cloud persists."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.errors import RehearsalError

_BUCKET = "aws:s3/bucket:Bucket"


def _bucket(object_id: str = "ckpt", **inputs: JsonValue) -> CloudObject:
    return CloudObject(type=_BUCKET, id=object_id, urn="urn:b", inputs=inputs)


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    state = CloudState(tmp_path / "aws.json")

    def refused() -> None:
        with state.changing() as inventory:
            inventory.put(_bucket())
            raise RehearsalError("refused")

    with pytest.raises(RehearsalError, match="refused"):
        refused()
    assert state.read().all() == []


def test_changes_from_many_threads_and_files_are_all_kept(tmp_path: Path) -> None:
    states = [CloudState(tmp_path / "aws.json") for _ in range(4)]

    def make(number: int) -> None:
        with states[number % 4].changing() as inventory:
            inventory.put(_bucket(f"b{number}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(40)))
    assert len(states[0].read().all()) == 40


def test_an_invalid_state_file_is_refused_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "aws.json").write_text('{"objects": [{"type": "x"}]}')
    with pytest.raises(
        RehearsalError, match=r"aws\.json is not the state .*remove it to begin with an empty cloud"
    ):
        CloudState(tmp_path / "aws.json").read()
