"""Jobs whose real programs misbehave, and how each of them must end."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from pulumi_holdfast.controller.kube.objects import annotations_of, name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import ORIGINAL, STATE
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import MARK
from pulumi_holdfast.rehearsal.scenarios.training import TrainingPlace
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.json_objects import obj
from tests.support.training_program import TRAINING, Run

PROGRAM: Final = Path(__file__).parents[1] / "programs" / "misbehaving.py"
STEPS: Final = 30
_SETTINGS: Final = {"STEPS": str(STEPS), "STEPS_BETWEEN_CHECKPOINTS": "5", "RUN": "run"}
_OWN_LIMIT: Final = 7
_MOST_RESTARTS: Final = 1000
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class Expected:
    """How a job must end: `reason` of the controller's Event, and the `words` that a person would say.

    `is_exact`: with the weights of a training that nothing disturbs. `is_evicted`: once, when it has taken steps.
    """

    reason: str = "Completed"
    words: str = ""
    is_exact: bool = True
    is_evicted: bool = False


#: By the name of what the program does.
PROGRAMS: Final[Mapping[str, Expected]] = {
    # Its author allows 7 restarts: each of 8 crashes counts.
    "crashes-at-start": Expected(reason="GivenUp", words="its program has failed 8 times on", is_exact=False),
    "crashes-again-and-again": Expected(),
    "exits-zero": Expected(
        reason="EndsAtFirstLoss", words="exited 0 on SIGTERM", is_exact=False, is_evicted=True
    ),
    "hangs-in-sigterm": Expected(is_evicted=True),
    "leaves-a-child": Expected(),
    "tears-checkpoints": Expected(),
    "writes-no-checkpoint": Expected(is_evicted=True),
    "fills-the-disk": Expected(reason="GivenUp", words="its program has failed 8 times on", is_exact=False),
    "prints-a-gigabyte": Expected(is_evicted=True),
}


def programs_of(place: TrainingPlace, namespace: str) -> list[Json]:
    """What the jobs of a namespace find there."""
    *others, train = place.objects(namespace)
    data: Json = {**mapping(train["data"]), PROGRAM.name: PROGRAM.read_text(encoding="utf-8")}
    return [*others, {**train, "data": data}]


def misbehaving_job(
    how: str, namespace: str, pool: str, *, cpu: str = "1", pod: Json | None = None, is_admitted: bool = True
) -> Json:
    """A JobSet of one pod whose author allows 7 restarts of a program that never gets better, as admission makes it.

    `is_admitted`: without, it is as its author writes it.
    """
    limit = _MOST_RESTARTS if PROGRAMS[how].is_exact else _OWN_LIMIT
    settings = {**_SETTINGS, "MISBEHAVES": how, "RUN": how, "SECONDS_PER_STEP": "0.1", "SCRATCH": "/scratch"}
    container: Json = {
        "name": "train",
        "image": "python:3.13-slim",
        "command": ["python", f"/train/{PROGRAM.name}"],
        "envFrom": [{"configMapRef": {"name": "checkpoints"}}],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "resources": {"requests": {"cpu": cpu}},
        "volumeMounts": [
            {"name": "train", "mountPath": "/train"},
            {"name": "scratch", "mountPath": "/scratch"},
        ],
    }
    made = gang_jobset(
        how,
        namespace,
        pods=1,
        pool=pool,
        cpu=cpu,
        failure_policy={"maxRestarts": _MOST_RESTARTS if is_admitted else limit},
        pod={
            "containers": [container],
            "terminationGracePeriodSeconds": 2,
            "volumes": [
                {"name": "train", "configMap": {"name": "train"}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}},
            ],
            **(pod or {}),
        },
        labels={RUNS.key: RUNS.value, "holdfast.dev/runs": "process"},
    )
    if not is_admitted:
        return made
    annotations: Json = {ORIGINAL: json.dumps({"maxRestarts": limit})}
    return {**made, "metadata": {**obj(made["metadata"]), "annotations": annotations}}


def undisturbed(folder: Path) -> str:
    """The weights of the same training without misbehavior."""
    settings = {**_SETTINGS, "SECONDS_PER_STEP": "0", "CHECKPOINT_URI": folder.as_uri()}
    whole = Run(program=TRAINING / "train.py", environment=settings).attempt()
    assert whole.weights is not None, whole.said
    return whole.weights


@dataclass(frozen=True, kw_only=True)
class MisbehavingJobs:
    """The jobs of a namespace while they run."""

    client: KubeClient
    place: TrainingPlace
    namespace: str
    names: Sequence[str]
    evicted: set[str] = field(default_factory=set[str])

    def run(self, *, seconds: float) -> None:
        """Evict a pod of each job that is to be evicted, and wait until all have ended."""
        until = time.monotonic() + seconds
        while left := self.left():
            assert time.monotonic() < until, "\n".join(map(self.described, left))
            self.evict_due()
            time.sleep(_POLL_SECONDS)

    def evict_due(self) -> None:
        """Evict a pod of each job that is to be evicted and has taken some steps."""
        for name in self.names:
            self._evict_if_due(name)

    def left(self) -> list[str]:
        """Those that have not ended."""
        return [name for name in self.names if not self.has_ended(name)]

    def problems(self, weights: str) -> list[str]:
        """How the jobs have not ended as they must."""
        found: list[str] = []
        for name in self.names:
            expected, said = PROGRAMS[name], self.said(name)
            if expected.words not in said.get(expected.reason, "(nothing)"):
                found.append(f"{self.described(name)}: it is not said that {expected.words or 'it is done'}")
            if expected.is_exact and f"has trained {STEPS} steps: {weights}\n" not in self.output(name):
                found.append(f"{self.described(name)}: these are not the weights {weights}")
            if expected.is_evicted and name not in self.evicted:
                found.append(f"{name} was not evicted")
        found += [f"a process of an ended job runs: {each}" for each in self._processes()]
        return found

    def has_ended(self, name: str) -> bool:
        """Whether a job is over, and what is to be said of it is said."""
        is_over = self._state(name).get("phase") in ("Finished", "GivenUp")
        return is_over and PROGRAMS[name].reason in self.said(name)

    def said(self, name: str) -> dict[str, str]:
        """The controller's Events about a job: messages by reason."""
        return {
            str(each["reason"]): str(each["message"])
            for each in self.client.list("v1", "Event", namespace=self.namespace)
            if obj(each["involvedObject"]).get("name") == name
        }

    def output(self, name: str) -> str:
        """What the program has printed in all attempts."""
        logs = (self.place.logs / "pods").glob(f"{self.namespace}_{name}-*/*/*.log")
        return "".join(each.read_text(errors="replace") for each in logs)

    def described(self, name: str) -> str:
        """Everything about a job, for a failed test."""
        printed = self.output(name)
        return f"{name}: {self._state(name)} {self.said(name)} {printed[-1000:]}"

    def _evict_if_due(self, name: str) -> None:
        if not PROGRAMS[name].is_evicted or name in self.evicted or "\nstep 8\n" not in self.output(name):
            return
        pods = self.client.list(
            "v1", "Pod", namespace=self.namespace, label_selector=f"jobset.sigs.k8s.io/jobset-name={name}"
        )
        for pod in pods:
            if obj(pod.get("status")).get("phase") == "Running":
                self.client.evict(self.namespace, name_of(pod))
                self.evicted.add(name)

    def _state(self, name: str) -> Json:
        job = self.client.get("jobset.x-k8s.io/v1alpha2", "JobSet", name, self.namespace) or {}
        text = annotations_of(job).get(STATE)
        return mapping(json.loads(text)) if isinstance(text, str) else {}

    def _processes(self) -> list[str]:
        uids = {
            str(obj(each["metadata"])["uid"])
            for each in self.client.list("v1", "Pod", namespace=self.namespace)
            if obj(each.get("status")).get("phase") in ("Pending", "Running")
        }
        found: list[str] = []
        for process in psutil.process_iter():
            try:
                mark = process.environ().get(MARK, "")
                if str(self.place.logs.parent) in mark and not any(uid in mark for uid in uids):
                    found.append(" ".join(process.cmdline()))
            except (psutil.Error, OSError):
                continue
        return found
