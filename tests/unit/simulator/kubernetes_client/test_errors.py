"""A cancellation ends what runs under it and refuses what comes later."""

import threading

import pytest

from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled


def test_what_runs_is_ended() -> None:
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        cancellation.cancel()
        assert ended.is_set(), "the wait would go on"


def test_what_is_over_is_left_alone() -> None:
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        pass
    cancellation.cancel()
    assert not ended.is_set(), "the connection may serve another request by now"


def test_what_comes_later_is_refused() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(KubeCancelled), cancellation.running(lambda: None):
        pytest.fail("a wait began after the cancellation")


def test_a_pause_ends_at_once() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(KubeCancelled):
        cancellation.pause(3600)
