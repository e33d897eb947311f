"""The local stack as a whole: what is made, under which names, and in which order it comes and goes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from holdfast.infra import versions
from holdfast.infra.local.stack import compose
from tests.support.builders.configurations import entry, list_of, platform_document, read
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, text
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from tests.support.builders.configurations import Document

OPERATORS = ("operators-jobset-controller", "operators-kuberay-controller")


@cache
def stack(*, preview: bool = False) -> Recording:
    platform = read(platform_document())
    return record(lambda: compose(platform, "local"), preview=preview)


def composed(document: Json) -> Recording:
    platform = read(document)
    return record(lambda: compose(platform, "local"))


def before(name: str) -> set[str]:
    recording = stack()
    (resource,) = [found for found in recording if found.name == name]
    return recording.everything_before(resource)


def test_a_preview_registers_what_an_up_registers() -> None:
    planned = {resource.urn for resource in stack(preview=True)}
    made = {resource.urn for resource in stack()}
    assert planned == made, "nothing may hang on a value that only an up knows"


def test_every_resource_has_a_name_of_its_own() -> None:
    names = [resource.name for resource in stack()]
    assert len(set(names)) == len(names), "two of one name are hard to tell apart in a plan"


def test_every_object_is_sent_to_the_stacks_own_cluster() -> None:
    strays = [
        resource.name
        for resource in stack()
        if resource.type.startswith("kubernetes:") and resource.provider != "cluster-kubernetes"
    ]
    assert not strays, "these would go to whatever cluster the user's kubectl points at"


def test_every_object_says_whose_it_is() -> None:
    for resource in stack():
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release"):
            labels = mapping(resource, "metadata", "labels")
            assert labels["app.kubernetes.io/managed-by"] == "holdfast", (
                f"{resource.name} is found by its label"
            )
            assert labels["holdfast.dev/stack"] == "local", f"{resource.name} names its stack"


def test_the_labels_of_all_do_not_take_the_place_of_an_objects_own() -> None:
    labels = mapping(stack().one(":Node"), "metadata", "labels")
    assert labels["holdfast.dev/system"] == "true", "the operators would not be scheduled"


@pytest.mark.parametrize("pool", ["cpu", "cpu-spot", "a100-spot", "a100"])
def test_pools_go_while_karpenter_still_ends_their_nodes(pool: str) -> None:
    assert "karpenter-operator-controller" in before(f"pool-{pool}-node-pool"), (
        "without it the finalizers of NodeClaims are never removed"
    )


@pytest.mark.parametrize("namespace", ["vision", "tabular"])
def test_training_namespaces_go_first(namespace: str) -> None:
    earlier = before(f"namespace-{namespace}-namespace")
    assert earlier >= set(OPERATORS), "KubeRay and JobSet must answer for the finalizers of what is in it"
    assert earlier >= {f"pool-{pool}-node-pool" for pool in ("cpu", "cpu-spot", "a100-spot", "a100")}, (
        "pods that still run hold their nodes, and with them the pools"
    )
    assert "fallback-policy-crd" in earlier, "its ladder is one of these"
    assert "fallback-controller-deployment" in earlier, "a job that is half way is not left there"


def test_the_fallback_controller_goes_before_the_pools_whose_jobs_it_would_move() -> None:
    earlier = before("fallback-controller-deployment")
    assert earlier >= {f"pool-{pool}-node-pool" for pool in ("cpu", "cpu-spot", "a100-spot", "a100")}, (
        "nodes that go would look like evictions to it"
    )


def test_the_policies_for_jobs_come_after_the_kind_whose_objects_they_read() -> None:
    for policy in stack().of("MutatingAdmissionPolicy"):
        if "paramKind" in mapping(policy, "spec"):
            assert "fallback-policy-crd" in stack().everything_before(policy), (
                "without it the API server refuses every job"
            )


def test_ladders_say_what_their_pools_are() -> None:
    ladder = stack().one(":FallbackPolicy", "namespace-vision-ladder")
    tiers = objects(mapping(ladder, "spec")["tiers"])
    assert [obj(tier["facts"])["capacity"] for tier in tiers] == ["spot", "on-demand"], (
        "an empty pool has no node to inspect"
    )


@pytest.mark.parametrize("image", [None, "registry.example.com/controller:2"])
def test_the_controllers_image_can_be_chosen(image: str | None) -> None:
    document = platform_document(lambda d: d.update(fallback={"image": image}) if image else None)
    deployment = composed(document).one(":Deployment", "fallback-controller-deployment")
    pod = mapping(deployment, "spec", "template", "spec")
    (container,) = objects(pod["containers"])
    upstream = f"ghcr.io/holdfast-dev/fallback-controller:{versions.FALLBACK_CONTROLLER}"
    assert container["image"] == (image or upstream), "whichever the nodes can pull"


@pytest.mark.parametrize("namespace", ["vision", "tabular"])
def test_admission_is_in_force_before_the_first_pod_could_be(namespace: str) -> None:
    policies = {resource.name for resource in stack().of("MutatingAdmissionPolicyBinding")}
    assert policies, "there are rules"
    assert policies <= before(f"namespace-{namespace}-namespace"), (
        "a pod admitted without them would stay pending"
    )


@pytest.mark.parametrize("operator", [*OPERATORS, "karpenter-operator-controller"])
def test_operators_go_while_they_still_have_a_node(operator: str) -> None:
    assert "cluster-system-0" in before(operator), "on destroy, helm waits for their pods to end"


def test_the_claim_is_made_in_a_namespace_that_exists_on_a_volume_that_exists() -> None:
    assert {"namespace-vision-namespace", "checkpoints-vision"} <= before("checkpoints-of-vision-claim"), (
        "a claim needs both"
    )


def test_the_claim_goes_with_its_namespace() -> None:
    claim = stack().one("CheckpointClaim", "checkpoints-of-vision")
    assert claim.deleted_with == "namespace-vision", (
        "asked to go first, it would wait for pods that are only ended with the namespace"
    )


def test_jobs_learn_where_to_checkpoint() -> None:
    config_map = stack().one(":ConfigMap", "namespace-vision-checkpoints")
    volume = stack().one(":PersistentVolume", "checkpoints-vision")
    address = text(config_map, "data", "CHECKPOINT_URI")
    assert address == f"file://{text(volume, 'spec', 'hostPath', 'path')}", "address and volume are one place"


def test_paths_are_taken_from_the_projects_folder() -> None:
    kubeconfig = text(stack().one("providers:kubernetes"), "kubeconfig")
    assert kubeconfig.startswith("/"), "the program may be run from any folder"
    assert kubeconfig.endswith("/.rehearsal/local/kubeconfig"), "where `make up` writes it"


def test_absolute_paths_and_addresses_are_taken_as_they_are() -> None:
    document = platform_document(
        lambda d: d.update(
            cluster={"kubeconfig": "/elsewhere/kubeconfig"},
            mirror={"charts": "oci://mirror.example.com/charts"},
        )
    )
    recording = composed(document)
    assert text(recording.one("providers:kubernetes"), "kubeconfig") == "/elsewhere/kubeconfig", "as written"
    release = recording.one(":Release", "operators-jobset-controller")
    assert text(release, "chart") == "oci://mirror.example.com/charts/jobset", "as written"


def test_versions_come_from_one_place() -> None:
    found = {text(release, "name"): text(release, "version") for release in stack().of(":Release")}
    assert found == {
        "jobset": versions.JOBSET,
        "jobset-crds": versions.JOBSET,
        "kuberay-operator": versions.KUBERAY,
        "kuberay-crds": versions.KUBERAY,
        "karpenter": versions.KARPENTER_KWOK_CHART,
        "karpenter-crds": versions.KARPENTER,
    }, "an upgrade is one line"


def test_a_pool_and_a_namespace_added_change_no_other_name() -> None:
    def more(document: Document) -> None:
        list_of(document, "pools").insert(
            0, {"name": "g6", "capacity": "spot", "instanceTypes": ["g6.12xlarge"], "maxNodes": 1}
        )
        list_of(document, "namespaces").insert(0, {"name": "speech", "ladder": [{"pool": "cpu"}]})

    grown = {resource.urn for resource in composed(platform_document(more))}
    assert {resource.urn for resource in stack()} < grown, "or adding one would replace others"


def test_a_stack_without_training_namespaces_is_a_stack() -> None:
    recording = composed(platform_document(lambda d: d.update(namespaces=[])))
    assert not recording.of("TrainingNamespace"), "teams may come later"
    assert recording.of(":NodePool"), "the pools are there for them"


def test_pools_have_the_users_names() -> None:
    document = platform_document()
    names = {text(pool, "metadata", "name") for pool in stack().of(":NodePool")}
    assert names == {text(entry(document, "pools", index), "name") for index in range(4)}, (
        "one name everywhere"
    )
