"""The device plugins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.components.operators.device_plugins import DevicePlugins, DevicePluginsArgs, eks_registry
from holdfast.components.operators.pod_settings import image
from holdfast.scheduling.machines import regions
from holdfast.scheduling.taints import AKS_SPOT, GPU, SPOT, SYSTEM, Taint
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import objects, text, value

ARGS = DevicePluginsArgs(
    charts="/charts", images=None, nvidia_version="0.19.0", efa_version="v0.5.31", region="eu-west-1"
)
PLUGINS = ("nvidia", "efa")


def recorded(args: DevicePluginsArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: DevicePlugins("devices", args), preview=preview)


def plugin(recording: Recording, which: str) -> Recorded:
    return recording.one(":Release", f"devices-{which}")


def tolerates(release: Recorded, taint: Taint) -> bool:
    """Whether one of a release's tolerations matches a taint, as the scheduler matches them."""
    return any(
        toleration.get("key") in {None, taint.key}
        and (toleration.get("operator") == "Exists" or toleration.get("value") == taint.value)
        and toleration.get("effect") in {None, taint.effect}
        for toleration in objects(release, "values", "tolerations")
    )


@pytest.mark.parametrize("preview", [False, True])
def test_each_plugin_is_a_release_of_its_own_chart(preview: bool) -> None:
    made = [
        (text(r, "name"), text(r, "chart"), text(r, "version"))
        for r in recorded(preview=preview).of(":Release")
    ]
    assert sorted(made) == [
        ("aws-efa-k8s-device-plugin", "/charts/aws-efa-k8s-device-plugin", "v0.5.31"),
        ("nvidia-device-plugin", "/charts/nvidia-device-plugin", "0.19.0"),
    ], "pinned, each by itself"


def test_where_no_pool_has_fabric_adapters_their_plugin_is_left_out() -> None:
    names = [text(release, "name") for release in recorded(replace(ARGS, efa_version=None)).of(":Release")]
    assert names == ["nvidia-device-plugin"], "it would have nowhere to run"


@pytest.mark.parametrize("which", PLUGINS)
@pytest.mark.parametrize("taint", [SPOT, AKS_SPOT, GPU, SYSTEM], ids=lambda taint: taint.key)
def test_a_plugin_tolerates_every_taint_of_ours(which: str, taint: Taint) -> None:
    assert tolerates(plugin(recorded(), which), taint), (
        "a node that keeps its plugin out never offers the devices which its pods wait for"
    )


@pytest.mark.parametrize("which", PLUGINS)
def test_a_plugin_tolerates_taints_that_others_put_on_their_nodes(which: str) -> None:
    assert tolerates(plugin(recorded(), which), Taint(key="example.com/team", value="vision")), (
        "its hardware is there whoever the node is for"
    )


@pytest.mark.parametrize("which", PLUGINS)
def test_a_plugin_stands_beside_the_clusters_own_agents(which: str) -> None:
    assert text(plugin(recorded(), which), "namespace") == "kube-system", (
        "it has the priority of what a node cannot do without"
    )


def test_nvidias_plugin_runs_on_nodes_of_gpu_pools_alone() -> None:
    selector = value(plugin(recorded(), "nvidia"), "values", "nodeSelector")
    assert selector == {"nvidia.com/gpu.present": "true"}, (
        "on others it would find nothing, and say so for ever"
    )


def test_nvidias_plugin_brings_no_agent_to_look_for_gpus() -> None:
    values = plugin(recorded(), "nvidia")
    assert value(values, "values", "gfd", "enabled") is False, (
        "a pool's machine types say which GPUs they have"
    )
    assert value(values, "values", "nfd", "enabled") is False, "and it would run on every node"


def test_the_fabrics_plugin_runs_on_nodes_that_were_given_adapters() -> None:
    supported = value(plugin(recorded(), "efa"), "values", "supportedInstanceLabels")
    assert supported == {"keys": ["holdfast.dev/efa"], "values": ["true"]}, (
        "not wherever a type could have had some"
    )


def test_the_fabrics_plugin_is_pulled_from_the_registry_of_its_region() -> None:
    repository = text(plugin(recorded(), "efa"), "values", "image", "repository")
    assert repository == "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/aws-efa-k8s-device-plugin", (
        "the chart's own lies in Oregon, out of a closed network's reach"
    )


def test_plugins_are_pulled_from_a_mirror_where_there_is_one() -> None:
    recording = recorded(replace(ARGS, images="registry.example.com"))
    assert [text(plugin(recording, which), "values", "image", "repository") for which in PLUGINS] == [
        "registry.example.com/nvidia/k8s-device-plugin",
        "registry.example.com/eks/aws-efa-k8s-device-plugin",
    ], "no other registry is reached from there"


UPSTREAM = "quay.io/kuberay/operator"


def test_without_a_mirror_an_image_is_upstreams() -> None:
    assert image(None, UPSTREAM) == UPSTREAM, "as its project publishes it"


@pytest.mark.parametrize("mirror", ["registry.example.com/mirror", "registry.example.com/mirror/"])
def test_a_mirror_takes_the_place_of_the_registrys_host(mirror: str) -> None:
    assert image(mirror, UPSTREAM) == "registry.example.com/mirror/kuberay/operator", (
        "what is copied with its path is found by its path"
    )


def test_images_of_the_same_name_stay_apart_in_a_mirror() -> None:
    one, other = image("mirror", "quay.io/kuberay/operator"), image("mirror", "quay.io/other/operator")
    assert one != other, "the path before the name is kept"


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", "602401143452.dkr.ecr.us-east-1.amazonaws.com"),
        ("ca-west-1", "761377655185.dkr.ecr.ca-west-1.amazonaws.com"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com"),
    ],
)
def test_each_region_has_eks_images_in_a_registry_of_its_own(region: str, registry: str) -> None:
    assert eks_registry(region) == registry, "the one that its endpoint leads to"


def test_a_registry_is_an_account_and_its_region() -> None:
    for region in regions("aws"):
        account, _, rest = eks_registry(region).partition(".")
        assert (len(account), account.isdigit()) == (12, True), f"{account} is no account"
        assert rest.startswith(f"dkr.ecr.{region}."), f"{region} is reached in {rest}"
