"""The training that a scenario runs: its files, the steps that each attempt took, and the weights at its end."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.objects import objects
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.control_plane.processes import free_ports
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.operator_runner.training.logs import logs_of_namespace
from pulumi_holdfast.rehearsal.paths import REPOSITORY, Workspace
from pulumi_holdfast.rehearsal.scenarios.manifests import pod_count
from pulumi_holdfast.rehearsal.timeline.steps import StepPoint
from pulumi_holdfast.rehearsal.timeline.traces import PodTrace

_PROGRAMS: Final = Path("examples") / "training"
_BEGAN: Final = re.compile(r"^continues from step (\d+)$", re.MULTILINE)
_STEP: Final = re.compile(r"^step (\d+)$", re.MULTILINE)
_DONE: Final = re.compile(r"^has trained \d+ steps: (\[.*\])$", re.MULTILINE)
_UNDISTURBED_SECONDS: Final = 120


@dataclass(frozen=True, kw_only=True)
class TrainingPlace:
    """The folders of a platform's training: the logs of its pods, its checkpoints, and the examples' programs."""

    logs: Path
    checkpoints: Path
    programs: Path

    @classmethod
    def of(cls, workspace: Workspace, stack: str) -> "TrainingPlace":
        """The folders of a stack. A project without examples has those of the package."""
        own = workspace.project_root / _PROGRAMS
        return cls(
            logs=workspace.logs_dir(stack).resolve(),
            checkpoints=workspace.stack_dir(stack).resolve() / "checkpoints",
            programs=own if own.is_dir() else REPOSITORY / _PROGRAMS,
        )

    def objects(self, namespace: str) -> list[Json]:
        """What a training finds in its namespace, with an empty store."""
        store = self.checkpoints / namespace
        shutil.rmtree(store, ignore_errors=True)
        programs = {path.name: path.read_text(encoding="utf-8") for path in self.programs.glob("*.py")}
        return [
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "trainer", "namespace": namespace},
            },
            _config_map("checkpoints", namespace, {"CHECKPOINT_URI": store.as_uri()}),
            _config_map("train", namespace, programs),
        ]


def _config_map(name: str, namespace: str, data: Mapping[str, str]) -> Json:
    metadata: Json = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt of a training, as its first worker printed it.

    It continued from step `began` (None: it did not get there), took `steps`, and has `weights` if it is complete. `lost` is
    why a pod of its gang was lost, empty if none was.
    """

    pod: PodTrace
    lost: str
    began: int | None
    steps: tuple[int, ...]
    weights: str | None

    @property
    def reached(self) -> int:
        """The last step, of this attempt or of the ones before."""
        return self.steps[-1] if self.steps else self.began or 0


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """All attempts of a training of `steps`, and the weights of one that nothing has interrupted.

    `seconds_per_step` at least; `costs`: the time of each attempt's nodes, as time of on-demand nodes. `points`: its steps over time.
    """

    steps: int
    attempts: tuple[Attempt, ...]
    undisturbed: str
    seconds_per_step: float = 0.0
    costs: tuple[timedelta, ...] = ()
    points: tuple[StepPoint, ...] = ()

    @property
    def repeated(self) -> tuple[int, ...]:
        """For each attempt, how many of its steps an earlier one had taken."""
        reached = [0, *(each.reached for each in self.attempts)]
        furthest = [max(reached[: number + 1]) for number in range(len(self.attempts))]
        return tuple(
            len([step for step in each.steps if step <= before])
            for each, before in zip(self.attempts, furthest, strict=True)
        )


def read_attempts(place: TrainingPlace, namespace: str, pods: Iterable[PodTrace]) -> tuple[Attempt, ...]:
    """The attempts of the first workers among `pods` whose programs have started, first attempt first."""
    logs = dict(logs_of_namespace(place.logs, namespace))
    known = sorted(pods, key=lambda pod: pod.born_at)
    lost = {(pod.pool, pod.attempt): pod.lost for pod in known if pod.lost}
    return tuple(
        attempt_of(pod, lost.get((pod.pool, pod.attempt), ""), logs[pod.uid].read_text(errors="replace"))
        for pod in known
        if _index(pod) == "0" and pod.uid in logs
    )


def _index(pod: PodTrace) -> str:
    # JobSet names a pod after its Job, its index in it, and five random characters.
    return pod.name.rsplit("-", 2)[-2]


def attempt_of(pod: PodTrace, lost: str, text: str) -> Attempt:
    """The attempt whose first worker printed this text."""
    began, done = _BEGAN.search(text), _DONE.search(text)
    return Attempt(
        pod=pod,
        lost=lost,
        began=int(began[1]) if began else None,
        steps=tuple(map(int, _STEP.findall(text))),
        weights=done[1] if done else None,
    )


