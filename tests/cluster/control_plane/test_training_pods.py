"""A training pod that asks for it is backed by the real processes of its containers, as on a machine."""

import subprocess
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import pytest

from pulumi_holdfast.controller.kube.objects import condition_of, uid_of
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.scenarios.node_termination import lose_node
from tests.support.clusters.autoscaled import wait_for_pod
from tests.support.clusters.control_plane import Watched
from tests.support.clusters.operators import running_operator_runner
from tests.support.json_objects import obj, objects
from tests.support.waiting import wait_until

pytestmark = pytest.mark.cluster

NAMESPACE = "training"
NODE = "node-1"
#: Runs until SIGTERM, and then does what the code says.
UNTIL_SIGTERM = """
import signal, sys, time
def stop(*_):
    print("stops", flush=True)
    {}
signal.signal(signal.SIGTERM, stop)
print("runs", flush=True)
while True:
    time.sleep(0.1)
"""


@dataclass(frozen=True, kw_only=True)
class Runner:
    """A control plane with a pod runner."""

    client: KubeClient
    layout: RunnerLayout

    def start(self, name: str, spec: Json) -> None:
        """Create a pod on NODE, as admission marks it on the local platform."""
        metadata: Json = {"name": name, "namespace": NAMESPACE, "labels": {RUNS.key: RUNS.value}}
        usual: Json = {"nodeName": NODE, "restartPolicy": "Never"}
        self.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**usual, **spec}}
        )

    def wait(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        return wait_for_pod(self.client, name, condition, what, namespace=NAMESPACE)

    def wait_log(self, name: str, text: str) -> None:
        """Wait until the pod runs and its log has this text: then its program has its handlers."""
        wait_until(lambda: text in self.logs(name), f"{name} prints {text}")

    def logs(self, name: str, *options: str) -> str:
        """What `kubectl logs` prints."""
        command = [
            "kubectl",
            "--kubeconfig",
            str(self.layout.kubeconfig),
            "logs",
            "-n",
            NAMESPACE,
            name,
            *options,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


@pytest.fixture(scope="module")
def runner(control_plane: Watched) -> Generator[Runner]:
    control_plane.control_plane.start()
    layout = RunnerLayout.of("local", control_plane.workspace)
    client = control_plane.client
    node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    account: Json = {"name": "default", "namespace": NAMESPACE}
    for each in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        node,
        {**node, "metadata": {"name": "node-2"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
    ):
        client.apply(each, field_manager="test", force=True)
    with running_operator_runner(layout, control_plane.workspace.project_root):
        yield Runner(client=client, layout=layout)
    client.close()


def container(name: str, *command: str, **fields: JsonValue) -> Json:
    return {"name": name, "image": "python:3.13-slim", "command": list(command), **fields}


def python(code: str, **fields: JsonValue) -> Json:
    return container("train", "python", "-c", code, **fields)


def phase_is(*phases: str) -> Callable[[Json], bool]:
    return lambda pod: obj(pod["status"]).get("phase") in phases


def states(pod: Json, field: str = "containerStatuses") -> dict[str, Json]:
    return {str(each["name"]): obj(each["state"]) for each in objects(obj(pod["status"]).get(field))}


def exit_code(pod: Json) -> object:
    return obj(states(pod)["train"]["terminated"])["exitCode"]


def test_containers_run_in_order_and_restart_with_their_logs(runner: Runner) -> None:
    data: Json = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    server = ("python", "-m", "http.server", "8000", "--bind", "$(POD_IP)")
    address: Json = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    probe: Json = {"httpGet": {"port": 8000}, "periodSeconds": 1, "failureThreshold": 30}
    runner.start(
        "ordered",
        {
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "data", "emptyDir": {}}],
            "initContainers": [
                container("first", "sh", "-c", "echo from the first > /data/note", **data),
                container("side", *server, env=[address], restartPolicy="Always", startupProbe=probe),
            ],
            "containers": [
                python(
                    "import pathlib, sys; note = pathlib.Path('/data/note'); print(note.read_text(), end='', flush=True);"
                    "again = note.with_name('again'); done = again.exists(); again.touch(); sys.exit(0 if done else 'bad')",
                    terminationMessagePolicy="FallbackToLogsOnError",
                    **data,
                )
            ],
        },
    )
    done = runner.wait("ordered", phase_is("Succeeded", "Failed"), "it ends")
    (status,) = objects(obj(done["status"])["containerStatuses"])
    assert obj(done["status"])["phase"] == "Succeeded"
    assert (status["restartCount"], exit_code(done)) == (1, 0)
    last = obj(obj(status["lastState"])["terminated"])
    assert (last["exitCode"], last["message"]) == (1, "from the first\nbad\n")
    assert obj(states(done, "initContainerStatuses")["first"]["terminated"])["exitCode"] == 0
    assert runner.logs("ordered", "-c", "train") == "from the first\n"
    assert runner.logs("ordered", "-c", "train", "--previous") == "from the first\nbad\n"


@pytest.mark.parametrize(
    ("name", "code", "ended"),
    [
        ("says-so", "sys.exit(143)", ("Failed", 143)),
        ("exits-zero", "sys.exit(0)", ("Succeeded", 0)),
        ("hangs", "pass", ("Failed", 137)),
    ],
)
def test_an_evicted_program_ends_with_its_own_exit_code(
    runner: Runner, name: str, code: str, ended: tuple[str, int]
) -> None:
    seen: list[Json] = []
    runner.start(
        name, {"terminationGracePeriodSeconds": 2, "containers": [python(UNTIL_SIGTERM.format(code))]}
    )
    runner.wait_log(name, "runs")
    with_finalizer: Json = {"metadata": {"finalizers": ["example.com/kept"]}}
    runner.client.merge_patch("v1", "Pod", name, with_finalizer, namespace=NAMESPACE)
    runner.client.evict(NAMESPACE, name)
    seen.append(runner.wait(name, phase_is("Succeeded", "Failed"), "it ends"))
    assert (obj(seen[0]["status"])["phase"], exit_code(seen[0])) == ended
    assert condition_of(seen[0], "DisruptionTarget")["reason"] == "EvictionByEvictionAPI"
    assert "stops" in runner.logs(name)
    without: Json = {"metadata": {"finalizers": None}}
    runner.client.merge_patch("v1", "Pod", name, without, namespace=NAMESPACE)


def test_a_program_on_a_lost_node_ends_without_notice_and_status(runner: Runner) -> None:
    runner.start("lost", {"nodeName": "node-2", "containers": [python(UNTIL_SIGTERM.format("pass"))]})
    runner.wait_log("lost", "runs")
    uid = uid_of(runner.client.get("v1", "Pod", "lost", NAMESPACE) or {})
    lose_node(runner.client, "node-2")
    runner.client.wait_until_gone("v1", "Pod", "lost", namespace=NAMESPACE, timeout_seconds=120)
    assert not (runner.layout.training / uid).exists()
    (log,) = (runner.layout.logs / "pods").glob(f"*_{uid}/train/0.log")
    assert log.read_text() == "runs\n"


@pytest.mark.parametrize(
    ("name", "spec", "reason"),
    [
        ("too-large", {"containers": [python("", resources={"requests": {"cpu": "500"}})]}, "OutOfcpu"),
        ("elsewhere", {"nodeSelector": {"a": "b"}, "containers": [python("")]}, "NodeAffinity"),
    ],
)
def test_a_node_rejects_a_pod_that_does_not_fit(runner: Runner, name: str, spec: Json, reason: str) -> None:
    runner.start(name, spec)
    rejected = runner.wait(name, phase_is("Failed"), "it is rejected")
    assert obj(rejected["status"])["reason"] == reason


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("image", {"containers": [{**python(""), "image": "private/image:1"}]}, "ErrImagePull"),
        (
            "config",
            {"containers": [python("", envFrom=[{"configMapRef": {"name": "x"}}])]},
            "ConfigMap x does not",
        ),
        (
            "host",
            {"containers": [python("")], "volumes": [{"name": "home", "hostPath": {"path": "/root"}}]},
            "/root is no folder of the platform",
        ),
    ],
)
def test_a_pod_that_cannot_start_waits_and_says_why(runner: Runner, name: str, spec: Json, said: str) -> None:
    runner.start(name, spec)
    waiting = runner.wait(name, lambda pod: said in str(pod["status"]), "it says why it waits")
    assert obj(waiting["status"])["phase"] == "Pending"


def test_a_program_that_is_not_in_its_image_fails_the_pod(runner: Runner) -> None:
    runner.start("missing", {"containers": [container("train", "no-such-program")]})
    failed = runner.wait("missing", phase_is("Failed"), "it fails")
    assert obj(states(failed)["train"]["terminated"])["reason"] == "StartError"


def test_pip_installs_nothing_but_names_what_is_missing(runner: Runner) -> None:
    script: Sequence[str] = ("sh", "-c", "pip install numpy && pip install no-such-package==1.0")
    runner.start("pip", {"containers": [container("train", *script)]})
    assert exit_code(runner.wait("pip", phase_is("Failed"), "it fails")) == 1
    assert "which has no no-such-package" in runner.logs("pip")
