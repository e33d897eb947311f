"""The device plugins and their images."""

import pytest

from pulumi_holdfast.kubernetes.operators.device_plugins import DevicePlugins, eks_registry
from pulumi_holdfast.kubernetes.operators.pod_settings import image
from pulumi_holdfast.ladder.machines import regions
from pulumi_holdfast.ladder.taints import AKS_SPOT, GPU, SPOT, SYSTEM, Taint
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import objects, text, value

PLUGINS = ("nvidia", "efa")


def recorded(
    *, images: str | None = None, efa_version: str | None = "v0.5.31", preview: bool = False
) -> Recording:
    def build() -> None:
        DevicePlugins(
            "devices",
            charts="/charts",
            images=images,
            nvidia_version="0.19.0",
            efa_version=efa_version,
            region="eu-west-1",
        )

    return record(build, preview=preview)


def plugin(recording: Recording, which: str) -> Recorded:
    return recording.one(":Release", f"devices-{which}")


def tolerates(release: Recorded, taint: Taint) -> bool:
    """Whether one of a release's tolerations matches a taint, by the scheduler's rules."""
    return any(
        toleration.get("key") in {None, taint.key}
        and (toleration.get("operator") == "Exists" or toleration.get("value") == taint.value)
        and toleration.get("effect") in {None, taint.effect}
        for toleration in objects(release, "values", "tolerations")
    )


@pytest.mark.parametrize("preview", [False, True])
def test_each_plugin_has_its_own_release(preview: bool) -> None:
    made = [
        (text(r, "name"), text(r, "chart"), text(r, "version"))
        for r in recorded(preview=preview).of(":Release")
    ]
    assert sorted(made) == [
        ("aws-efa-k8s-device-plugin", "/charts/aws-efa-k8s-device-plugin", "v0.5.31"),
        ("nvidia-device-plugin", "/charts/nvidia-device-plugin", "0.19.0"),
    ]


def test_without_fabric_adapters_their_plugin_is_not_installed() -> None:
    names = [text(release, "name") for release in recorded(efa_version=None).of(":Release")]
    assert names == ["nvidia-device-plugin"]


@pytest.mark.parametrize("which", PLUGINS)
@pytest.mark.parametrize(
    "taint",
    [SPOT, AKS_SPOT, GPU, SYSTEM, Taint(key="example.com/team", value="vision")],
    ids=lambda taint: taint.key,
)
def test_a_plugin_tolerates_all_taints_in_the_system_namespace(which: str, taint: Taint) -> None:
    release = plugin(recorded(), which)
    assert tolerates(release, taint)
    assert text(release, "namespace") == "kube-system"


def test_nvidias_plugin_runs_on_nodes_of_gpu_pools_only_without_feature_discovery() -> None:
    values = plugin(recorded(), "nvidia")
    selector = value(values, "values", "nodeSelector")
    assert selector == {"nvidia.com/gpu.present": "true"}, "on other nodes it would report errors"
    assert value(values, "values", "gfd", "enabled") is False
    assert value(values, "values", "nfd", "enabled") is False, "it would run on every node"


def test_the_efa_plugin_runs_on_nodes_with_adapters_from_the_registry_of_its_region() -> None:
    supported = value(plugin(recorded(), "efa"), "values", "supportedInstanceLabels")
    assert supported == {"keys": ["holdfast.dev/efa"], "values": ["true"]}
    repository = text(plugin(recorded(), "efa"), "values", "image", "repository")
    assert repository == "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/aws-efa-k8s-device-plugin"


def test_plugins_come_from_the_mirror_if_one_is_set() -> None:
    recording = recorded(images="registry.example.com")
    assert [text(plugin(recording, which), "values", "image", "repository") for which in PLUGINS] == [
        "registry.example.com/nvidia/k8s-device-plugin",
        "registry.example.com/eks/aws-efa-k8s-device-plugin",
    ]


UPSTREAM = "quay.io/kuberay/operator"


@pytest.mark.parametrize("mirror", ["registry.example.com/mirror", "registry.example.com/mirror/"])
def test_a_mirror_replaces_the_registrys_host_and_keeps_the_path(mirror: str) -> None:
    assert image(mirror, UPSTREAM) == "registry.example.com/mirror/kuberay/operator"
    assert image(None, UPSTREAM) == UPSTREAM


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", "602401143452.dkr.ecr.us-east-1.amazonaws.com"),
        ("ca-west-1", "761377655185.dkr.ecr.ca-west-1.amazonaws.com"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com"),
    ],
)
def test_each_region_has_its_own_eks_registry(region: str, registry: str) -> None:
    assert eks_registry(region) == registry


def test_a_registry_is_an_account_in_a_region() -> None:
    for region in regions("aws"):
        account, _, rest = eks_registry(region).partition(".")
        assert (len(account), account.isdigit()) == (12, True), f"{account} is no account"
        assert rest.startswith(f"dkr.ecr.{region}."), f"{region} is not in {rest}"
