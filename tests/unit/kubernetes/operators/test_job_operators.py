"""JobSet and KubeRay: charts, images, replicas, and the nodes on which they run."""

from collections.abc import Sequence

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.operators.job_operators import Operators
from pulumi_holdfast.ladder.json import Json
from tests.support.builders import aks_components, gke_components
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value

VERSIONS = {"jobset": "0.12.0", "kuberay-operator": "1.6.2"}


def recorded(
    *,
    charts: str | None = "/charts",
    images: str | None = None,
    replicas: int = 1,
    namespaces: Sequence[str] = (),
    preview: bool = False,
) -> Recording:
    def build() -> None:
        Operators(
            "operators",
            charts=charts,
            images=images,
            versions=VERSIONS,
            replicas=replicas,
            namespaces=namespaces,
        )

    return record(build, preview=preview)


def chart_values(*, images: str | None = None, replicas: int = 1) -> tuple[Json, Json]:
    """The values of JobSet's and KubeRay's charts."""
    recording = recorded(images=images, replicas=replicas)
    jobset, kuberay = (
        mapping(recording.one(":Release", f"operators-{operator}-controller"), "values")
        for operator in ("jobset", "kuberay")
    )
    return jobset, kuberay


def pod_settings(*, replicas: int = 1) -> tuple[Json, Json]:
    """The settings of both operators' pods in these values."""
    jobset, kuberay = chart_values(replicas=replicas)
    return mapping(jobset, "controller"), kuberay


@pytest.mark.parametrize("preview", [False, True])
def test_each_operator_has_its_own_namespace_and_releases_for_crds_and_controller(preview: bool) -> None:
    recording = recorded(preview=preview)
    releases = {text(release, "name") for release in recording.of(":Release")}
    assert releases == {"jobset", "jobset-crds", "kuberay-operator", "kuberay-crds"}
    namespaces = {text(namespace, "metadata", "name") for namespace in recording.of(":Namespace")}
    assert namespaces == {"jobset-system", "kuberay-system"}


def test_charts_and_images_are_the_projects_own_or_those_of_the_mirror() -> None:
    tags = [value(values, "image", "tag") for values in chart_values()]
    assert tags == [f"v0.12.0@{versions.JOBSET_IMAGE_DIGEST}", "v1.6.2"]
    images = [
        text(values, "image", "repository") for values in chart_values(images="registry.example.com/mirror")
    ]
    assert images == [
        "registry.example.com/mirror/jobset/jobset",
        "registry.example.com/mirror/kuberay/operator",
    ]
    recording = recorded(charts=None)
    jobset = recording.one(":Release", "operators-jobset-controller")
    assert text(jobset, "chart") == "oci://registry.k8s.io/jobset/charts/jobset"
    kuberay = recording.one(":Release", "operators-kuberay-controller")
    assert text(kuberay, "repositoryOpts", "repo") == "https://ray-project.github.io/kuberay-helm"


def test_replicas_prefer_different_zones() -> None:
    for settings in pod_settings(replicas=2):
        kinds = mapping(settings, "affinity", "podAntiAffinity")
        assert list(kinds) == ["preferredDuringSchedulingIgnoredDuringExecution"]
        (preferred,) = objects(kinds, "preferredDuringSchedulingIgnoredDuringExecution")
        assert text(preferred, "podAffinityTerm", "topologyKey") == "topology.kubernetes.io/zone"


@pytest.mark.parametrize(("replicas", "elects"), [(1, False), (2, True)])
def test_several_replicas_elect_a_leader(replicas: int, elects: bool) -> None:
    jobset, kuberay = chart_values(replicas=replicas)
    assert mapping(jobset, "controller")["replicas"] == kuberay["replicas"] == replicas
    assert value(jobset, "controller", "leaderElection", "enable") is elects
    assert kuberay["leaderElectionEnabled"] is elects


def test_operators_run_on_system_nodes_and_not_on_spot_or_gpu_nodes() -> None:
    for settings in pod_settings():
        assert settings["nodeSelector"] == {"holdfast.dev/system": "true"}
        assert objects(settings, "tolerations") == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


def test_no_job_preempts_kuberay_also_where_the_class_needs_a_quota() -> None:
    assert chart_values()[1]["priorityClassName"] == "system-cluster-critical"
    release = recorded().one(":Release", "operators-kuberay-controller")
    quota = recorded().one("core/v1:ResourceQuota", "operators-kuberay-priority")
    assert quota.name in release.depends_on
    (scope,) = objects(quota, "spec", "scopeSelector", "matchExpressions")
    assert scope["values"] == ["system-cluster-critical"]
    assert text(quota, "metadata", "namespace") == "kuberay-system"


def test_operators_fit_the_system_nodes_of_aks_and_gke() -> None:
    (aks,) = objects(aks_components.recorded_cluster().one(":ManagedCluster"), "agentPoolProfiles")
    gke = mapping(gke_components.recorded_cluster().one(":NodePool"), "nodeConfig")
    for settings in pod_settings():
        for labels in (mapping(aks, "nodeLabels"), mapping(gke, "labels")):
            assert mapping(settings, "nodeSelector").items() <= labels.items(), "otherwise pods stay pending"
    assert value(aks, "nodeTaints") == ["CriticalAddonsOnly=true:NoSchedule"]
    assert not gke.get("taints"), "GKE's own services run there and would not tolerate it"


def test_kuberay_acts_in_the_training_namespaces_alone_and_without_any_in_all() -> None:
    release = recorded(namespaces=["vision", "tabular"]).one(":Release", "operators-kuberay-controller")
    assert value(release, "values", "watchNamespace") == ["vision", "tabular"]
    assert value(release, "values", "singleNamespaceInstall") is True
    assert value(release, "values", "crNamespacedRbacEnable") is False
    everywhere = mapping(recorded().one(":Release", "operators-kuberay-controller"), "values")
    assert not everywhere.keys() & {"watchNamespace", "singleNamespaceInstall"}


def test_writes_outside_training_namespaces_are_refused_only_where_there_are_some() -> None:
    bounded = recorded(namespaces=["vision"]).one(":ValidatingAdmissionPolicyBinding")
    assert mapping(bounded, "spec") == {"policyName": "operator-writes", "validationActions": ["Deny"]}
    assert not recorded().of(":ValidatingAdmissionPolicy")


def test_the_rights_of_jobset_are_bounded_before_its_chart_makes_its_role() -> None:
    recording = recorded()
    release = recording.one(":Release", "operators-jobset-controller")
    assert "operators-jobset-access-binding" in recording.everything_before(release)


def test_kuberay_may_update_a_rayjob_in_a_namespace_that_is_deleted() -> None:
    recording = recorded()
    given = objects(recording.one(":ClusterRole", "operators-kuberay-finalizers"), "rules")[0]
    assert given["resources"] == ["rayclusters", "rayjobs", "rayservices"]
    assert given["verbs"] == ["patch", "update"]
    release = recording.one(":Release", "operators-kuberay-controller")
    assert "operators-kuberay-finalizers-binding" in recording.everything_before(release)
