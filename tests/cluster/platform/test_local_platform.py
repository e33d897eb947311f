"""The whole local platform: created by the real engine, used, and removed.

The tests run in the order they stand in, on one platform; each leaves it as it found it, the last one takes it down.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pulumi_holdfast.controller.kube.objects import name_of, uid_of
from pulumi_holdfast.kubernetes.operators.pod_settings import SYSTEM_PRIORITY_CLASS
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL
from pulumi_holdfast.rehearsal.commands import down
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS
from pulumi_holdfast.rehearsal.control_plane.processes import python_modules_in
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import MODULE
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.deadline import KubectlPlugin, keep_the_deadline, unmet_by_deadline
from pulumi_holdfast.rehearsal.scenarios.expectations import (
    unmet_by_default_placement,
    unmet_by_rayjob,
    unmet_by_restart,
)
from pulumi_holdfast.rehearsal.scenarios.ladder_walk import unmet_by_walk, walk_the_ladder
from pulumi_holdfast.rehearsal.scenarios.manifests import load_example
from pulumi_holdfast.rehearsal.scenarios.placement import is_running
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, applied, apply
from pulumi_holdfast.rehearsal.scenarios.pod_placement import default_placement, rayjob_placement
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from pulumi_holdfast.rehearsal.scenarios.spot_restart import restart_on_spot
from pulumi_holdfast.rehearsal.scenarios.training import TrainingPlace
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.support.clusters.control_plane import CHECKOUT, processes_of
from tests.support.platform import platform_workspace

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return platform_workspace(tmp_path_factory.mktemp("platform"))


@pytest.fixture(scope="module")
def stack(workspace: Workspace) -> Generator[Stack]:
    """The local stack, up."""
    found = Stack.named("local", workspace, report=lambda _: None)
    try:
        found.environment.start()
        with found.session() as rehearsal:
            rehearsal.up()
        yield found
    finally:
        found.environment.remove()


@pytest.fixture(scope="module")
def client(stack: Stack) -> Generator[KubeClient]:
    found = KubeClient.from_kubeconfig(stack.workspace.kubeconfig(stack.name))
    yield found
    found.close()


@pytest.fixture(scope="module")
def platform(client: KubeClient) -> Platform:
    return Platform(client=client, namespace="tabular", say=lambda _: None)


def test_ready_operators_have_running_programs(stack: Stack, client: KubeClient) -> None:
    pods = client.list(
        "v1",
        "Pod",
        label_selector="app.kubernetes.io/name in (jobset, kuberay-operator, karpenter, fallback-controller)",
    )
    assert len(pods) == 4
    assert {str(mapping(each["spec"])["priorityClassName"]) for each in pods} == {SYSTEM_PRIORITY_CLASS}
    programs = " ".join(processes_of(stack.workspace))
    for program in (
        "jobset-controller",
        "kuberay-operator",
        "karpenter-kwok",
        "-m pulumi_holdfast.controller",
    ):
        assert program in programs, f"{program} runs on this machine"


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    before = processes_of(stack.workspace)
    stack.environment.start()
    with stack.session() as rehearsal:
        outcome = rehearsal.up(judged=True)
    assert outcome.changed == 0, f"nothing was left to do, yet {dict(outcome.changes)}"
    assert processes_of(stack.workspace) == before


def test_a_jobset_on_spot_restarts_on_a_new_node(platform: Platform) -> None:
    seen = restart_on_spot(platform, load_example(CHECKOUT, "jobset-spot"))
    assert unmet_by_restart(seen) == []
    assert {each.gpus for each in (*seen.before, *seen.after)} == {0}


def test_a_jobset_on_spot_gpus_restarts_on_a_new_node(client: KubeClient) -> None:
    vision = Platform(client=client, namespace="vision", say=lambda _: None)
    seen = restart_on_spot(vision, load_example(CHECKOUT, "jobset-spot-gpu"))
    assert unmet_by_restart(seen) == []
    assert {each.gpus for each in (*seen.before, *seen.after)} == {8}


def test_a_pod_without_selectors_runs_on_the_default_pool(platform: Platform) -> None:
    seen = default_placement(platform, load_example(CHECKOUT, "helper-pod"))
    assert unmet_by_default_placement(seen) == []
    assert seen.plain.pool == "cpu"


def test_only_the_workers_of_a_rayjob_run_on_spot(platform: Platform) -> None:
    seen = rayjob_placement(platform, load_example(CHECKOUT, "rayjob-spot"))
    assert unmet_by_rayjob(seen) == []
    assert seen.submitters


@pytest.mark.parametrize(
    ("labels", "namespace_labels", "runs"),
    [
        ({}, {}, False),
        ({"holdfast.dev/runs": "process"}, {}, True),
        ({}, {"holdfast.dev/runs": "process"}, False),
        ({"batch.kubernetes.io/job-name": "train"}, {"holdfast.dev/runs": "process"}, True),
        ({"ray.io/cluster": "train"}, {"holdfast.dev/runs": "process"}, True),
    ],
)
def test_a_pod_runs_as_a_process_if_it_or_its_namespace_asks_for_it(
    client: KubeClient, labels: Json, namespace_labels: Json, runs: bool
) -> None:
    name = "asks" if namespace_labels else "does-not-ask"
    namespace: Json = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": namespace_labels},
    }
    client.apply(namespace, field_manager="test", force=True)
    client.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
        field_manager="test",
        force=True,
    )
    pod = client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "any", "namespace": name, "labels": labels},
            "spec": {"containers": [{"name": "any", "image": "any"}]},
        },
        dry_run=True,
    )
    assert (mapping(mapping(pod["metadata"]).get("labels")).get(RUNS.key) == RUNS.value) is runs


def test_a_training_walks_its_ladder_and_ends_with_the_weights_of_an_uninterrupted_run(
    platform: Platform, workspace: Workspace
) -> None:
    place = TrainingPlace.of(workspace, "local")
    seen = walk_the_ladder(platform, load_example(CHECKOUT, "jobset-training-gpu"), place)
    assert unmet_by_walk(seen) == []
    assert sum(seen.training.repeated) > 0


# It takes two minutes; the steps of the scenario are unit tests.
@pytest.mark.soak
def test_a_jobset_keeps_its_deadline_and_the_plugin_shows_it(
    platform: Platform, workspace: Workspace, tmp_path: Path
) -> None:
    plugin = KubectlPlugin(folder=tmp_path, kubeconfig=workspace.kubeconfig("local"))
    seen = keep_the_deadline(platform, load_example(CHECKOUT, "jobset-spot-gpu"), plugin)
    assert unmet_by_deadline(seen) == []


@pytest.mark.parametrize(
    ("example", "selector"),
    [
        ("jobset-spot", "karpenter.sh/capacity-type: spot"),
        ("jobset-spot", "holdfast.dev/pool: cpu-spot"),
        ("rayjob-spot", "karpenter.sh/capacity-type: spot"),
    ],
)
def test_an_example_moves_down_to_on_demand_and_stays_when_it_is_applied_again(
    platform: Platform, example: str, selector: str
) -> None:
    text = json.dumps(load_example(CHECKOUT, example))
    key, value = selector.split(": ")
    job: Json = json.loads(text.replace('"karpenter.sh/capacity-type": "spot"', f'"{key}": "{value}"'))
    with left_at_the_first_failure(platform), applied(platform, job):
        first = wait_until_workers_run(platform, "cpu-spot")
        platform.client.evict(platform.namespace, name_of(first[0]))
        workers = wait_until_workers_run(platform, "cpu")
        apply(platform, job)
        again = wait_until_workers_run(platform, "cpu")
    assert len(workers) == len(first)
    assert {uid_of(pod) for pod in workers}.isdisjoint(map(uid_of, first))
    assert {uid_of(pod) for pod in workers} == {uid_of(pod) for pod in again}


def test_no_request_of_the_fallback_controller_is_forbidden(stack: Stack) -> None:
    log = (stack.workspace.logs_dir(stack.name) / "fallback-controller.log").read_text()
    assert "this replica leads" in log
    assert "orbidden" not in log


@contextmanager
def left_at_the_first_failure(platform: Platform) -> Generator[None]:
    """The namespace's ladder, whose first tier jobs leave at their first failure for the length of the block."""
    stored = platform.client.get("holdfast.dev/v1alpha1", "FallbackPolicy", "ladder", platform.namespace)
    first, *others = sequence(mapping(mapping(stored).get("spec")).get("tiers"))
    write_tiers(platform, [{**mapping(first), "maxFailures": 1}, *others])
    try:
        yield
    finally:
        write_tiers(platform, [first, *others])


