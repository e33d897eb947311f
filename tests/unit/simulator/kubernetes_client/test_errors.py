"""A cancellation ends running actions and refuses later ones."""

import threading

import pytest

from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled


def test_action_is_ended_only_while_it_runs() -> None:
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        cancellation.cancel()
        assert ended.is_set(), "the wait must end"
    cancellation, ended = Cancellation(), threading.Event()
    with cancellation.running(ended.set):
        pass
    cancellation.cancel()
    assert not ended.is_set(), "the connection may serve another request"


def test_actions_and_pauses_after_the_cancellation_are_refused() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(KubeCancelled), cancellation.running(lambda: None):
        pytest.fail("no wait may start after the cancellation")
    with pytest.raises(KubeCancelled):
        cancellation.pause(3600)
