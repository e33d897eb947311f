"""The API server profile of a cloud has its admission plugins and objects."""

from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from holdfast.simulator.stacks.stack import api_server_profile


def test_profile_of_gke_has_the_toleration_plugin_and_its_objects() -> None:
    profile = api_server_profile("gcp")
    assert profile.arguments == (("enable-admission-plugins", "ExtendedResourceToleration"),), (
        "GKE enables this plugin"
    )
    text = files("holdfast.simulator.stacks").joinpath(profile.objects).read_text(encoding="utf-8")
    kinds = [document["kind"] for document in yaml.safe_load_all(text)]
    assert kinds == [
        "CustomResourceDefinition",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ], "the ComputeClass, and the admission of its pods"


@pytest.mark.parametrize("cloud", ["aws", "local", ""])
def test_profile_of_another_cloud_is_empty(cloud: str, tmp_path: Path) -> None:
    profile = api_server_profile(cloud)
    assert (profile.arguments, profile.objects) == ((), ""), "only GKE has a profile"
    profile.apply_to(tmp_path / "no-kubeconfig")
