"""The metrics of jobs: who collects them on each cloud, and that nothing of it is in a stack that does not ask for it."""

import json
from collections.abc import Callable, Mapping
from functools import cache, partial

import pytest

from pulumi_holdfast.aws.managed_prometheus import scrape_configuration
from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.fallback_controller.component import LABELS
from pulumi_holdfast.kubernetes.job_metrics import (
    AZURE_API,
    GOOGLE_API,
    TARGETS,
    gpu_daemon_set_spec,
    state_deployment_spec,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.schema import Schema, violations
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.builders.configurations import (
    Document,
    aws_platform,
    fixed_platform,
    gcp_platform,
    platform_document,
    problems,
)
from tests.support.clusters.admitted_examples import STACKS as CLOUDS
from tests.support.fakes.pulumi_engine import Recording
from tests.support.inputs import objects as objects_in
from tests.support.inputs import value
from tests.support.json_objects import obj, objects
from tests.support.published import Published

MIRROR = "registry.example.com/mirror"


def _asks(jobs: str, document: Document) -> None:
    document["fallback"] = {"monitoring": {"jobs": jobs, "alerts": True, "release": "stack"}}
    document["mirror"] = {"images": MIRROR}


COMPOSED: Mapping[str, Callable[[str], Recording]] = {
    "aws": lambda jobs: aws_stacks.composed(aws_platform(partial(_asks, jobs))),
    "azure": lambda jobs: azure_stacks.composed(fixed_platform(partial(_asks, jobs))),
    "gcp": lambda jobs: gcp_stacks.composed(gcp_platform(partial(_asks, jobs))),
}


@cache
def stack(cloud: str, jobs: str = "cloud") -> Recording:
    return COMPOSED[cloud](jobs)


def policy_peers(recording: Recording) -> list[Json]:
    policy = recording.one(":NetworkPolicy", "main-fallback-controller-holdfast-system-network")
    (rule,) = objects_in(policy, "spec", "ingress")
    return list(objects(rule["from"]))


@pytest.mark.parametrize("cloud", CLOUDS)
def test_stacks_that_do_not_ask_have_no_exporter_and_no_managed_prometheus(cloud: str) -> None:
    recording = CLOUDS[cloud]()
    for kind in (":JobMetrics", ":ManagedPrometheus", ":AzurePrometheus", ":DaemonSet"):
        assert not recording.of(kind)
    for cluster in recording.of(":Cluster") + recording.of(":ManagedCluster"):
        assert not {"monitoringConfig", "azureMonitorProfile"} & cluster.inputs.keys()
    assert "ipBlock" not in str(policy_peers(recording))


@pytest.mark.parametrize("cloud", COMPOSED)
def test_exporters_come_from_the_mirror_at_the_pinned_versions(cloud: str) -> None:
    recording = stack(cloud)
    for kind, name, image in (
        (":DaemonSet", "gpus", f"nvidia/k8s/dcgm-exporter:{versions.DCGM_EXPORTER}"),
        (":Deployment", "state", f"kube-state-metrics/kube-state-metrics:{versions.KUBE_STATE_METRICS}"),
    ):
        made = recording.one(kind, f"main-job-metrics-{name}")
        (container,) = objects_in(made, "spec", "template", "spec", "containers")
        assert container["image"] == f"{MIRROR}/{image}"
        labels = obj(value(made, "spec", "selector", "matchLabels"))
        assert labels in [target.labels for target in TARGETS]


def test_amazons_scraper_reads_every_target_in_the_network_of_the_nodes() -> None:
    recording = stack("aws")
    scraper = recording.one(":amp/scraper:Scraper")
    cluster = recording.one(":eks/cluster:Cluster")
    assert value(scraper, "source", "eks", "subnetIds") == value(cluster, "vpcConfig", "subnetIds")
    assert value(scraper, "destination", "amp", "workspaceArn")
    assert cluster.name in recording.everything_before(scraper), (
        "its access entry goes with it, before the cluster"
    )
    jobs = objects(json.loads(scrape_configuration())["scrape_configs"])
    assert [job["job_name"] for job in jobs] == [target.name for target in TARGETS]
    assert all(job["honor_labels"] for job in jobs), "metrics are about pods of other namespaces"
    kept = {
        str(rule["source_labels"]): rule["regex"]
        for rule in objects(jobs[0]["relabel_configs"])
        if "regex" in rule
    }
    assert kept["['__meta_kubernetes_pod_label_app_kubernetes_io_name']"] == r"dcgm\-exporter"
    assert not recording.of(":PodMonitor")


def test_google_collects_from_the_pods_of_monitors_that_keep_the_metrics_labels() -> None:
    recording = stack("gcp")
    assert value(recording.one(":Cluster"), "monitoringConfig", "managedPrometheus", "enabled") is True
    monitors = recording.of(":ClusterPodMonitoring")
    assert {str(value(each, "apiVersion")) for each in monitors} == {GOOGLE_API}
    added = {
        str(value(each, "metadata", "name")): value(each, "spec", "targetLabels", "metadata")
        for each in monitors
    }
    assert added == {
        "holdfast-dcgm-exporter": [],
        "holdfast-kube-state-metrics": [],
        "holdfast-fallback-controller": ["pod"],
    }
    pod = obj(value(recording.one(":DaemonSet"), "spec", "template", "spec"))
    assert {"path": "/home/kubernetes/bin/nvidia", "type": "Directory"} in [
        volume.get("hostPath") for volume in objects(pod["volumes"])
    ]


def test_azure_connects_the_agents_of_the_cluster_with_a_workspace() -> None:
    recording = stack("azure")
    assert value(recording.one(":ManagedCluster"), "azureMonitorProfile", "metrics", "enabled") is True
    rule = recording.one(":DataCollectionRule")
    (account,) = objects_in(rule, "destinations", "monitoringAccounts")
    (flow,) = objects_in(rule, "dataFlows")
    assert flow["destinations"] == [account["name"]]
    assert flow["streams"] == ["Microsoft-PrometheusMetrics"]
    association = recording.one(":DataCollectionRuleAssociation")
    assert "main-cluster-control-plane" in str(value(association, "resourceUri"))
    for monitor in recording.of(":PodMonitor"):
        assert value(monitor, "apiVersion") == AZURE_API
        (endpoint,) = objects_in(monitor, "spec", "podMetricsEndpoints")
        assert endpoint["honorLabels"] is True
        assert value(monitor, "spec", "labelLimit") == 63


@pytest.mark.parametrize(
    ("cloud", "peer"), [("aws", "10.0.0.0/8"), ("azure", "kube-system"), ("gcp", "gke-gmp-system")]
)
def test_the_managed_scraper_reaches_the_controller(cloud: str, peer: str) -> None:
    assert peer in str(policy_peers(stack(cloud)))
    assert peer not in str(policy_peers(stack(cloud, "operator")))


@pytest.mark.parametrize("cloud", COMPOSED)
def test_a_prometheus_operator_selects_the_monitors_by_the_release(cloud: str) -> None:
    recording = stack(cloud, "operator")
    monitors = recording.of(":PodMonitor")
    names = {str(value(each, "metadata", "name")) for each in monitors}
    assert names == {"holdfast-dcgm-exporter", "holdfast-kube-state-metrics"}, (
        "the ServiceMonitor of the alerts has the controller"
    )
    assert {str(value(each, "apiVersion")) for each in monitors} == {"monitoring.coreos.com/v1"}
    assert {str(value(each, "metadata", "labels", "release")) for each in monitors} == {"stack"}
    assert not recording.of(":ManagedPrometheus") + recording.of(":AzurePrometheus")


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_the_clouds_models_accept_what_the_stack_sets(cloud: str) -> None:
    wrong = Published.of(cloud).complaints_of(cloud, stack(cloud))
    # The ids that the mocks make are none of the cloud's.
    assert [each for each in wrong if "does not match" not in each] == []


def test_azures_sdk_accepts_what_the_stack_sets() -> None:
    azure = Schema.for_package("azure-native")
    monitored = [each for each in stack("azure") if each.type.startswith("azure-native:monitor:")]
    assert len(monitored) == 4
    for each in monitored:
        assert violations(each.inputs, azure.resource(each.type)) == []


def test_targets_are_the_pods_of_the_exporters_and_of_the_controller() -> None:
    gpus, state, controller = TARGETS
    for target, spec in ((gpus, gpu_daemon_set_spec("image", None)), (state, state_deployment_spec("image"))):
        pod = obj(obj(spec["template"])["spec"])
        (container,) = objects(pod["containers"])
        assert target.port in [port["name"] for port in objects(container["ports"])]
        assert obj(obj(spec["template"])["metadata"])["labels"] == target.labels
    assert controller.labels == LABELS


def test_a_container_of_the_runtime_gets_no_right_of_the_node() -> None:
    pod = obj(obj(gpu_daemon_set_spec("image", None)["template"])["spec"])
    (container,) = objects(pod["containers"])
    assert obj(container["securityContext"])["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in obj(container["securityContext"])


def test_this_machine_has_no_managed_prometheus() -> None:
    (problem,) = problems(platform_document(partial(_of_cloud, "cloud")))
    assert "Write operator" in problem.fix
    assert not problems(platform_document(partial(_of_cloud, "operator")))


def _of_cloud(jobs: str, document: Document) -> None:
    document["fallback"] = {"monitoring": {"jobs": jobs}}
