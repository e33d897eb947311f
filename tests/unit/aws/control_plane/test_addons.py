"""The EKS add-ons: versions, order and placement."""

import json
import re

import pytest

from pulumi_holdfast.aws.control_plane.addon_versions import KUBERNETES_VERSIONS, addon_versions
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT
from tests.support.builders.aws_components import recorded_cluster, versions
from tests.support.fakes.pulumi_engine import Recorded, Recording
from tests.support.inputs import text, value
from tests.support.json_objects import objects

_BEFORE_NODES = {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}
_AFTER_NODES = {"coredns", "aws-ebs-csi-driver", "metrics-server", "eks-node-monitoring-agent"}


def addon(recording: Recording, name: str) -> Recorded:
    (found,) = [one for one in recording.of(":Addon") if one.inputs["addonName"] == name]
    return found


def configuration(recording: Recording, name: str) -> dict[str, object]:
    return json.loads(text(addon(recording, name), "configurationValues"))


def test_all_addons_have_pinned_versions_and_overwrite_manual_changes() -> None:
    addons = recorded_cluster().of(":Addon")
    found = {text(one, "addonName"): text(one, "addonVersion") for one in addons}
    pinned = versions()
    assert found == {
        "vpc-cni": pinned.vpc_cni,
        "kube-proxy": pinned.kube_proxy,
        "eks-pod-identity-agent": pinned.pod_identity_agent,
        "coredns": pinned.coredns,
        "aws-ebs-csi-driver": pinned.ebs_csi,
        "metrics-server": pinned.metrics_server,
        "eks-node-monitoring-agent": pinned.node_monitoring,
    }
    for one in addons:
        assert one.inputs["resolveConflictsOnUpdate"] == "OVERWRITE"


def test_the_network_plugin_enforces_network_policies() -> None:
    assert configuration(recorded_cluster(), "vpc-cni") == {"enableNetworkPolicy": "true"}


@pytest.mark.parametrize("preview", [False, True])
def test_nodes_are_created_between_addons_and_the_clusters_contents_after_both(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    nodes = recording.one(":NodeGroup")
    before_nodes = recording.everything_before(nodes)
    for name in _BEFORE_NODES:
        assert addon(recording, name).name in before_nodes, f"a node without {name} never becomes ready"
    for name in _AFTER_NODES:
        found = addon(recording, name)
        assert nodes.name in recording.everything_before(found), f"EKS waits for {name}, then fails"
    before = recording.everything_before(recording.one(":kubernetes"))
    needed = {one.name for one in [*recording.of(":Addon"), recording.one(":NodeGroup")]}
    assert needed <= before


def test_addons_deployments_run_on_system_nodes_and_daemon_sets_everywhere() -> None:
    recording = recorded_cluster()
    places = {
        "coredns": configuration(recording, "coredns"),
        "the EBS driver's controller": configuration(recording, "aws-ebs-csi-driver")["controller"],
    }
    for what, place in places.items():
        assert place == {
            "nodeSelector": {"holdfast.dev/system": "true"},
            "tolerations": [{"key": SYSTEM_TAINT.key, "operator": "Exists"}],
        }, f"{what} on a pool's node would prevent scale-down to zero"
    metrics = configuration(recording, "metrics-server")
    assert metrics["nodeSelector"] == {"holdfast.dev/system": "true"}
    monitoring = configuration(recording, "eks-node-monitoring-agent")
    assert monitoring == {
        "nodeAgent": {"tolerations": [{"operator": "Exists"}]},
        "dcgmAgent": {"tolerations": [{"operator": "Exists"}]},
    }
    assert configuration(recording, "eks-pod-identity-agent")["tolerations"] == [{"operator": "Exists"}]
    assert configuration(recording, "aws-ebs-csi-driver")["node"] == {"tolerateAllTaints": True}


def test_the_ebs_driver_depends_on_its_pod_identity_for_this_clusters_volumes_only() -> None:
    recording = recorded_cluster()
    role = recording.one(":Role", "cluster-services-ebs-iam-role")
    driver = addon(recording, "aws-ebs-csi-driver")
    (identity,) = objects(driver.inputs["podIdentityAssociations"])
    assert identity["serviceAccount"] == "ebs-csi-controller-sa"
    assert role.name in driver.depends_on
    assert not recording.of(":PodIdentityAssociation"), "the driver could start before EKS knows it"
    attached = [
        one for one in recording.of(":RolePolicyAttachment") if one.name.startswith("cluster-services")
    ]
    assert [text(one, "policyArn") for one in attached] == [
        "arn:aws:iam::aws:policy/AmazonEBSCSIDriverEKSClusterScopedPolicy"
    ]
    statement = json.loads(text(role, "assumeRolePolicy"))
    assert value(statement["Statement"][0], "Condition", "StringEquals") == {
        "aws:RequestTag/eks-cluster-name": "holdfast-dev",
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "ebs-csi-controller-sa",
    }


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_addon_versions_have_eks_form_and_kube_proxy_matches_kubernetes(version: str) -> None:
    found = addon_versions(version)
    assert found is not None, f"{version} is listed and has no add-ons"
    for name, pinned in vars(found).items():
        assert re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", pinned), f"{name} of {version}: {pinned}"
    assert found.kube_proxy.startswith(f"v{version}.")


@pytest.mark.parametrize("version", ["1.35", "1.36.3", "v1.36", ""])
def test_an_unknown_version_has_no_addons(version: str) -> None:
    assert addon_versions(version) is None
