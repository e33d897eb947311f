"""Waiting for what becomes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient


def wait_for_pod(
    client: KubeClient,
    name: str,
    condition: Callable[[Json], bool],
    what: str,
    *,
    namespace: str = "default",
    seconds: float = 60,
) -> Json:
    """Wait until something holds of a pod that is there; returns the pod."""
    found = client.wait_for(
        "v1",
        "Pod",
        name,
        namespace=namespace,
        timeout_seconds=seconds,
        condition=lambda pod: pod is not None and condition(pod),
        what=what,
    )
    assert found is not None, "the wait saw it"
    return found
