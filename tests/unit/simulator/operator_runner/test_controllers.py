"""Each controller finds the ports and files it would have in its container."""

from pathlib import Path

import pytest
import yaml

from holdfast.scheduling.json import Json
from holdfast.simulator.operator_runner.controllers import CONTROLLERS, JOBSET_CERTIFICATES, controller_of
from tests.support.hosted_pods import pod, to_adapt


@pytest.mark.parametrize(
    ("app", "namespace"),
    [
        ("jobset", "jobset-system"),
        ("kuberay-operator", "kuberay-system"),
        ("karpenter", "karpenter"),
        ("fallback-controller", "holdfast-system"),
    ],
)
def test_an_operators_pod_is_known_by_its_charts_label_and_its_namespace(app: str, namespace: str) -> None:
    found = controller_of(pod(labels={"app.kubernetes.io/name": app}, namespace=namespace))
    assert found is CONTROLLERS[app], "nothing had to be added to what a cloud is given"


@pytest.mark.parametrize(
    "other",
    [
        pod(namespace="vision"),
        pod(labels={"app.kubernetes.io/name": "trainer"}),
        pod(metadata={"labels": {}}),
    ],
    ids=["in another namespace", "of another application", "of none"],
)
def test_any_other_pod_is_only_simulated(other: Json) -> None:
    assert controller_of(other) is None, "a user's pod must never become a process of this machine"


def test_jobset_serves_its_webhook_where_its_configuration_now_says() -> None:
    given = Path("/pods/one/volumes/config/app.yaml")
    invocation = CONTROLLERS["jobset"].adapt(
        to_adapt(
            args=("--zap-log-level=2", f"--config={given}"),
            files={given: "leaderElection: {leaderElect: false}\nwebhook: {timeout: 5}\n"},
            mounts={JOBSET_CERTIFICATES: Path("/pods/one/volumes/cert")},
        )
    )
    written = Path("/pods/one/adapted/controller_manager_config.yaml")
    assert f"--config={written}" in invocation.args, "it reads the adapted file"
    assert f"--config={given}" not in invocation.args, "and not the one whose ports are a container's"
    assert yaml.safe_load(invocation.files[written]) == {
        "leaderElection": {"leaderElect": False, "resourceNamespace": "operators"},
        "webhook": {
            "timeout": 5,
            "host": "127.0.0.1",
            "port": 19443,
            "certDir": "/pods/one/volumes/cert",
        },
    }, (
        "all that the chart configured stays; address, certificates and lease are those of a process outside a pod"
    )


def test_jobsets_certificate_rotator_finds_the_file_it_waits_for() -> None:
    invocation = CONTROLLERS["jobset"].adapt(to_adapt(mounts={JOBSET_CERTIFICATES: Path("/c")}))
    assert invocation.files[Path(JOBSET_CERTIFICATES) / "tls.crt"] == "", "its path cannot be configured"


def test_jobset_starts_without_a_configuration_file() -> None:
    invocation = CONTROLLERS["jobset"].adapt(to_adapt())
    (text,) = invocation.files.values()
    assert yaml.safe_load(text)["webhook"]["port"] == 19443, "the defaults hold for all else"


def test_kuberay_listens_on_loopback_ports_and_knows_its_namespace() -> None:
    invocation = CONTROLLERS["kuberay-operator"].adapt(to_adapt(args=("--qps=100",)))
    assert invocation.args == (
        "--qps=100",
        "--metrics-addr=127.0.0.1:18080",
        "--health-probe-bind-address=127.0.0.1:18082",
        "--leader-election-namespace=operators",
    ), "the chart's own arguments come first, so that these win"


def test_karpenter_gets_the_ports_its_container_declares() -> None:
    given = {"METRICS_PORT": "9000", "HEALTH_PROBE_PORT": "9001", "LOG_LEVEL": "info"}
    invocation = CONTROLLERS["karpenter"].adapt(to_adapt(variables=given, ports={9000: 50_000, 9001: 50_001}))
    assert invocation.variables == {
        "LEADER_ELECTION_NAMESPACE": "operators",
        "KUBELET_KUBECONFIG": "/kubelets",
        "METRICS_PORT": "50000",
        "HEALTH_PROBE_PORT": "50001",
        "LOG_LEVEL": "info",
    }, "whatever ports the chart was told, and all else as it was"


def test_karpenters_own_namespace_for_its_lease_is_kept() -> None:
    given = {"LEADER_ELECTION_NAMESPACE": "elsewhere"}
    invocation = CONTROLLERS["karpenter"].adapt(to_adapt(variables=given))
    assert invocation.variables["LEADER_ELECTION_NAMESPACE"] == "elsewhere", "the chart's word counts"


def test_karpenter_on_a_cloud_is_told_what_the_cloud_sells() -> None:
    invocation = CONTROLLERS["karpenter"].adapt(to_adapt(market="[]"))
    ((path, text),) = invocation.files.items()
    assert text == "[]", "as its host says"
    assert invocation.variables["INSTANCE_TYPES_FILE_PATH"] == str(path), "where it looks"


def test_karpenter_that_brings_its_own_market_keeps_it() -> None:
    given = {"INSTANCE_TYPES_FILE_PATH": "/etc/karpenter/instance-types.json"}
    invocation = CONTROLLERS["karpenter"].adapt(to_adapt(variables=given))
    assert invocation.files == {}, "there is nothing to write"
    assert invocation.variables["INSTANCE_TYPES_FILE_PATH"] == given["INSTANCE_TYPES_FILE_PATH"], "as given"


def test_the_fallback_controller_is_run_from_this_checkout_on_a_loopback_port() -> None:
    controller = CONTROLLERS["fallback-controller"]
    assert controller.module == "holdfast.fallback", "there is no program to build"
    invocation = controller.adapt(to_adapt(args=("--lease=l", "--port=8080")))
    assert invocation.args == (
        "-m",
        "holdfast.fallback",
        "--lease=l",
        "--port=8080",
        "--address=127.0.0.1",
        "--port=18080",
    ), "its container's own arguments come first, so that these win"
    assert (Path(invocation.variables["PYTHONPATH"]) / "holdfast" / "fallback" / "__main__.py").is_file(), (
        "wherever it is run"
    )


@pytest.mark.parametrize("app", sorted(CONTROLLERS))
def test_an_adaptation_keeps_every_variable(app: str) -> None:
    invocation = CONTROLLERS[app].adapt(to_adapt(variables={"SOME": "thing"}))
    assert invocation.variables["SOME"] == "thing", "a chart's values must reach the controller"
