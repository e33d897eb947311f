"""The deadline scenario: spot has no machines, and a JobSet waits there only as long as its deadline allows.

Beside it, `kubectl holdfast jobs` shows the job as its user sees it.
"""

import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import FINISH_BY, LADDER, PROGRESS, WORK
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.scenarios.karpenter import restock, sell_out
from pulumi_holdfast.rehearsal.scenarios.ladder_walk import events_printed, short_ladder
from pulumi_holdfast.rehearsal.scenarios.manifests import pod_count
from pulumi_holdfast.rehearsal.scenarios.namespace_clone import cloned_namespace
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, applied
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from pulumi_holdfast.rehearsal.timeline.recorder import JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace, Move, moves_of

NAMESPACE: Final = "training-deadline"
#: The work of the job, the time until its deadline, and what each of its restarts costs.
WORK_SECONDS: Final = 30
DEADLINE_SECONDS: Final = 150
RESTART_SECONDS: Final = 30
# A program reports that all of its work is done before it ends.
_LAST_WRITES: Final[Sequence[Json]] = (
    {"metadata": {"annotations": {PROGRESS: "1"}}},
    {"metadata": {"annotations": {"holdfast.dev/complete": "true"}}},
)


@dataclass(frozen=True, kw_only=True)
class DeadlineRun:
    """The result: the job was created at `began_at`, had to end by `finish_by`, and ended at `ended_at`.

    `pools` are the spot pool without machines and the on-demand pool; `table` is what `kubectl holdfast jobs` printed last.
    """

    jobset: str
    pools: tuple[str, str]
    began_at: datetime
    finish_by: datetime
    ended_at: datetime
    moves: tuple[Move, ...]
    overlaps: tuple[str, ...]
    table: str

    @property
    def waited(self) -> timedelta | None:
        """How long the job waited for spot; None if it did not leave it."""
        return self.moves[0].suspended_at - self.began_at if self.moves else None


def deadline_kept(seen: DeadlineRun) -> str:
    """Return the result in one line."""
    waited = 0.0 if seen.waited is None else seen.waited.total_seconds()
    early = (seen.finish_by - seen.ended_at).total_seconds()
    return f"waited {waited:.0f} s for spot, then {seen.pools[1]}; {early:.0f} s before its deadline"


def unmet_by_deadline(seen: DeadlineRun) -> list[str]:
    """One move, from the wait for spot to on-demand; done in time; shown by the plugin."""
    found = [(move.source, move.target) for move in seen.moves]
    late = (seen.ended_at - seen.finish_by).total_seconds()
    problems = [
        (found != [seen.pools], f"its moves were {found}, and not one from {' to '.join(seen.pools)}"),
        (late > 0, f"it ended {late:.0f} s after its deadline"),
        (bool(seen.overlaps), f"two gangs ran together: {'; '.join(seen.overlaps)}"),
        (seen.jobset not in seen.table, f"`kubectl holdfast jobs` does not show it: {seen.table}"),
    ]
    return [problem for is_wrong, problem in problems if is_wrong]


