"""The policy pack names texts that are given as booleans and numbers as a real API server does."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.program.definitions import refusals
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.gang_pods import pod
from tests.support.builders.stack_resources import resource
from tests.support.clusters.admission import is_refused
from tests.support.clusters.control_plane import CHECKOUT, define_all

pytestmark = pytest.mark.cluster

SPEC: Json = {"containers": [{"name": "train", "image": "train:1"}]}
NODE_CLASS: Json = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}


def namespace(labels: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision", "labels": labels}}


def node_pool(labels: Json, annotations: Json) -> Json:
    spec: Json = {"nodeClassRef": NODE_CLASS, "requirements": []}
    template: Json = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu", "labels": labels},
        "spec": {"template": template},
    }


@pytest.mark.parametrize("value", ["true", True, 1.0])
def test_the_pack_names_the_objects_that_the_api_server_refuses(
    client: KubeClient, value: str | float
) -> None:
    define_all(client, CHECKOUT / "components/pulumi_holdfast/kubernetes/charts" / "karpenter-crds" / "files")
    for manifest in (
        namespace({"team": value}),
        pod("train", "default", {**SPEC, "nodeSelector": {"rack": value}}),
        node_pool({"team": value}, {}),
        node_pool({}, {"owner": value}),
    ):
        declared = resource(f"kubernetes:v1:{manifest['kind']}", "object", dict(manifest))
        named = bool(refusals(declared))
        assert is_refused(client, manifest, "") is named, f"{manifest}: {refusals(declared)}"
        assert named is (value != "true")
