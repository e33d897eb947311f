"""An API server is like a cloud's where something is known of that cloud's."""

from importlib.resources import files
from pathlib import Path

import yaml

from holdfast.simulator.stacks.stack import api_server_profile


def test_gkes_api_servers_let_pods_with_gpus_in_to_machines_with_gpus() -> None:
    assert api_server_profile("gcp").admission_plugins == ("ExtendedResourceToleration",), (
        "GKE has this one on"
    )


def test_an_api_server_of_another_cloud_is_plain(tmp_path: Path) -> None:
    for cloud in ("aws", "local", ""):
        likeness = api_server_profile(cloud)
        assert (likeness.admission_plugins, likeness.objects) == ((), ""), f"{cloud} has something of GKE's"
        likeness.put_into(tmp_path / "no-kubeconfig")


def test_gkes_objects_can_be_read() -> None:
    text = (
        files("holdfast.simulator.stacks")
        .joinpath(api_server_profile("gcp").objects)
        .read_text(encoding="utf-8")
    )
    kinds = [document["kind"] for document in yaml.safe_load_all(text)]
    assert kinds == [
        "CustomResourceDefinition",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ], "a class, and the way in to its nodes"
