"""Deleting objects, and waiting until they are gone."""

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeTimeout, NoSuchKind
from holdfast.simulator.kubernetes_client.objects import identity, mapping
from holdfast.simulator.kubernetes_provider.annotations import SKIP_AWAIT, is_set, propagation
from holdfast.simulator.kubernetes_provider.holding import held_by

# The kinds whose deletion the plugin does not wait for when told to skip waits.
_MAY_SKIP_AWAIT = frozenset(
    {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "ReplicationController", "StatefulSet"}
)

# A stack gives pools hours to drain. Here a pod ends at once and a machine in seconds: what has not gone by then
# will not go.
LONGEST_SECONDS = 300.0


class StillThereError(RehearsalError):
    """An object is not gone in time: `live` is its last state, `reason` what holds it."""

    def __init__(self, live: Json, seconds: float, reason: str) -> None:
        super().__init__(f"{identity(live)} is still there {seconds:.0f} s after its deletion: {reason}")
        self.live = live


def delete(client: KubeClient, obj: Json, *, seconds: float) -> None:
    """Delete an object and wait until it is gone; one that is not there, or whose kind is gone, is.

    Raises StillThereError, which names what holds the object, when it is there after `seconds`, or after the
    longest that a rehearsal waits.
    """
    metadata = mapping(obj.get("metadata"))
    api_version, kind, name = str(obj["apiVersion"]), str(obj["kind"]), str(metadata["name"])
    namespace = str(metadata.get("namespace") or "default")
    try:
        was_there = client.delete(api_version, kind, name, namespace=namespace, propagation=propagation(obj))
        if was_there and not (kind in _MAY_SKIP_AWAIT and is_set(obj, SKIP_AWAIT)):
            wait_until_gone(client, obj, seconds=min(seconds, LONGEST_SECONDS))
    except NoSuchKind:
        return


def wait_until_gone(client: KubeClient, obj: Json, *, seconds: float) -> None:
    """Wait until an object is gone. Raises StillThereError."""
    metadata = mapping(obj.get("metadata"))
    uid = metadata.get("uid")

    def is_gone(found: "Json | None") -> bool:
        # Another object of its name, made by somebody who waited for the same, is not it.
        return found is None or (uid is not None and mapping(found.get("metadata")).get("uid") != uid)

    try:
        client.wait_for(
            str(obj["apiVersion"]),
            str(obj["kind"]),
            str(metadata["name"]),
            namespace=str(metadata.get("namespace") or "default"),
            timeout_seconds=seconds,
            condition=is_gone,
            what=f"{identity(obj)} is gone",
        )
    except KubeTimeout as timeout:
        live = timeout.last or obj
        raise StillThereError(live, seconds, held_by(client, live)) from timeout
