"""The operators that run training jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

ARGS = OperatorsArgs(charts="/charts", jobset_version="0.12.0", kuberay_version="1.6.2", replicas=1)


def recorded(args: OperatorsArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: Operators("operators", args), preview=preview)


def jobset(recording: Recording) -> Recorded:
    return recording.one(":Release", "operators-jobset-controller")


def kuberay(recording: Recording) -> Recorded:
    return recording.one(":Release", "operators-kuberay-controller")


@pytest.mark.parametrize("preview", [False, True])
def test_each_operator_has_a_release_of_its_own_beside_its_crds(preview: bool) -> None:
    releases = {text(release, "name") for release in recorded(preview=preview).of(":Release")}
    assert releases == {"jobset", "jobset-crds", "kuberay-operator", "kuberay-crds"}, (
        "names that helm users meet"
    )


def test_each_operator_has_a_namespace_of_its_own() -> None:
    namespaces = {text(namespace, "metadata", "name") for namespace in recorded().of(":Namespace")}
    assert namespaces == {"jobset-system", "kuberay-system"}, "their permissions are apart"


def test_images_are_pinned_to_the_operators_versions() -> None:
    recording = recorded()
    images = [mapping(release, "values", "image") for release in (jobset(recording), kuberay(recording))]
    assert [image["tag"] for image in images] == ["v0.12.0", "v1.6.2"], (
        "JobSet's chart would take a moving tag"
    )


def test_images_come_from_a_mirror_where_there_is_one() -> None:
    recording = recorded(replace(ARGS, images="registry.example.com/mirror"))
    images = [
        text(release, "values", "image", "repository") for release in (jobset(recording), kuberay(recording))
    ]
    assert images == [
        "registry.example.com/mirror/jobset/jobset",
        "registry.example.com/mirror/kuberay/operator",
    ], "a cluster without internet reaches no other registry"


def test_charts_come_from_upstream_where_there_is_no_mirror() -> None:
    recording = recorded(replace(ARGS, charts=None))
    assert text(jobset(recording), "chart") == "oci://registry.k8s.io/jobset/charts/jobset", "JobSet's own"
    assert (
        text(kuberay(recording), "repositoryOpts", "repo") == "https://ray-project.github.io/kuberay-helm"
    ), "KubeRay's own"


def test_replicas_prefer_zones_of_their_own_without_insisting() -> None:
    recording = recorded(replace(ARGS, replicas=2))
    for placement in (
        mapping(jobset(recording), "values", "controller"),
        mapping(kuberay(recording), "values"),
    ):
        kinds = mapping(placement, "affinity", "podAntiAffinity")
        assert list(kinds) == ["preferredDuringSchedulingIgnoredDuringExecution"], (
            "a rule would leave a rolling update's third pod without a node"
        )
        (preferred,) = objects(kinds, "preferredDuringSchedulingIgnoredDuringExecution")
        assert text(preferred, "podAffinityTerm", "topologyKey") == "topology.kubernetes.io/zone", (
            "the loss of a zone must not take both"
        )


@pytest.mark.parametrize(("replicas", "elects"), [(1, False), (2, True)])
def test_a_leader_is_elected_among_several(replicas: int, elects: bool) -> None:
    recording = recorded(replace(ARGS, replicas=replicas))
    assert value(jobset(recording), "values", "controller", "replicas") == replicas, "as many as asked for"
    assert value(jobset(recording), "values", "controller", "leaderElection", "enable") is elects, (
        "one has no rival"
    )
    assert value(kuberay(recording), "values", "replicas") == replicas, "as many as asked for"
    assert value(kuberay(recording), "values", "leaderElectionEnabled") is elects, "one has no rival"


def test_operators_run_on_system_nodes() -> None:
    recording = recorded()
    for placement in (
        mapping(jobset(recording), "values", "controller"),
        mapping(kuberay(recording), "values"),
    ):
        assert placement["nodeSelector"] == {"holdfast.dev/system": "true"}, "no interruption takes these"
        tolerations = objects(placement, "tolerations")
        assert tolerations == [{"key": "CriticalAddonsOnly", "operator": "Exists"}], "which are tainted"
