"""The autoscaler survives failures until it is cancelled."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.machines import NoNodes
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.cluster_autoscaler import Autoscaler, autoscaler
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import InstanceGroups
from pulumi_holdfast.rehearsal.errors import Cancellation, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.autoscaling_objects import node_pool


class _Server:
    """An API server that answers each list with the next of `answers`, and with nothing after the last."""

    def __init__(self, *answers: Callable[[], list[Json]]) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.enough = threading.Event()

    def list(self, api_version: str, kind: str) -> list[Json]:
        self.asked += 1
        if self._answers:
            return self._answers.pop(0)()
        self.enough.set()
        return []


def _raising(error: Exception) -> Callable[[], list[Json]]:
    def answer() -> list[Json]:
        raise error

    return answer


def _autoscaler(server: _Server, tmp_path: Path, *, has_pools: bool = True) -> Autoscaler:
    cloud = CloudState(tmp_path / "gcp.json")
    if has_pools:
        with cloud.changing() as inventory:
            inventory.put(node_pool())
    return Autoscaler(cast("KubeClient", server), InstanceGroups(cloud), NoNodes())


def test_the_loop_retries_until_it_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoscaler, "_PAUSE_SECONDS", 0.0)
    server = _Server(
        _raising(RehearsalError("it does not answer")), _raising(ValueError("a fault of its own"))
    )
    cancellation = Cancellation()
    running = threading.Thread(target=_autoscaler(server, tmp_path).run, args=[cancellation])
    running.start()
    assert server.enough.wait(10)
    cancellation.cancel()
    running.join(timeout=10)
    assert not running.is_alive()
