"""A cancellation ends running actions and refuses later ones."""

import threading

import pytest

from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled


def test_running_action_is_ended() -> None:
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        cancellation.cancel()
        assert ended.is_set(), "the wait must end"


def test_finished_action_is_not_called() -> None:
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        pass
    cancellation.cancel()
    assert not ended.is_set(), "the connection may serve another request"


def test_later_action_is_refused() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(KubeCancelled), cancellation.running(lambda: None):
        pytest.fail("no wait may start after the cancellation")


def test_pause_ends_at_once() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(KubeCancelled):
        cancellation.pause(3600)
