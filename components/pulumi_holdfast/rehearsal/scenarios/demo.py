"""`holdfast rehearse demo`: runs every scenario on the running platform and prints what happens and when."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pulumi_holdfast.rehearsal.control_plane import ControlPlane
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from pulumi_holdfast.rehearsal.output import render_table
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.deadline import (
    DeadlineRun,
    KubectlPlugin,
    deadline_kept,
    keep_the_deadline,
    unmet_by_deadline,
)
from pulumi_holdfast.rehearsal.scenarios.expectations import (
    unmet_by_default_placement,
    unmet_by_rayjob,
    unmet_by_restart,
)
from pulumi_holdfast.rehearsal.scenarios.ladder_walk import (
    HEADS,
    LadderWalk,
    unmet_by_walk,
    walk_rows,
    walk_the_ladder,
    walked,
)
from pulumi_holdfast.rehearsal.scenarios.manifests import load_example
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, training_platform, where_gpus_are
from pulumi_holdfast.rehearsal.scenarios.pod_placement import (
    DefaultPlacement,
    RayJobPlacement,
    default_placement,
    rayjob_placement,
)
from pulumi_holdfast.rehearsal.scenarios.spot_restart import SpotRestart, restart_on_spot
from pulumi_holdfast.rehearsal.scenarios.training import (
    TRAINING_HEADS,
    TrainingPlace,
    trained,
    training_rows,
    unmet_by_training,
)


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """The results of every scenario."""

    cpu: SpotRestart
    gpu: SpotRestart
    plain: DefaultPlacement
    rayjob: RayJobPlacement
    ladder: LadderWalk
    deadline: DeadlineRun


@dataclass(frozen=True, kw_only=True)
class _Clock:
    say: Callable[[str], None]
    begin: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, line: str) -> None:
        with self.lock:
            self.say(f"[{time.monotonic() - self.begin:6.1f} s] {line}")


def demo(workspace: Workspace, stack: str, *, say: Callable[[str], None] = print) -> DemoResult:
    """Run every scenario on the stack's platform, which must be up, and return the results.

    Raises RehearsalError if the platform is not up, a condition is not met in time, or a result is not as expected.
    """
    platform = _running_platform(workspace, stack, _Clock(say=say))
    root = workspace.project_root
    cpu = restart_on_spot(platform, load_example(root, "jobset-spot"))
    gpu = restart_on_spot(where_gpus_are(platform), load_example(root, "jobset-spot-gpu"))
    plain = default_placement(platform, load_example(root, "helper-pod"))
    rayjob = rayjob_placement(platform, load_example(root, "rayjob-spot"))
    place = TrainingPlace.of(workspace, stack)
    ladder = walk_the_ladder(platform, load_example(root, "jobset-training-gpu"), place)
    plugin = KubectlPlugin(
        folder=workspace.stack_dir(stack) / "plugin", kubeconfig=workspace.kubeconfig(stack)
    )
    deadline = keep_the_deadline(platform, load_example(root, "jobset-spot-gpu"), plugin)
    result = DemoResult(cpu=cpu, gpu=gpu, plain=plain, rayjob=rayjob, ladder=ladder, deadline=deadline)
    say(render_table(HEADS, walk_rows(ladder)))
    say("")
    say(render_table(TRAINING_HEADS, training_rows(ladder.training)))
    say("")
    say(render_table(("scenario", "result", "as expected"), _summary(result)))
    problems = [problem for _, _, problems in _verdicts(result) for problem in problems]
    if problems:
        raise RehearsalError("these results of the demo are not as expected: " + "; ".join(problems))
    return result


def _running_platform(workspace: Workspace, stack: str, say: Callable[[str], None]) -> Platform:
    if not ControlPlane(stack, workspace).healthy() or not OperatorRunner(workspace, stack).running():
        raise RehearsalError(f"the platform {stack} is not up: run `make up` first")
    return training_platform(KubeClient.from_kubeconfig(workspace.kubeconfig(stack)), stack, say)


def _verdicts(result: DemoResult) -> Sequence[tuple[str, str, list[str]]]:
    return [
        ("JobSet on spot loses its node", _restart(result.cpu), unmet_by_restart(result.cpu)),
        ("the same with GPUs", _restart(result.gpu), unmet_by_restart(result.gpu)),
        (
            "a pod without a selection",
            f"{result.plain.plain.capacity} {result.plain.plain.machine}, pool {result.plain.plain.pool}",
            unmet_by_default_placement(result.plain),
        ),
        (
            "RayJob with workers on spot",
            f"head on {result.rayjob.head.pool}, workers on {_pools(result.rayjob)}",
            unmet_by_rayjob(result.rayjob),
        ),
        ("JobSet walks its ladder", walked(result.ladder), unmet_by_walk(result.ladder)),
        ("its training", trained(result.ladder.training), unmet_by_training(result.ladder.training)),
        ("JobSet keeps its deadline", deadline_kept(result.deadline), unmet_by_deadline(result.deadline)),
    ]


def _summary(result: DemoResult) -> Sequence[Sequence[str]]:
    return [(scenario, seen, "no" if problems else "yes") for scenario, seen, problems in _verdicts(result)]


def _restart(seen: SpotRestart) -> str:
    pools = ", ".join(sorted({each.pool for each in seen.after}))
    return f"back on {pools} after {seen.seconds:.1f} s, restarts: {seen.restarts}"


def _pools(seen: RayJobPlacement) -> str:
    return ", ".join(sorted({each.pool for each in seen.workers}))