def undisturbed_weights(place: TrainingPlace, jobset: Json) -> str:
    """The weights that the training of a JobSet ends with if nothing interrupts it: all of its workers run here.

    Raises RehearsalError if it fails.
    """
    environment = {
        str(each["name"]): str(each.get("value")) for each in objects(_container(jobset).get("env"))
    }
    with tempfile.TemporaryDirectory() as folder:
        here = {
            **environment,
            "CHECKPOINT_URI": Path(folder).as_uri(),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_ports(1)[0]),
            "SECONDS_PER_STEP": "0",
        }
        workers = [
            subprocess.Popen(
                [sys.executable, str(place.programs / _program(jobset))],
                env={**here, "JOB_COMPLETION_INDEX": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(pod_count(jobset))
        ]
        try:
            said = [each.communicate(timeout=_UNDISTURBED_SECONDS)[0] for each in workers]
        finally:
            for each in workers:
                each.kill()
    done = _DONE.search(said[0])
    if done is None:
        raise RehearsalError(f"a training without interruption does not end: {said[0][-500:]}")
    return done[1]


def setting_of(jobset: Json, name: str) -> float:
    """A number among the variables of a JobSet's training."""
    env = {each.get("name"): each.get("value") for each in objects(_container(jobset).get("env"))}
    return float(str(env[name]))


def node_costs(
    attempts: Iterable[Attempt], pods: Iterable[PodTrace], prices: Mapping[str, float], until: datetime
) -> tuple[timedelta, ...]:
    """The time that the pods of each attempt had nodes, by the price of their pool relative to on-demand."""
    known = list(pods)
    return tuple(
        sum(
            (
                ((pod.ended_at or until) - pod.bound_at) * prices.get(pod.pool, 1.0)
                for pod in known
                if pod.bound_at is not None and (pod.owner, pod.pool) == (each.pod.owner, each.pod.pool)
            ),
            timedelta(0),
        )
        for each in attempts
    )


def _container(jobset: Json) -> Json:
    (job,) = objects(mapping(jobset.get("spec")).get("replicatedJobs"))
    template = mapping(mapping(mapping(job.get("template")).get("spec")).get("template"))
    (container,) = objects(mapping(template.get("spec")).get("containers"))
    return container


def _program(jobset: Json) -> str:
    *_, last = sequence(_container(jobset).get("command"))
    return str(last).rpartition("/")[2]


TRAINING_HEADS: Final = (
    "attempt",
    "pool",
    "from step",
    "to step",
    "repeated steps",
    "lost work",
    "cost, in on-demand node time",
    "ended",
)


def training_rows(run: TrainingRun) -> list[tuple[str, ...]]:
    """A row for each attempt."""
    costs = run.costs or (timedelta(0),) * len(run.attempts)
    return [
        (
            str(number),
            each.pod.pool,
            "–" if each.began is None else str(each.began),
            str(each.reached),
            str(repeated),
            f"{repeated * run.seconds_per_step:.1f} s",
            f"{cost.total_seconds():.0f} s",
            "complete" if each.weights else each.lost or "moved",
        )
        for number, (each, repeated, cost) in enumerate(
            zip(run.attempts, run.repeated, costs, strict=True), start=1
        )
    ]


def trained(run: TrainingRun) -> str:
    """The result in one line."""
    is_same = bool(run.attempts) and run.attempts[-1].weights == run.undisturbed
    weights = "the weights of an uninterrupted run" if is_same else "other weights than an uninterrupted run"
    return f"{run.steps} steps in {len(run.attempts)} attempts, {sum(run.repeated)} repeated; {weights}"


def unmet_by_training(run: TrainingRun) -> list[str]:
    """Every attempt continues where an earlier one was or before it, takes step after step, and the end is exact."""
    problems: list[str] = []
    furthest = 0
    for number, each in enumerate(run.attempts, start=1):
        began = each.began or 0
        if began > furthest:
            problems.append(f"attempt {number} skipped the steps {furthest + 1} to {began}")
        if each.steps != tuple(range(began + 1, began + 1 + len(each.steps))):
            problems.append(f"attempt {number} did not take step after step from {began}: {each.steps}")
        furthest = max(furthest, each.reached)
    if furthest != run.steps:
        problems.append(f"the training reached step {furthest} of {run.steps}")
    last = run.attempts[-1].weights if run.attempts else None
    if last != run.undisturbed:
        problems.append(f"the weights are {last} and not those of an uninterrupted run, {run.undisturbed}")
    return problems