def write_tiers(platform: Platform, tiers: list[JsonValue]) -> None:
    platform.client.merge_patch(
        "holdfast.dev/v1alpha1",
        "FallbackPolicy",
        "ladder",
        {"spec": {"tiers": tiers}},
        namespace=platform.namespace,
    )


def wait_until_workers_run(platform: Platform, pool: str) -> list[Json]:
    """The pods that follow the ladder, once all of them run and select a pool."""

    def run_there(pods: list[Json]) -> bool:
        return len(pods) == 2 and all(
            is_running(pod) and mapping(mapping(pod["spec"]).get("nodeSelector")).get(POOL) == pool
            for pod in pods
        )

    return platform.client.wait_list(
        "v1",
        "Pod",
        namespace=platform.namespace,
        label_selector=f"{FOLLOWS}={FOLLOWS_VALUE}",
        timeout_seconds=WAIT_SECONDS,
        condition=run_there,
        what=f"both workers run on {pool}",
    )


def test_a_scenario_leaves_nothing_and_can_run_again(platform: Platform) -> None:
    assert platform.pods() == []
    assert platform.client.list("karpenter.sh/v1", "NodeClaim") == []
    again = restart_on_spot(platform, load_example(CHECKOUT, "jobset-spot"))
    assert unmet_by_restart(again) == []


