"""What the autoscaler tells of itself: events about pods, in its own words."""

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.cluster_autoscaler.pods import PodNeeds
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError

TRIGGERED: Final = "TriggeredScaleUp"
NOT_TRIGGERED: Final = "NotTriggerScaleUp"
FAILED: Final = "FailedScaleUp"
_COMPONENT: Final = "cluster-autoscaler"


class Events:
    """Tells pods what becomes of them, the same thing once."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._told: dict[str, str] = {}

    def triggered(self, pods: Iterable[PodNeeds], group: str, *, before: int, after: int, limit: int) -> None:
        """A machine was bought: an instance group grew."""
        for pod in pods:
            self._tell(
                pod, TRIGGERED, f"pod triggered scale-up: [{{{group} {before}->{after} (max: {limit})}}]"
            )

    def hopeless(self, pod: PodNeeds, reasons: str) -> None:
        """Nothing can be bought for a pod."""
        self._tell(pod, NOT_TRIGGERED, f"pod didn't trigger scale-up: {reasons}")

    def out_of_stock(self, pods: Iterable[PodNeeds], message: str) -> None:
        """The cloud had no machine to sell."""
        for pod in pods:
            self._tell(pod, FAILED, message)

    def forget(self, pods: Iterable[PodNeeds]) -> None:
        """Remember of no other pods what they were told; `pods` are those that still wait."""
        waiting = {pod.uid for pod in pods}
        self._told = {uid: told for uid, told in self._told.items() if uid in waiting}

    def _tell(self, pod: PodNeeds, reason: str, message: str) -> None:
        if self._told.get(pod.uid) == message:
            return
        self._told[pod.uid] = message
        try:
            self._client.create(_event(pod, reason, message))
        except KubeError:
            # The pod's namespace is on its way out.
            return


def _event(pod: PodNeeds, reason: str, message: str) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{secrets.token_hex(8)}", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if reason == FAILED else "Normal",
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
