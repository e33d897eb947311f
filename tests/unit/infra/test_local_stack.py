"""The local stack as a whole: what is made, under which names, and in which order it comes and goes."""

import pytest

from pulumi_holdfast.config import versions
from tests.support.builders import local_stacks
from tests.support.builders.configurations import entry, platform_document, read
from tests.support.fakes.pulumi_engine import Recording
from tests.support.inputs import mapping, text
from tests.support.json_objects import obj, objects

OPERATORS = ("main-operators-jobset-controller", "main-operators-kuberay-controller")


def stack() -> Recording:
    return local_stacks.composed(read(platform_document()))


def before(name: str) -> set[str]:
    recording = stack()
    (resource,) = [found for found in recording if found.name == name]
    return recording.everything_before(resource)


def test_an_objects_own_labels_take_precedence() -> None:
    labels = mapping(stack().one(":Node"), "metadata", "labels")
    assert labels["holdfast.dev/system"] == "true", "the operators would not be scheduled"


def test_operators_and_job_policies_are_deleted_before_what_they_need() -> None:
    for operator in (*OPERATORS, "main-karpenter-operator-controller"):
        assert "main-cluster-system-0" in before(operator), "on destroy, helm waits for their pods to end"
    for policy in stack().of("MutatingAdmissionPolicy"):
        if "paramKind" in mapping(policy, "spec"):
            earlier = stack().everything_before(policy)
            assert "main-fallback-policy" in earlier, "without it the API server rejects every job"


def test_ladders_have_the_facts_of_their_pools() -> None:
    ladder = stack().one(":FallbackPolicy", "main-namespace-vision-ladder")
    tiers = objects(mapping(ladder, "spec")["tiers"])
    assert [obj(tier["facts"])["capacity"] for tier in tiers] == ["spot", "on-demand"]


@pytest.mark.parametrize("image", [None, "registry.example.com/controller:2"])
def test_the_controllers_image_is_configurable(image: str | None) -> None:
    document = platform_document(lambda d: d.update(fallback={"image": image}) if image else None)
    deployment = local_stacks.composed(read(document)).one(
        ":Deployment", "main-fallback-controller-deployment"
    )
    pod = mapping(deployment, "spec", "template", "spec")
    (container,) = objects(pod["containers"])
    python = f"docker.io/library/python:{versions.PYTHON_IMAGE}"
    assert container["image"] == (image or python)
    assert ("volumes" in pod) == (image is None)


def test_the_checkpoint_claim_depends_on_its_volume_and_is_deleted_with_its_namespace() -> None:
    earlier = before("main-checkpoints-of-vision-claim")
    assert earlier >= {"main-namespace-vision-namespace", "main-checkpoints-vision"}, "a claim needs both"
    claim = stack().one("CheckpointClaim", "main-checkpoints-of-vision")
    assert claim.deleted_with == "main-namespace-vision", (
        "deleted first, it would wait for the namespace's pods"
    )


def test_jobs_have_the_checkpoint_address() -> None:
    config_map = stack().one(":ConfigMap", "main-namespace-vision-checkpoints")
    volume = stack().one(":PersistentVolume", "main-checkpoints-vision")
    address = text(config_map, "data", "CHECKPOINT_URI")
    assert address == f"file://{text(volume, 'spec', 'hostPath', 'path')}"


def test_paths_are_relative_to_the_project() -> None:
    kubeconfig = text(stack().one("providers:kubernetes"), "kubeconfig")
    assert kubeconfig.startswith("/")
    assert kubeconfig.endswith("/.rehearsal/local/kubeconfig")


def test_absolute_paths_and_addresses_are_unchanged() -> None:
    document = platform_document(
        lambda d: d.update(
            cluster={"kubeconfig": "/elsewhere/kubeconfig"},
            mirror={"charts": "oci://mirror.example.com/charts"},
        )
    )
    recording = local_stacks.composed(read(document))
    assert text(recording.one("providers:kubernetes"), "kubeconfig") == "/elsewhere/kubeconfig", "as written"
    release = recording.one(":Release", "main-operators-jobset-controller")
    assert text(release, "chart") == "oci://mirror.example.com/charts/jobset", "as written"


def test_pools_have_their_configured_names() -> None:
    document = platform_document()
    names = {text(pool, "metadata", "name") for pool in stack().of(":NodePool")}
    assert names == {text(entry(document, "pools", index), "name") for index in range(4)}
