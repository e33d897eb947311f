"""A RayJob under the real KubeRay, JobSet's neighbor, whose head, workers and submitter are real processes of Ray.

`make frameworks` runs it: a head takes 2 GB and half a minute to start.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import FRAMEWORKS
from pulumi_holdfast.rehearsal.scenarios.manifests import load_example
from pulumi_holdfast.rehearsal.scenarios.training import TrainingPlace
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.clusters.operators import STACK
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, loop_cluster, policy, replica
from tests.support.json_objects import obj, objects
from tests.support.training_program import TRAINING, Run

PYTHON: Final = CHECKOUT / ".tools" / "frameworks" / "bin" / "python"
NAME: Final = "ray-trains"
STEPS: Final = 300
SETTINGS: Final = {
    "RUN": NAME,
    "STEPS": str(STEPS),
    "STEPS_BETWEEN_CHECKPOINTS": "10",
    "WORKERS": "2",
    "CPUS_PER_WORKER": "0.5",
}
_SECONDS: Final = 300
_STEPS_BETWEEN_LOSSES: Final = 20


def test_a_rayjob_that_loses_workers_its_tier_and_its_head_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FRAMEWORKS, str(PYTHON))
    settings = {**SETTINGS, "SECONDS_PER_STEP": "0", "CHECKPOINT_URI": (tmp_path / "plain").as_uri()}
    plain = Run(program=TRAINING / "train.py", environment=settings).attempt()
    with loop_cluster(tmp_path, has_ray=True) as cluster, replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        place = TrainingPlace.of(cluster.workspace, STACK)
        tiers: tuple[Json, ...] = (
            {"pool": "spot-a", "maxFailures": 1},
            {"pool": "spot-b", "maxFailures": 20},
        )
        cluster.apply(policy(*tiers, {"pool": "on-demand"}, outageWindow="3s"))
        cluster.apply(*place.objects(NAMESPACE), _real_rayjob())
        store = place.checkpoints / NAMESPACE / NAME
        _wait_for_steps(cluster, store, 0)
        for is_lost in (_is_worker, _is_worker, _is_head):
            before = reached(store)
            _lose(cluster, is_lost)
            _wait_for_steps(cluster, store, before)
        cluster.wait_on(NAME, "spot-b")
        _wait(lambda: _status(cluster).get("jobStatus") == "SUCCEEDED", lambda: str(_status(cluster)))
        assert "Moved" in cluster.said(NAME)
    assert json.loads(_latest(store).read_text()) == {
        "step": STEPS,
        "weights": json.loads(plain.weights or ""),
    }


def reached(store: Path) -> int:
    """The step of the newest checkpoint, 0 without one."""
    return max((int(json.loads(each.read_text())["step"]) for each in _checkpoints(store)), default=0)


def _latest(store: Path) -> Path:
    return max(_checkpoints(store), key=lambda path: int(json.loads(path.read_text())["step"]))


def _checkpoints(store: Path) -> list[Path]:
    return [each for each in store.glob("*/state.json") if each.stat().st_size]


def _real_rayjob() -> Json:
    """The example, on the pools of this cluster, with small requests, and without packages to install."""
    example = load_example(CHECKOUT, "rayjob-spot", cloud="aws")
    spec = {key: value for key, value in obj(example["spec"]).items() if key != "runtimeEnvYAML"}
    cluster = obj(spec["rayClusterSpec"])
    (workers,) = objects(cluster["workerGroupSpecs"])
    submitter: Json = {"name": "ray-job-submitter", "image": "rayproject/ray:2.52.0"}
    return {
        **example,
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {FOLLOWS: FOLLOWS_VALUE}},
        "spec": {
            **spec,
            "entrypoint": "python -m train_on_ray",
            "submitterPodTemplate": {
                "metadata": {"labels": {RUNS.key: RUNS.value}},
                "spec": {"restartPolicy": "Never", "containers": [submitter]},
            },
            "rayClusterSpec": {
                **cluster,
                "headGroupSpec": _as_processes(obj(cluster["headGroupSpec"]), {}),
                "workerGroupSpecs": [_as_processes(workers, {POOL: "spot-a"})],
            },
        },
    }


def _as_processes(group: Json, selector: Json) -> Json:
    spec = obj(obj(group["template"])["spec"])
    (container,) = objects(spec["containers"])
    # Ray gives its dashboard 30 s to start, which a busy machine exceeds.
    patience = {"RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": "120"}
    settings = {**SETTINGS, **patience, "SECONDS_PER_STEP": "0.2", "PYTHONPATH": "/train"}
    resources: Json = {each: {"cpu": "1", "memory": "4Gi"} for each in ("requests", "limits")}
    env = [{"name": name, "value": value} for name, value in settings.items()]
    changed: Json = {**spec, "nodeSelector": selector, "terminationGracePeriodSeconds": 5}
    changed = {**changed, "containers": [{**container, "env": env, "resources": resources}]}
    return {**group, "template": {"metadata": {"labels": {RUNS.key: RUNS.value}}, "spec": changed}}


def _is_worker(pod: Json) -> bool:
    return obj(obj(pod["metadata"])["labels"]).get("ray.io/node-type") == "worker"


def _is_head(pod: Json) -> bool:
    return obj(obj(pod["metadata"])["labels"]).get("ray.io/node-type") == "head"


def _lose(cluster: LoopCluster, is_lost: Callable[[Json], bool]) -> None:
    cluster.client.evict(NAMESPACE, next(name_of(each) for each in cluster.pods(NAME) if is_lost(each)))


def _status(cluster: LoopCluster) -> Json:
    return mapping(cluster.job(NAME).get("status"))


def _wait_for_steps(cluster: LoopCluster, store: Path, after: int) -> None:
    _wait(
        lambda: reached(store) >= after + _STEPS_BETWEEN_LOSSES,
        lambda: f"{reached(store)} after {after}: {_status(cluster)} {cluster.said(NAME)}",
    )


def _wait(condition: Callable[[], bool], described: Callable[[], str]) -> None:
    until = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < until, described()
        time.sleep(0.5)
