"""A cluster of pulumi-eks takes the place of our own: the example under Pulumi's mocks, with the plugin's answer."""

import json
import runpy
from typing import Final, cast

import pulumi
import pytest
import yaml
from pulumi.runtime import mocks as pulumi_mocks

from pulumi_holdfast.ladder.json import Json
from tests.support.doc_pages import ROOT
from tests.support.fakes.cloud_outputs import AUTHORITY, ENDPOINT, GROUP, ISSUER, eks_outputs
from tests.support.fakes.pulumi_engine import PROJECT, run_mocked

EXAMPLE: Final = ROOT / "examples/parts/pulumi-eks"
INSIDE: Final = f"urn:pulumi:dev::{PROJECT}::eks:index:Cluster$aws:eks/cluster:Cluster::shared-eksCluster"
#: A resource in an output, as the engine's protocol writes it.
REFERENCE: Final = {
    "4dabf18193072939515e22adb298388d": "5cf8f73096256a8f31e491e813e4eb8e",
    "urn": INSIDE,
    "id": "shared",
}


class PulumiEks(pulumi_mocks.Mocks):
    """A cloud that accepts everything, and a plugin that answers the construction of a cluster with what is in it."""

    def __init__(self) -> None:
        self.made: dict[str, Json] = {}

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        inputs = cast("dict[str, object]", args.inputs)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        self.made[args.name] = cast("Json", inputs)
        if args.typ == "eks:index:Cluster":
            return None, {**inputs, "eksCluster": REFERENCE, "oidcProviderUrl": ISSUER}
        arn = f"arn:aws:iam::123456789012:role/{args.name}"
        return f"{args.name}-id", {"arn": arn, "name": args.name, **inputs, **eks_outputs(args.typ, inputs)}

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        raise AssertionError(f"{args.token}: everything is known from the cluster")


@pytest.fixture
def configured() -> None:
    """The configuration of the example, under the name of the tests' project."""
    document = yaml.safe_load((EXAMPLE / "Pulumi.dev.yaml").read_text("utf-8"))
    pulumi.runtime.set_all_config(
        {
            name.replace("shared:", f"{PROJECT}:"): value if isinstance(value, str) else json.dumps(value)
            for name, value in document["config"].items()
        }
    )


@pytest.mark.usefixtures("configured")
def test_components_use_the_cluster_that_the_package_made() -> None:
    plugin = PulumiEks()
    monitor = pulumi_mocks.MockMonitor(plugin)
    outputs = {"name": "shared", **eks_outputs("aws:eks/cluster:Cluster", {})}
    monitor.resources[INSIDE] = monitor.ResourceRegistration(INSIDE, "shared", outputs)
    run_mocked(lambda: runpy.run_path(str(EXAMPLE / "__main__.py")), plugin, monitor, stack="dev")
    made = plugin.made
    kubeconfig = json.loads(str(made["cluster-kubernetes"]["kubeconfig"]))
    server = {"server": ENDPOINT, "certificate-authority-data": AUTHORITY}
    assert kubeconfig["clusters"][0]["cluster"] == server
    assert made["system-nodes"]["clusterName"] == "shared"
    groups = cast("Json", made["pool-cpu-spot-node-class"]["spec"])["securityGroupSelectorTerms"]
    assert groups == [{"id": GROUP}]