@dataclass(frozen=True, kw_only=True)
class KubectlPlugin:
    """The plugin as a user installs it: one file on the path of kubectl."""

    folder: Path
    kubeconfig: Path

    def build(self) -> None:
        """Write the file. Raises RehearsalError if that fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._run(
            [
                sys.executable,
                "-m",
                "pulumi_holdfast.cli",
                "pack",
                "--kubectl",
                str(self.folder / "kubectl-holdfast"),
            ]
        )

    def jobs(self, namespace: str) -> str:
        """Return what `kubectl holdfast jobs` prints. Raises RehearsalError if it fails."""
        return self._run(["kubectl", "holdfast", "jobs", "--namespace", namespace])

    def _run(self, command: Sequence[str]) -> str:
        scripts = sysconfig.get_path("scripts")
        path = os.pathsep.join([str(self.folder), scripts, os.environ.get("PATH", "")])
        variables = {**os.environ, "PATH": path, "KUBECONFIG": str(self.kubeconfig)}
        ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if ended.returncode:
            said = ended.stderr.strip() or ended.stdout.strip()
            raise RehearsalError(
                f"`{' '.join(command)}` failed; run it with KUBECONFIG={self.kubeconfig}: {said}"
            )
        return ended.stdout.rstrip()


def keep_the_deadline(platform: Platform, jobset: Json, plugin: KubectlPlugin) -> DeadlineRun:
    """Run the scenario with this JobSet, which selects spot, in a training namespace of its own.

    Raises KubeTimeout or RehearsalError if a condition is not met in time.
    """
    client = platform.client
    plugin.build()
    ladder = short_ladder(client.list("holdfast.dev/v1alpha1", "FallbackPolicy"))
    _, spot, last = ladder.tiers
    pools = (str(spot["pool"]), str(last["pool"]))
    with cloned_namespace(client, NAMESPACE, _policy(spot, last), model=ladder.model):
        there = replace(platform, namespace=NAMESPACE)
        recorder = JobTimelineRecorder(client, NAMESPACE)
        sell_out(client, pools[0])
        try:
            began = datetime.now(UTC)
            paced = with_deadline(jobset, began)
            with recorder.recording(), events_printed(there), applied(there, paced):
                platform.say(
                    f"JobSet {name_of(jobset)} applied: {WORK_SECONDS} s of work, to finish within {DEADLINE_SECONDS} s; "
                    f"{pools[0]} has no capacity"
                )
                return _Run(
                    platform=there, recorder=recorder, jobset=paced, pools=pools, plugin=plugin, began=began
                ).run()
        finally:
            restock(client, pools[0])


def with_deadline(jobset: Json, now: datetime) -> Json:
    """Return the JobSet with its deadline and its work as annotations."""
    metadata = mapping(jobset.get("metadata"))
    deadline: Json = {FINISH_BY: _finish_by(now).isoformat(timespec="seconds"), WORK: f"{WORK_SECONDS}s"}
    annotations = {**mapping(metadata.get("annotations")), **deadline}
    return {**jobset, "metadata": {**metadata, "annotations": annotations}}


def _finish_by(now: datetime) -> datetime:
    return now + timedelta(seconds=DEADLINE_SECONDS)


def _policy(spot: Json, last: Json) -> Json:
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "FallbackPolicy",
        "metadata": {"name": LADDER, "namespace": NAMESPACE},
        "spec": {
            "tiers": [{**spot, "procurementTimeout": "1h"}, last],
            "restartCost": f"{RESTART_SECONDS}s",
            "returnAfter": "never",
        },
    }


@dataclass(frozen=True, kw_only=True)
class _Run:
    platform: Platform
    recorder: JobTimelineRecorder
    jobset: Json
    pools: tuple[str, str]
    plugin: KubectlPlugin
    began: datetime

    @property
    def trace(self) -> JobTrace:
        return self.recorder.job(name_of(self.jobset))

    def run(self) -> DeadlineRun:
        spot, last = self.pools
        pods = pod_count(self.jobset)
        self._wait(lambda: self._is("Waiting", spot), f"{self.trace.name} waits for {spot}")
        self._show()
        self._wait(
            lambda: self._is("Running", last) and len(self.trace.running_in(last)) == pods,
            f"{self.trace.name} runs on {last}",
        )
        table = self._show()
        # The simulated program: it trains for as long as its work takes, and then ends.
        threading.Event().wait(WORK_SECONDS)
        _complete(self.platform.client, [pod.name for pod in self.trace.alive()])
        self._wait(lambda: self.trace.last.outcome == "Completed", f"{self.trace.name} has completed")
        with self.recorder.frozen():
            return DeadlineRun(
                jobset=self.trace.name,
                pools=self.pools,
                began_at=self.began,
                finish_by=_finish_by(self.began),
                ended_at=self.trace.last.at,
                moves=moves_of(self.trace, pods),
                overlaps=tuple(self.recorder.overlaps),
                table=table,
            )

    def _is(self, phase: str, pool: str) -> bool:
        changes = self.trace.changes
        return bool(changes) and (changes[-1].phase, changes[-1].pool) == (phase, pool)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        self.recorder.wait(condition, what, seconds=WAIT_SECONDS)
        self.platform.say(what)

    def _show(self) -> str:
        table = self.plugin.jobs(NAMESPACE)
        self.platform.say(f"$ kubectl holdfast jobs --namespace {NAMESPACE}")
        for line in table.splitlines():
            self.platform.say(f"  {line}")
        return table


def _complete(client: KubeClient, pods: Sequence[str]) -> None:
    for patch in _LAST_WRITES:
        for pod in pods:
            client.merge_patch("v1", "Pod", pod, patch, namespace=NAMESPACE)
