"""What the host tells the API server about the pods it runs. Pure."""

from dataclasses import dataclass

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.containers import main_container

_OURS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


@dataclass(frozen=True, kw_only=True)
class ProcessState:
    """The state of the process behind a pod.

    `at` is when it came to be, in RFC 3339; `waiting_for` says why no process runs, empty while one does.
    """

    at: str
    ready: bool = False
    restarts: int = 0
    waiting_for: str = ""


def pod_status(pod: Json, state: ProcessState, pod_ip: str) -> Json:
    """The status of a pod whose process is in `state`; conditions of others stay as they are."""
    others = [
        mapping(each)
        for each in sequence(mapping(pod.get("status")).get("conditions"))
        if mapping(each).get("type") not in _OURS
    ]
    ours: list[Json] = [_condition(name, state) for name in _OURS]
    container = main_container(pod)
    shown: Json = {
        "name": container.get("name"),
        "image": container.get("image"),
        "imageID": "",
        "ready": state.ready,
        "started": not state.waiting_for,
        "restartCount": state.restarts,
        "state": _container_state(state),
    }
    return {
        "phase": "Pending" if state.waiting_for and state.restarts == 0 else "Running",
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": mapping(pod.get("status")).get("startTime") or state.at,
        "conditions": [*others, *ours],
        "containerStatuses": [shown],
    }


def _condition(name: str, state: ProcessState) -> Json:
    holds = state.ready or name not in ("ContainersReady", "Ready")
    return {"type": name, "status": "True" if holds else "False", "lastTransitionTime": state.at}


def _container_state(state: ProcessState) -> Json:
    if not state.waiting_for:
        return {"running": {"startedAt": state.at}}
    reason = "CrashLoopBackOff" if state.restarts else "ContainerCreating"
    return {"waiting": {"reason": reason, "message": state.waiting_for}}
