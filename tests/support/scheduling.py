"""Distributes the tests over the workers of pytest-xdist: what shares a cluster runs on one worker, longest first."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ROOT: Final = Path(__file__).resolve().parents[2]

#: Seconds of the scopes that take longest on an idle machine. All others take about as long as they have tests.
SECONDS: Final[Mapping[str, float]] = {
    "tests/cluster/fallback": 300,
    "tests/cluster/platform/test_local_platform.py": 200,
    "tests/cluster/reconciler": 190,
    "tests/engine/test_aws_stacks.py": 170,
    "tests/cluster/admission": 125,
    "tests/cluster/kubernetes_plugin": 50,
    "tests/cluster/operator_runner": 90,
    "tests/cluster/plugin": 90,
    "tests/unit/infra": 90,
    "tests/cluster/transfers": 90,
    "tests/cluster/rehearsal/test_lifecycles.py": 80,
    "tests/cluster/reachability": 60,
    "tests/engine/test_aks_cluster.py": 65,
    "tests/cluster/aks": 60,
    "tests/cluster/control_plane": 60,
    "tests/engine/test_checkpoints.py": 55,
    "tests/engine/test_aks_pools.py": 40,
    "tests/cluster/gke": 35,
    "tests/cluster/aks_pools": 35,
    "tests/cluster/cloud_clusters": 30,
    "tests/unit/policies/test_any_stack.py": 20,
}
#: Seconds of one test of any other scope: with an engine or a control plane, or without.
SLOW: Final = 3.0
UNIT: Final = 0.02


#: The tests below it register the same stacks, which a worker keeps after the first time.
TOGETHER: Final = "tests/unit/infra"

#: Every test here makes all that it needs: each may run on any worker.
INDEPENDENT: Final = ("tests/soak/", "tests/cluster/rehearsal/test_lifecycles.py")


def scope_of(nodeid: str) -> str:
    """Return the scope of a test, which one worker runs: its folder, its file, or the test alone.

    The folder is the scope where a `conftest.py` shares a cluster, or where tests share the stacks they register.
    """
    return nodeid if nodeid.startswith(INDEPENDENT) else _scope_of_file(nodeid.partition("::")[0])


@cache
def _scope_of_file(path: str) -> str:
    if path.startswith(f"{TOGETHER}/"):
        return TOGETHER
    folder = str(Path(path).parent)
    return folder if (ROOT / folder / "conftest.py").is_file() else path


def longest_first(items: list[pytest.Item]) -> None:
    """Sort tests by the time of their scope; tests of one scope stay in their order."""
    seconds: dict[str, float] = {}
    for item in items:
        scope = scope_of(item.nodeid)
        known = SECONDS.get(scope.partition("::")[0])
        seconds[scope] = seconds.get(scope, 0) + _seconds_of(item) if known is None else known
    items.sort(key=lambda item: (-seconds[scope := scope_of(item.nodeid)], scope))


def _seconds_of(item: pytest.Item) -> float:
    is_slow = any(item.get_closest_marker(mark) for mark in ("engine", "cluster", "registry"))
    return SLOW if is_slow else UNIT


class FolderScheduling(LoadScopeScheduling):
    """Gives a worker one scope after another, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        # A worker starts its last test only when it knows the next one. With two left, as the base class has it,
        # a worker reserves a scope while it still has a long test to run.
        if self.workqueue and self._pending_of(self.assigned_work[node]) > 1:
            return
        super()._reschedule(node)