def test_operators_restart_after_a_kill_of_the_operator_runner(stack: Stack, platform: Platform) -> None:
    runner = OperatorRunner(stack.workspace, stack.name, report=lambda _: None)
    (running,) = python_modules_in(runner.layout.folder, MODULE)
    controllers = running.process.children()
    running.process.kill()
    _, alive = psutil.wait_procs(controllers, timeout=10)
    assert alive == [], "a controller without its runner would go on unseen"
    assert not runner.running()
    stack.environment.start()
    assert runner.running()
    seen = rayjob_placement(platform, load_example(CHECKOUT, "rayjob-spot"))
    assert unmet_by_rayjob(seen) == []


def test_down_drains_the_pools_and_leaves_no_process(
    stack: Stack, client: KubeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, selector in (("left-behind", {"karpenter.sh/capacity-type": "spot"}), ("left-too", {})):
        client.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "tabular"},
                "spec": {"nodeSelector": selector, "containers": [{"name": "train", "image": "train"}]},
            },
            field_manager="test",
        )
    client.wait_list(
        "karpenter.sh/v1",
        "NodeClaim",
        timeout_seconds=120,
        condition=lambda claims: len(claims) == 2,
        what="there are machines to drain",
    )
    with stack.session() as rehearsal:
        rehearsal.destroy()
    assert [name_of(each) for each in client.list("v1", "Node")] == []
    for kind in ("NodePool", "NodeClaim"):
        assert client.list("karpenter.sh/v1", kind) == [], f"no {kind} is left, though its kind is kept"
    ours = {
        "tabular",
        "vision",
        "karpenter",
        "jobset-system",
        "kuberay-system",
        "holdfast-system",
        "holdfast-reservations",
    }
    left = {name_of(each) for each in client.list("v1", "Namespace")} & ours
    assert not left
    down(stack)
    assert processes_of(stack.workspace) == []
    down(stack)
    assert processes_of(stack.workspace) == []
    assert "no process of it is left" in capsys.readouterr().out
